import { spawn } from "node:child_process";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import type { Lane, LaneEvents } from "../../lane-pool.ts";
import type { ToLane } from "../message.ts";
import { engineFolders } from "./engine.ts";
import { decodeFrame, encodeFrame, splitFrames } from "./frames.ts";

const isSource = import.meta.url.endsWith(".ts");
const entry = new URL(isSource ? "./lane-entry.ts" : "./lane-entry.js", import.meta.url);
/** The host's heap in a lane: the guest's own memory is the engine's, outside of it. */
const THREAD_HEAP_MB = 192;
const THREAD_STACK_MB = 8;
/** Below what systems give a main thread (8 MB), above what the engine's limit needs. */
const PROCESS_STACK_KB = 3_900;
const ERROR_TAIL = 500;

/** A lane that is a thread of this process. */
export function threadLane(events: LaneEvents): Lane<ToLane> {
  const worker = new Worker(entry, {
    env: {},
    argv: [],
    execArgv: [],
    // What it would print is of nobody's concern, and must not mix with what the app prints. It is not read either: that
    // would keep the process alive, also while the lane rests.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB, stackSizeMb: THREAD_STACK_MB },
  });
  let reason = "The lane ended.";
  worker.on("message", (value: unknown) => events.message(value));
  worker.on("messageerror", () => events.message(undefined));
  worker.on("error", (thrown: Error) => {
    reason = `The lane failed: ${thrown.message}`;
  });
  worker.once("exit", () => events.exited(reason));
  return {
    post: (message) => worker.postMessage(message),
    kill: async () => {
      await worker.terminate();
    },
    hold: (held) => (held ? worker.ref() : worker.unref()),
  };
}

/** A lane that is a process of its own, without permissions but to read the engine. */
export function processLane(
  events: LaneEvents,
  wrap: ((argv: readonly string[]) => readonly string[]) | undefined,
): Lane<ToLane> {
  const own = dirname(fileURLToPath(entry));
  const plain = [
    process.execPath,
    "--permission",
    // The lane's own files, in the sources those beside its folder that it imports, and the engine.
    `--allow-fs-read=${isSource ? dirname(dirname(own)) : own}`,
    ...engineFolders().map((folder) => `--allow-fs-read=${folder}`),
    "--disable-warning=ExperimentalWarning",
    `--stack-size=${PROCESS_STACK_KB}`,
    `--max-old-space-size=${THREAD_HEAP_MB}`,
    fileURLToPath(entry),
  ];
  const [command, ...args] = wrap?.(plain) ?? plain;
  const child = spawn(command ?? process.execPath, args, {
    env: {},
    stdio: ["pipe", "pipe", "pipe"],
    windowsHide: true,
  });
  let tail = "";
  let failure: string | undefined;
  let over = false;
  const exited = (reason: string): void => {
    if (over) return;
    over = true;
    events.exited(reason);
  };
  const take = splitFrames((line) => {
    let value: unknown;
    try {
      value = decodeFrame(line);
    } catch {
      value = undefined;
    }
    events.message(value);
  });
  child.stdout.on("data", (chunk: Buffer) => {
    try {
      take(chunk);
    } catch {
      child.kill("SIGKILL");
    }
  });
  child.stderr.on("data", (chunk: Buffer) => {
    tail = (tail + chunk.toString("utf8")).slice(-ERROR_TAIL);
  });
  // A pipe to a process that is gone: its exit is reported.
  child.stdin.on("error", () => undefined);
  child.on("error", (thrown) => {
    failure = thrown.message;
    exited(`The lane cannot start: ${thrown.message}`);
  });
  child.once("exit", (code, signal) => {
    exited(`The lane ended (${failure ?? signal ?? `exit ${code}`})${tail === "" ? "." : `: ${tail.trim()}`}`);
  });
  const handles = [child, child.stdin, child.stdout, child.stderr] as readonly {
    ref?: () => unknown;
    unref?: () => unknown;
  }[];
  return {
    post: (message) => void child.stdin.write(encodeFrame(message)),
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      if (child.kill("SIGKILL")) await gone;
    },
    hold: (held) => {
      for (const handle of handles) {
        if (held) handle.ref?.();
        else handle.unref?.();
      }
    },
  };
}
