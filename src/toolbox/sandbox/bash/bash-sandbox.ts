import { PerdureError } from "../../../base/error.ts";
import { checkNumbers, namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { LanePool } from "../lane-pool.ts";
import { resolveLimits } from "../limits.ts";
import { cleanPath } from "../path.ts";
import type { LimitName, Limits, Outcome, Probe, RunRequest, RunResult, Sandbox } from "../sandbox.ts";
import { answerCall, callErrorText, type CallScope, toolNames } from "./answer-call.ts";
import type { BashMount } from "./file-calls.ts";
import type { LaneEnd, ToShell } from "./node/shell-lane.ts";
import { logsOf, outcomeOf } from "./outcome.ts";
import type { Call, RunMessage } from "./protocol.ts";

/** How {@link createBashSandbox} runs shells. */
export interface BashSandboxOptions {
  /** Whether scripts in Python run, and the shell has `python3`. Default: true. */
  readonly python?: boolean;
  /** How many scripts run at the same time; others wait. Default: 2. */
  readonly workers?: number;
  /** The heap of one shell, unless a run says otherwise. Default: 256. */
  readonly memoryMB?: number;
  /** What Python, and SQLite, may use beside the heap. Default: 128. */
  readonly pythonMemoryMB?: number;
  /** A shell that nobody used for so long is ended. Default: one minute. */
  readonly idleMs?: number;
  /** The largest file that a shell can read or write in one piece. Default: 32 MiB. */
  readonly maxFileBytes?: number;
}

const bashSandboxOptionsNames = namesOf<BashSandboxOptions>()(
  "python workers memoryMB pythonMemoryMB idleMs maxFileBytes",
);

/** What a shell is asked to run. */
export interface BashRunRequest extends RunRequest {
  /** More trees of files, beside the root (`can.files`). */
  readonly mounts?: readonly BashMount[];
}

/** A sandbox for `bash` and `python`. */
export interface BashSandbox extends Sandbox {
  run(request: BashRunRequest): Promise<RunResult>;
  /** Starts a shell ahead of its first use. Resolves also when it cannot start. */
  warm(): Promise<void>;
}

const PACKAGE = "just-bash";
const DEFAULTS = { workers: 2, memoryMB: 256, pythonMemoryMB: 128, idleMs: 60_000, maxFileBytes: 32 << 20 };
/** A shell that has run this many scripts is replaced. */
const RUNS_PER_SHELL = 200;
/** After a script that went beyond one of these its shell is not used again. */
const SPENDING: ReadonlySet<LimitName> = new Set(["memory", "wall"]);
/** Taken by the shell itself. */
const OWN_MOUNTS = ["/tmp", "/dev"];
const MOUNT = /^\/[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$/;

/**
 * Runs Bash and Python scripts in a shell written in TypeScript (`just-bash`) and a Python in WebAssembly, each in a worker
 * thread: no process, file or socket of the host. `can.files` is the shell's root, and every write goes straight to it; `/tmp`
 * and `/dev` are the shell's own and go with the run. With `can.network` there is `curl`, with `can.tools` a command
 * `tool NAME JSON`. `input` is the standard input when `stdin` is not given. `limits.cpuMs` is not measured: `wallMs` ends long
 * runs.
 *
 * Output comes at the end, as one `stdout` and one `stderr` entry; none if the run had to be ended. Needs Node and the package
 * `just-bash`; {@link Sandbox.probe} says whether both are there.
 * @throws PerdureError `bad_config` for options that cannot work
 */
export function createBashSandbox(options: BashSandboxOptions = {}): BashSandbox {
  refuseUnknown(options, bashSandboxOptionsNames, "createBashSandbox()");
  checkNumbers("createBashSandbox", options, Object.keys(DEFAULTS));
  const { python = true } = options;
  const { maxFileBytes, workers, memoryMB, pythonMemoryMB, idleMs } = wholeNumbers(options);
  let opened: LanePool<ToShell, string> | undefined;
  let disposed = false;
  let runs = 0;
  /** A lane that has a heap of so much. Others may be asked for, so that is its kind. */
  const acquire = async (heapMB: number, signal?: AbortSignal) => {
    const { openShell } = await import("./node/shell-lane.ts");
    if (disposed) throw new PerdureError("bad_state", "This sandbox was disposed of.");
    const pool = (opened ??= new LanePool({
      ...{ max: workers, warm: 0, idleMs, runsPerLane: RUNS_PER_SHELL },
      open: (events, kind) => openShell(events, Number(kind), pythonMemoryMB),
    }));
    return { pool, lent: await pool.acquire(signal, String(heapMB)) };
  };

  /** What is there stays: agents ask at each turn. */
  let isThere = false;
  const probe = async (): Promise<Probe> => {
    try {
      isThere ||= (await import("./node/shell-lane.ts")).hasPackage(PACKAGE);
      if (!isThere) return { ok: false, missing: `Install ${PACKAGE} to run shells: npm install ${PACKAGE}` };
    } catch {
      return { ok: false, missing: "Shells need Node's worker threads." };
    }
    return { ok: true, detail: python ? "Bash and Python in worker threads" : "Bash in worker threads" };
  };

  const runIn = async (request: BashRunRequest, limits: Limits): Promise<[Outcome, LaneEnd, number]> => {
    const mounts = mountsOf(request);
    const ended = new AbortController();
    const can = request.can ?? {};
    const scope: CallScope = { can, mounts, maxFileBytes, limits, signal: ended.signal, toolCalls: 0 };
    const message = messageOf(request, { run: runs++, python }, scope, limits);
    const { runInShell } = await import("./node/shell-lane.ts");
    const { pool, lent } = await acquire(limits.memoryMB, request.signal);
    const answer = (ask: Call): Promise<unknown> =>
      answerCall(ask, scope).catch((thrown: unknown) => Promise.reject(new Error(callErrorText(thrown, ask))));
    const end = await runInShell(lent, message, answer, request.signal);
    ended.abort();
    const outcome = end.status === "end" ? outcomeOf(end.end) : end;
    // What the script had taken may be held for a while, and some of it may still run: the next one must not pay for it.
    const isSpent = outcome.status === "limit" && SPENDING.has(outcome.limit);
    const isUsable = !isSpent && (end.status === "end" || end.status === "error");
    if (!isUsable) await lent.lane.kill();
    pool.release(lent, isUsable ? "reuse" : "replace");
    return [outcome, end, scope.toolCalls];
  };

  return {
    kind: "just-bash",
    supports: { languages: python ? ["bash", "python"] : ["bash"], network: true, files: true, suspend: false },
    probe,
    async run(request) {
      const limits = resolveLimits({ memoryMB }, request.limits);
      checkRequest(request, python);
      const began = Date.now();
      const finish = (outcome: Outcome, end?: LaneEnd, toolCalls = 0): RunResult => {
        const logs = end?.status === "end" ? logsOf(end.end) : [];
        for (const line of logs) request.onLog?.(line);
        return { ...outcome, logs, stats: { ms: Date.now() - began, toolCalls } };
      };
      if (disposed) return finish({ status: "crashed", message: "This sandbox was disposed of." });
      const found = await probe();
      if (!found.ok) return finish({ status: "crashed", message: found.missing });
      try {
        return finish(...(await runIn(request, limits)));
      } catch (thrown) {
        if (request.signal?.aborted === true) return finish({ status: "aborted" });
        if (PerdureError.is(thrown, "bad_input")) throw thrown;
        return finish({ status: "crashed", message: thrown instanceof Error ? thrown.message : "the shell failed" });
      }
    },
    async warm() {
      if (disposed || !(await probe()).ok) return;
      const warmed = await acquire(memoryMB).catch(() => undefined);
      warmed?.pool.release(warmed.lent, "reuse");
    },
    async dispose() {
      disposed = true;
      await opened?.dispose();
    },
  };
}

function messageOf(
  request: BashRunRequest,
  { run, python }: Pick<RunMessage, "run" | "python">,
  { can, mounts }: CallScope,
  limits: Limits,
): RunMessage {
  return {
    type: "run",
    run,
    language: request.language === "python" ? "python" : "bash",
    code: request.code,
    cwd: request.cwd ?? "/",
    env: { ...can.env },
    stdin: request.stdin ?? (request.input === undefined ? "" : JSON.stringify(request.input)),
    mounts: mounts.map(({ path }) => path),
    network: can.network !== undefined,
    tools: toolNames(can),
    python,
    wallMs: limits.wallMs,
    outputBytes: limits.outputBytes,
  };
}

function mountsOf({ can, mounts = [] }: BashRunRequest): BashMount[] {
  const root = can?.files === undefined ? [] : [{ path: "/", ...can.files }];
  for (const [index, { path }] of mounts.entries()) {
    const taken = OWN_MOUNTS.includes(path) || mounts.findIndex((other) => other.path === path) !== index;
    if (!MOUNT.test(path) || taken) throw new PerdureError("bad_input", `Files cannot be mounted at "${path}".`);
  }
  return [...root, ...mounts];
}

function checkRequest(request: BashRunRequest, python: boolean): void {
  const { language, cwd = "/" } = request;
  if (language !== "bash" && !(language === "python" && python)) {
    throw new PerdureError("bad_input", `This sandbox runs bash${python ? " and python" : ""}, not ${language}.`);
  }
  cleanPath(cwd);
  mountsOf(request);
}

function wholeNumbers(options: BashSandboxOptions): typeof DEFAULTS {
  const names = Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[];
  const numbers = names.map((name) => [name, Math.floor(options[name] ?? DEFAULTS[name])]);
  return Object.fromEntries(numbers) as typeof DEFAULTS;
}

let shared: BashSandbox | undefined;

/** The shell that everything in this process uses that was given none of its own. Never disposed of. */
export function sharedBashSandbox(): BashSandbox {
  return (shared ??= createBashSandbox());
}
