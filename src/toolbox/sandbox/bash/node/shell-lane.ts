import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { Lane, LaneEvents, LentLane } from "../../lane-pool.ts";
import type { Outcome } from "../../sandbox.ts";
import type { ShellEnd } from "../outcome.ts";
import { type AnswerMessage, type Call, readWorkerMessage, type RunMessage } from "../protocol.ts";
import { firstWords } from "./first-words.ts";

/** How a run in a lane ended. */
export type LaneEnd =
  | { readonly status: "end"; readonly end: ShellEnd }
  /** `error`: the shell threw instead of answering, as it does for a redirect into files that are read-only. */
  | Extract<Outcome, { status: "error" | "limit" | "aborted" | "crashed" }>;

/** What a shell is told. */
export type ToShell = RunMessage | AnswerMessage;

/** The shell ends itself at its deadline, and can say so. One that does not react is ended from outside after this. */
const GRACE_MS = 250;

/** A worker thread with a shell in it. Runs one script at a time; one that had to be ended takes the thread along. */
export function openShell(events: LaneEvents, memoryMB: number, pythonMemoryMB: number): Lane<ToShell> {
  const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
  const worker = new Worker(new URL(file, import.meta.url), {
    // Nothing of the host's environment or arguments reaches the shell, and nothing prints on the host. (Reading these
    // two streams would keep the process alive, also while the lane rests.)
    env: {},
    argv: [],
    execArgv: ["--import", firstWords(pythonMemoryMB)],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: memoryMB, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
  });
  let failure: (Error & { code?: string }) | undefined;
  worker.on("message", (value: unknown) => events.message(value));
  worker.on("error", (error: Error & { code?: string }) => (failure = error));
  worker.once("exit", () => {
    if (failure?.code === "ERR_WORKER_OUT_OF_MEMORY") events.exited(`it used more than ${memoryMB} MB`, "memory");
    else if (failure === undefined) events.exited("the shell's thread ended");
    // The text of such errors names places of the host.
    else events.exited(`the shell's thread failed (${failure.code ?? failure.name})`);
  });
  return {
    post: (message) => worker.postMessage(message),
    kill: async () => void (await worker.terminate()),
    hold: (held) => (held ? worker.ref() : worker.unref()),
  };
}

/** Runs a script in a lane. Never rejects. After anything but `end` and `error` the lane is not to be used again. */
export async function runInShell(
  lent: LentLane<ToShell>,
  message: RunMessage,
  call: (ask: Call) => Promise<unknown>,
  signal?: AbortSignal,
): Promise<LaneEnd> {
  const { lane } = lent;
  const { promise, resolve } = Promise.withResolvers<LaneEnd>();
  const late = () => resolve(ended("wall", `it did not end within ${message.wallMs} ms`));
  const timer = setTimeout(late, message.wallMs + GRACE_MS);
  const abort = (): void => resolve({ status: "aborted" });
  const answer = async (id: number, work: Promise<unknown>): Promise<void> => {
    try {
      lane.post({ type: "answer", call: id, value: await work });
    } catch (thrown) {
      lane.post({ type: "answer", call: id, error: thrown instanceof Error ? thrown.message : "failed" });
    }
  };
  lent.events = {
    exited: (reason, spent) =>
      resolve(spent === undefined ? { status: "crashed", message: reason } : ended(spent, reason)),
    message: (value) => {
      const said = readWorkerMessage(value);
      if (said === undefined) return resolve({ status: "crashed", message: "the shell sent what is no message" });
      // What was left behind by an earlier script, such as a job in the background, gets no answer.
      if (said.type === "ready" || said.run !== message.run) return;
      if (said.type === "done") return resolve({ status: "end", end: said });
      if (said.type === "failed")
        return resolve({ status: "error", error: { name: "ShellError", message: said.message } });
      void answer(said.call, call(said.ask));
    },
  };
  signal?.addEventListener("abort", abort, { once: true });
  if (signal?.aborted === true) abort();
  else lane.post(message);
  const end = await promise;
  clearTimeout(timer);
  signal?.removeEventListener("abort", abort);
  return end;
}

function ended(limit: "wall" | "memory", why: string): LaneEnd {
  return { status: "limit", limit, message: `The script was ended: ${why}.` };
}

/** Whether a package can be imported from here. */
export function hasPackage(name: string): boolean {
  try {
    createRequire(import.meta.url).resolve(name);
    return true;
  } catch {
    return false;
  }
}
