import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import type { Json, Limits, LogLine, Outcome, RunRequest } from "../../sandbox.ts";
import type { ProcessSettings } from "../process-sandbox.ts";
import { type Bind, prlimitArguments } from "../profile.ts";
import { createCgroup } from "./cgroup.ts";
import { entryScript, proxyEnvironment, STARTED } from "./entry.ts";
import { JAIL_CODE, JAIL_EGRESS, JAIL_NODE, JAIL_WORKSPACE } from "./jail-paths.ts";
import type { Machine } from "./machine.ts";
import { type RunningJail, startJail } from "./start-jail.ts";
import { watchJail } from "./watch.ts";

/** One run, with everything prepared but the jail. */
interface JailRun {
  readonly machine: Machine;
  readonly settings: ProcessSettings;
  readonly request: RunRequest;
  readonly limits: Limits;
  /** What is left of `limits.wallMs`. */
  readonly leftMs: number;
  readonly words: readonly string[];
  readonly cwd: string;
  /** A folder of this run alone; `code` in it is what the jail runs. */
  readonly folder: string;
  readonly workspace?: { readonly path: string; readonly mode: "read" | "read-write" };
  readonly signal: AbortSignal;
}

type Ended = { readonly outcome: Outcome; readonly logs: readonly LogLine[] };

const MB = 1 << 20;
const SHM_BYTES = 16 * MB;
/** What the kernel allows one process beyond the run's memory: thread stacks and V8's room for code count in full there. */
const DATA_SLACK_MB = 1_024;
const DISK_ENTRIES = 100_000;
/** Linux keeps the names of sockets in a field of this size, with its end. */
const MAX_SOCKET_PATH = 107;

/** Runs it to its end. No process of it is left when this settles. */
export async function runJail(run: JailRun): Promise<Ended> {
  const { machine, settings, request, limits, folder } = run;
  const closers: (() => Promise<void>)[] = [];
  try {
    const network = request.can?.network;
    if (network !== undefined && machine.socat === undefined) {
      throw new Error('A run with network needs the program "socat" (Debian, Ubuntu: apt-get install socat).');
    }
    const isFunction = request.language === "js" || request.language === "ts";
    const proxy = network === undefined ? undefined : machine.socat;
    const entry = join(folder, "code", "entry.sh");
    await writeFile(entry, entryScript(run.words, { cwd: run.cwd, proxy, keepPipe: isFunction }));
    await chmod(entry, 0o644);
    const socket = join(folder, "egress");
    if (network !== undefined) {
      if (Buffer.byteLength(socket) > MAX_SOCKET_PATH)
        throw new Error("The folder for temporary files has too long a path.");
      const server = await network.listen(socket);
      closers.push(async () => await server.close());
      // The folder around it lets nobody but the jail's user in.
      await chmod(socket, 0o777);
    }
    const group =
      machine.cgroups === undefined
        ? undefined
        : await createCgroup(machine.cgroups, { memoryMB: limits.memoryMB, processes: settings.processes + 8 });
    if (group !== undefined) closers.push(async () => await group.remove());

    const jail = await startJail(machine.builder, {
      profile: {
        binds: [...machine.system.binds, ...bindsOf(run, network === undefined ? undefined : socket)],
        links: machine.system.links,
        memoryFolders: { "/dev/shm": SHM_BYTES, "/tmp": settings.tmpMB * MB },
        environment: { ...environmentOf(machine), ...request.can?.env, ...(network !== undefined && proxyEnvironment) },
        namespaces: false,
      },
      command: [
        machine.prlimit,
        ...prlimitArguments({
          ...{ processes: settings.processes, openFiles: settings.openFiles },
          // The watch adds up; this is for a process that it does not see in time.
          cpuSeconds: Math.ceil(limits.cpuMs / 1000) + 1,
          fileBytes: settings.diskMB * MB,
          dataBytes: group === undefined ? (limits.memoryMB + DATA_SLACK_MB) * MB : undefined,
        }),
        ...["/bin/sh", `${JAIL_CODE}/entry.sh`],
      ],
      join: group?.joinFile,
    });
    return await follow(run, jail, {
      countsMemory: group === undefined,
      memoryRanOut: async () => (await group?.memoryRanOut()) === true,
    });
  } finally {
    for (const close of closers.reverse()) await close().catch(() => undefined);
  }
}

