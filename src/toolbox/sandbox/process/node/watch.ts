import { lstat, readdir, readFile, statfs } from "node:fs/promises";
import { join } from "node:path";

/** What is looked at while a jail runs, because the kernel bounds it for single processes only, or not at all. */
interface Bounds {
  readonly cpuMs: number;
  /** Absent where a cgroup keeps it. */
  readonly memoryBytes: number | undefined;
  readonly disk: { readonly folder: string; readonly bytes: number; readonly entries: number } | undefined;
}

type Exceeded = "cpu" | "memory" | "disk";

const EVERY_MS = 100;
/** The kernel counts processor time in this many ticks a second, on every machine. */
const TICKS_PER_SECOND = 100;
/** Less free space than before is a reason to count, and anybody may have taken it. */
const DISK_SUSPICION = 0.25;

/** Looks after a jail until the returned function is called. `exceeded` is called once, at most. Never throws. */
export function watchJail(firstProcess: number, bounds: Bounds, exceeded: (what: Exceeded) => void): () => void {
  let stopped = false;
  const disk = bounds.disk === undefined ? undefined : diskWatch(bounds.disk);
  const look = async (): Promise<Exceeded | undefined> => {
    const processes = await treeOf(firstProcess);
    const usages = await Promise.all(processes.map(usageOf));
    if (sum(usages, ({ cpuMs }) => cpuMs) > bounds.cpuMs) return "cpu";
    const { memoryBytes } = bounds;
    if (memoryBytes !== undefined && sum(usages, (usage) => usage.memoryBytes) > memoryBytes) {
      // What processes share was counted for each. The exact number costs more, so it is asked for only now.
      const exact = await Promise.all(
        usages.map(async (usage) => (await sharedOutMemory(usage.pid)) ?? usage.memoryBytes),
      );
      if (sum(exact, (bytes) => bytes) > memoryBytes) return "memory";
    }
    return (await disk?.()) === true ? "disk" : undefined;
  };
  const again = (): void => {
    timer = setTimeout(() => {
      look().then(
        (found) => {
          if (stopped) return;
          if (found === undefined) return again();
          stopped = true;
          exceeded(found);
        },
        () => stopped || again(),
      );
    }, EVERY_MS);
    timer.unref();
  };
  let timer: NodeJS.Timeout;
  again();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/** A process and all that came from it. Ends of processes in between only leave some out. */
async function treeOf(pid: number): Promise<number[]> {
  const found = [pid];
  for (let next = 0; next < found.length; next += 1) {
    const tasks = `/proc/${found[next]}/task`;
    for (const task of await readdir(tasks).catch(() => [])) {
      const children = await readFile(`${tasks}/${task}/children`, "utf8").catch(() => "");
      found.push(
        ...children
          .split(" ")
          .filter((text) => text !== "")
          .map(Number),
      );
    }
  }
  return found;
}

async function usageOf(pid: number): Promise<{ pid: number; cpuMs: number; memoryBytes: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The name of the program is in brackets, and may hold any character.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = sum(fields.slice(11, 15), (field) => Number(field) || 0);
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kilobytes = sum(["RssAnon", "RssShmem"], (name) =>
    Number(new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(status)?.[1] ?? 0),
  );
  return { pid, cpuMs: (ticks * 1000) / TICKS_PER_SECOND, memoryBytes: kilobytes * 1024 };
}

/** Its own memory, and its share of what it has in common with others. */
async function sharedOutMemory(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  const parts = ["Pss_Anon", "Pss_Shmem"].map((name) => new RegExp(`^${name}:\\s*(\\d+)`, "m").exec(text)?.[1]);
  return parts.includes(undefined) ? undefined : sum(parts, Number) * 1024;
}

function diskWatch(disk: NonNullable<Bounds["disk"]>): () => Promise<boolean> {
  let before: { bytes: number; entries: number } | undefined;
  return async () => {
    const { bavail, bsize, ffree } = await statfs(disk.folder);
    const free = { bytes: bavail * bsize, entries: ffree };
    before ??= free;
    const suspect =
      before.bytes - free.bytes > disk.bytes * DISK_SUSPICION ||
      before.entries - free.entries > disk.entries * DISK_SUSPICION;
    if (!suspect) return false;
    before = free;
    return (await sizeOf(disk.folder, disk)) === "over";
  };
}

/** Adds up a folder, and stops as soon as it is over the bounds. */
async function sizeOf(
  folder: string,
  bounds: { readonly bytes: number; readonly entries: number },
): Promise<"within" | "over"> {
  let bytes = 0;
  let entries = 0;
  const folders = [folder];
  for (let here = folders.pop(); here !== undefined; here = folders.pop()) {
    for (const entry of await readdir(here, { withFileTypes: true }).catch(() => [])) {
      entries += 1;
      if (entry.isDirectory()) folders.push(join(here, entry.name));
      else
        bytes += await lstat(join(here, entry.name)).then(
          ({ blocks }) => blocks * 512,
          () => 0,
        );
      if (bytes > bounds.bytes || entries > bounds.entries) return "over";
    }
  }
  return "within";
}

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}
