import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

const MOUNT = "/sys/fs/cgroup";
let made = 0;

/** A place where groups with a bound on memory can be made. */
export interface CgroupRoot {
  readonly path: string;
  readonly version: 1 | 2;
}

/** Where groups can be made: what was given, or what this process was delegated. `undefined` where there is nothing. */
export async function findCgroupRoot(given: string | undefined): Promise<CgroupRoot | undefined> {
  const candidates = given === undefined ? await ownGroups() : [given];
  for (const path of candidates) {
    const version = await versionOf(path);
    if (version === undefined) continue;
    const root = { path, version };
    try {
      const group = await createCgroup(root, { memoryMB: 64, processes: 16 });
      await group.remove();
      return root;
    } catch {
      // Not ours to change.
    }
  }
  return undefined;
}

/** A group for one jail. @throws where it may not be made */
export async function createCgroup(
  root: CgroupRoot,
  bounds: { readonly memoryMB: number; readonly processes: number },
) {
  const path = join(root.path, `perdure-${process.pid}-${++made}`);
  await mkdir(path);
  /** Never throws. Only when no process is left. */
  const remove = async () => {
    await rmdir(path).catch(() => undefined);
  };
  try {
    const bytes = String(bounds.memoryMB * 1024 * 1024);
    const set = async (file: string, value: string) => await writeFile(join(path, file), value, { flag: "r+" });
    if (root.version === 2) {
      await set("memory.max", bytes);
      await set("memory.swap.max", "0").catch(() => undefined);
      await set("memory.oom.group", "1").catch(() => undefined);
      await set("pids.max", String(bounds.processes)).catch(() => undefined);
    } else {
      await set("memory.limit_in_bytes", bytes);
      await set("memory.memsw.limit_in_bytes", bytes).catch(() => undefined);
    }
  } catch (thrown) {
    await remove();
    throw thrown;
  }
  const events = join(path, root.version === 2 ? "memory.events" : "memory.oom_control");
  return {
    /** A process joins by writing its id here. */
    joinFile: join(path, "cgroup.procs"),
    /** Whether the kernel had to end a process for its memory. */
    async memoryRanOut(): Promise<boolean> {
      const text = await readFile(events, "utf8").catch(() => "");
      return Number(/^oom_kill (\d+)$/m.exec(text)?.[1] ?? 0) > 0;
    },
    remove,
  };
}

async function versionOf(path: string): Promise<1 | 2 | undefined> {
  const read = async (file: string) => await readFile(join(path, file), "utf8").catch(() => undefined);
  const children = await read("cgroup.subtree_control");
  if (children !== undefined) return children.split(/\s+/).includes("memory") ? 2 : undefined;
  return (await read("memory.limit_in_bytes")) === undefined ? undefined : 1;
}

/** Groups are looked for by themselves only in the second version, where a service manager says what it hands over. */
async function ownGroups(): Promise<string[]> {
  const text = await readFile("/proc/self/cgroup", "utf8").catch(() => "");
  const own = /^0::(\/.*)$/m.exec(text)?.[1];
  if (own === undefined || own === "/" || own.includes("..")) return [];
  const path = join(MOUNT, own);
  return dirname(path) === MOUNT ? [path] : [path, dirname(path)];
}