function bindsOf(run: JailRun, socket: string | undefined): Bind[] {
  const { machine, settings } = run;
  const binds: Bind[] = [{ from: join(run.folder, "code"), to: JAIL_CODE, mode: "read" }];
  for (const path of settings.readOnly) binds.push({ from: path, to: path, mode: "read" });
  if (machine.node !== undefined && !machine.node.startsWith("/usr/")) {
    binds.push({ from: machine.node, to: JAIL_NODE, mode: "read" });
  }
  if (run.workspace !== undefined)
    binds.push({ from: run.workspace.path, to: JAIL_WORKSPACE, mode: run.workspace.mode });
  if (socket !== undefined) binds.push({ from: socket, to: JAIL_EGRESS, mode: "read" });
  return binds;
}

function environmentOf(machine: Machine): Record<string, string> {
  const path = ["/usr/local/bin", "/usr/bin", "/bin"];
  const ownNode = machine.node !== undefined && !machine.node.startsWith("/usr/");
  return {
    PATH: [...(ownNode ? ["/opt/bin"] : []), ...path].join(":"),
    ...{ HOME: "/tmp", TMPDIR: "/tmp", USER: "user", LANG: "C.UTF-8", TERM: "dumb", PYTHONDONTWRITEBYTECODE: "1" },
  };
}

/** From the start of the jail to its end: feeds it, reads it, and ends it when a bound is reached. */
async function follow(
  run: JailRun,
  jail: RunningJail,
  memory: { readonly countsMemory: boolean; memoryRanOut(): Promise<boolean> },
): Promise<Ended> {
  const { request, limits, settings, signal } = run;
  let cut: Outcome | undefined;
  const end = (outcome: Outcome) => {
    cut ??= outcome;
    jail.kill();
  };
  const over = (limit: "wall" | "cpu" | "memory" | "output", message: string) =>
    end({ status: "limit", limit, message });
  const output = new Output(limits.outputBytes, request.onLog, () =>
    over("output", `The run printed more than ${limits.outputBytes} bytes.`),
  );
  const aborted = () => end({ status: "aborted" });
  signal.addEventListener("abort", aborted, { once: true });
  if (signal.aborted) aborted();
  const wall = setTimeout(() => over("wall", `The run took longer than ${limits.wallMs} ms.`), run.leftMs);
  let unwatch = (): void => undefined;
  void jail.firstProcess.then((pid) => {
    if (pid === undefined || cut !== undefined) return;
    const bounds = {
      cpuMs: limits.cpuMs,
      memoryBytes: memory.countsMemory ? limits.memoryMB * MB : undefined,
      disk:
        run.workspace?.mode === "read-write"
          ? { folder: run.workspace.path, bytes: settings.diskMB * MB, entries: DISK_ENTRIES }
          : undefined,
    };
    unwatch = watchJail(pid, bounds, (what) => {
      if (what === "cpu") over("cpu", `The run computed for more than ${limits.cpuMs} ms.`);
      else if (what === "memory") over("memory", `The run used more than ${limits.memoryMB} MB of memory.`);
      else over("output", `The run wrote more than ${settings.diskMB} MB, or ${DISK_ENTRIES} files, to /workspace.`);
    });
  });
  try {
    const { child } = jail;
    // It may end without reading.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(stdinOf(request));
    const [, , said] = await Promise.all([
      output.lines(jail.stdout, "stdout"),
      output.lines(jail.stderr, "stderr"),
      output.whole(jail.answer),
    ]);
    const { code } = await jail.ended;
    await jail.gone();
    if (cut === undefined && (await memory.memoryRanOut())) {
      cut = { status: "limit", limit: "memory", message: `The run used more than ${limits.memoryMB} MB of memory.` };
    }
    if (cut !== undefined) return { outcome: cut, logs: output.logs };
    if (!said.startsWith(STARTED)) {
      const reason = output.logs
        .map(({ text }) => text)
        .join(" ")
        .slice(0, 500);
      return {
        outcome: { status: "crashed", message: `The jail could not be built: ${reason || `code ${code}`}` },
        logs: [],
      };
    }
    return { outcome: outcomeOf(run, said.slice(STARTED.length), code ?? 1, output.logs), logs: output.logs };
  } finally {
    signal.removeEventListener("abort", aborted);
    clearTimeout(wall);
    unwatch();
    jail.kill();
  }
}

