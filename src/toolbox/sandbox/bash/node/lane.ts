import { Worker } from "node:worker_threads";
import type { Outcome } from "../../sandbox.ts";
import type { ShellEnd } from "../outcome.ts";
import { type Call, readWorkerMessage, type RunMessage } from "../protocol.ts";
import { firstWords } from "./first-words.ts";

/** How a run in a lane ended. */
export type LaneEnd =
  | { readonly status: "end"; readonly end: ShellEnd }
  /** `error`: the shell threw instead of answering, as it does for a redirect into files that are read-only. */
  | Extract<Outcome, { status: "error" | "limit" | "aborted" | "crashed" }>;

/** What a lane may use. */
export interface LaneSize {
  readonly memoryMB: number;
  readonly pythonMemoryMB: number;
}

/** The shell ends itself at its deadline, and can say so. One that does not react is ended from outside after this. */
const GRACE_MS = 250;
const START_MS = 30_000;

/** One worker thread with a shell in it. Runs one script at a time; one that had to be ended takes the thread along. */
export class ShellLane {
  readonly size: LaneSize;
  runs = 0;
  readonly #worker: Worker;
  readonly #ready: Promise<void>;
  #settleReady: (error?: Error) => void = () => {};
  #open: { readonly run: number; end(end: LaneEnd): void; call(ask: Call): Promise<unknown> } | undefined;
  #dead: LaneEnd | undefined;

  constructor(size: LaneSize) {
    this.size = size;
    const file = import.meta.url.endsWith(".ts") ? "./worker.ts" : "./worker.js";
    this.#worker = new Worker(new URL(file, import.meta.url), {
      // Nothing of the host's environment or arguments reaches the shell, and nothing prints on the host. (Reading these
      // two streams would keep the process alive, also while the lane rests.)
      env: {},
      argv: [],
      execArgv: ["--import", firstWords(size.pythonMemoryMB)],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: size.memoryMB, maxYoungGenerationSizeMb: 32, stackSizeMb: 4 },
    });
    this.#ready = new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#die({ status: "crashed", message: "the shell did not start" }), START_MS);
      this.#settleReady = (error) => {
        clearTimeout(timer);
        if (error === undefined) resolve();
        else reject(error);
      };
    });
    // Whoever runs something hears of it; a lane that nobody uses may fail unheard.
    this.#ready.catch(() => {});
    this.#worker.on("message", (value: unknown) => this.#hear(value));
    this.#worker.on("error", (error: Error & { code?: string }) => this.#die(endOf(error, size)));
    this.#worker.on("exit", () => this.#die({ status: "crashed", message: "the shell's thread ended" }));
  }

  get dead(): boolean {
    return this.#dead !== undefined;
  }

  /** Resolves when scripts can be run. @throws Error when the worker cannot start */
  ready(): Promise<void> {
    return this.#ready;
  }

  /** A lane that is idle does not keep the process alive. */
  rest(): void {
    this.#worker.unref();
  }

  /** Never rejects. After anything but `end` and `error` the lane is dead. */
  async run(message: RunMessage, call: (ask: Call) => Promise<unknown>, signal?: AbortSignal): Promise<LaneEnd> {
    this.#worker.ref();
    this.runs++;
    try {
      await this.#ready;
    } catch (thrown) {
      return this.#dead ?? { status: "crashed", message: String(thrown) };
    }
    const { promise, resolve } = Promise.withResolvers<LaneEnd>();
    this.#open = { run: message.run, call, end: resolve };
    const timer = setTimeout(
      () => this.#die(ended("wall", `it did not end within ${message.wallMs} ms`)),
      message.wallMs + GRACE_MS,
    );
    const abort = (): void => this.#die({ status: "aborted" });
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) abort();
    else if (this.#dead === undefined) this.#worker.postMessage(message);
    else resolve(this.#dead);
    const end = await promise;
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
    this.#open = undefined;
    if (end.status !== "end" && end.status !== "error") await this.close();
    return end;
  }

  async close(): Promise<void> {
    this.#die({ status: "crashed", message: "the shell was closed" });
    await this.#worker.terminate();
  }

  #hear(value: unknown): void {
    const message = readWorkerMessage(value);
    if (message === undefined) {
      this.#die({ status: "crashed", message: "the shell sent what is no message" });
      return;
    }
    if (message.type === "ready") {
      this.#settleReady();
      return;
    }
    const open = this.#open;
    // What was left behind by an earlier script, such as a job in the background, gets no answer.
    if (open === undefined || message.run !== open.run) return;
    if (message.type === "done") open.end({ status: "end", end: message });
    else if (message.type === "failed")
      open.end({ status: "error", error: { name: "ShellError", message: message.message } });
    else void this.#answer(message.call, open.call(message.ask));
  }

  async #answer(call: number, answer: Promise<unknown>): Promise<void> {
    try {
      this.#worker.postMessage({ type: "answer", call, value: await answer });
    } catch (thrown) {
      this.#worker.postMessage({ type: "answer", call, error: thrown instanceof Error ? thrown.message : "failed" });
    }
  }

  #die(end: LaneEnd): void {
    if (this.#dead !== undefined) return;
    this.#dead = end;
    this.#settleReady(new Error("message" in end ? end.message : end.status));
    this.#open?.end(end);
    void this.#worker.terminate();
  }
}

function ended(limit: "wall" | "memory", why: string): LaneEnd {
  return { status: "limit", limit, message: `The script was ended: ${why}.` };
}

function endOf(error: Error & { code?: string }, size: LaneSize): LaneEnd {
  if (error.code === "ERR_WORKER_OUT_OF_MEMORY") {
    return ended("memory", `it used more than ${size.memoryMB} MB`);
  }
  // The text of such errors names places of the host.
  return { status: "crashed", message: `the shell's thread failed (${error.code ?? error.name})` };
}