function stdinOf(request: RunRequest): string {
  if (request.stdin !== undefined) return request.stdin;
  const isFunction = request.language === "js" || request.language === "ts";
  return request.input === undefined || isFunction ? "" : JSON.stringify(request.input);
}

/** How V8 ends a process whose heap is full. */
const ABORTED = 134;

function outcomeOf({ request, limits }: JailRun, said: string, exitCode: number, logs: readonly LogLine[]): Outcome {
  if (request.language !== "js" && request.language !== "ts") return { status: "ok", value: undefined, exitCode };
  let answer: { ok?: unknown; value?: Json; name?: unknown; message?: unknown } = {};
  try {
    const parsed: unknown = JSON.parse(said);
    if (typeof parsed === "object" && parsed !== null) answer = parsed;
  } catch {
    // The guest ended itself before it returned.
  }
  if (answer.ok === true) return { status: "ok", value: answer.value, exitCode };
  if (exitCode === ABORTED && logs.some(({ text }) => text.includes("JavaScript heap out of memory"))) {
    return { status: "limit", limit: "memory", message: `The run used more than ${limits.memoryMB} MB of memory.` };
  }
  const text = (value: unknown, otherwise: string) => (typeof value === "string" ? value : otherwise);
  return {
    status: "error",
    error: {
      name: text(answer.name, "Error"),
      message: text(answer.message, `The process ended with code ${exitCode} before the code returned.`),
    },
  };
}

/** Collects what a jail prints, up to a number of bytes over all its pipes. */
class Output {
  readonly logs: LogLine[] = [];
  readonly #onLog: ((line: LogLine) => void) | undefined;
  readonly #over: () => void;
  #left: number;

  constructor(bytes: number, onLog: ((line: LogLine) => void) | undefined, over: () => void) {
    this.#left = bytes;
    this.#onLog = onLog;
    this.#over = over;
  }

  /** Lines of a pipe become log lines. Settles when the pipe ends. */
  async lines(pipe: Readable, level: "stdout" | "stderr"): Promise<void> {
    const decoder = new StringDecoder("utf8");
    let rest = "";
    for await (const chunk of this.#bounded(pipe)) {
      const lines = (rest + decoder.write(chunk)).split("\n");
      rest = lines.pop() ?? "";
      for (const text of lines) this.#log({ level, text });
    }
    rest += decoder.end();
    if (rest !== "") this.#log({ level, text: rest });
  }

  /** All of a pipe. */
  async whole(pipe: Readable): Promise<string> {
    const chunks: Buffer[] = [];
    for await (const chunk of this.#bounded(pipe)) chunks.push(chunk);
    return Buffer.concat(chunks).toString("utf8");
  }

  async *#bounded(pipe: Readable): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of pipe) {
        const bytes = chunk as Buffer;
        const room = Math.max(0, this.#left);
        this.#left -= bytes.byteLength;
        if (room > 0) yield bytes.subarray(0, room);
        if (this.#left < 0) this.#over();
      }
    } catch {
      // Closed while it was read: what came is what there is.
    }
  }

  #log(line: LogLine): void {
    this.logs.push(line);
    try {
      this.#onLog?.(line);
    } catch {
      // A listener's trouble is not the run's.
    }
  }
}
