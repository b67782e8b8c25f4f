import { AsyncLocalStorage } from "node:async_hooks";
import { errorText, PerdureError } from "../../../../base/error.ts";
import { SUSPEND, type Json, type Limits, type LogLine, type OpenCall } from "../../sandbox.ts";
import {
  readFromLane,
  type CompiledEngine,
  type FromLane,
  type Image,
  type LaneOutcome,
  type ToLane,
  type Used,
} from "../message.ts";
import type { HostFunctions } from "./host-functions.ts";
import type { LanePool, LentLane } from "../../lane-pool.ts";

/** How long a lane has to end a run that was told to stop. Then it is killed. */
const GRACE_MS = 150;
/** What a lane may take to set up an engine, on a busy machine. */
const SET_UP_MS = 10_000;
/** What a lane may take to hand over the image of a guest that stays. */
const IMAGE_MS = 20_000;
const LONGEST_ERROR = 4_000;
/** A guest that grew so much leaves with its lane: its memory is given back at once, not when somebody collects it. */
const LARGE_GUEST_BYTES = 48 << 20;
const LOG_LINE_BYTES = 16;

type Job = Extract<ToLane, { type: "start" | "resume" | "invoke" }>;
/** What is to be done, without what the run adds itself. */
type JobBody = Job extends infer J ? (J extends Job ? Omit<J, "run" | "limits" | "used" | "engine"> : never) : never;

export interface LaneRunOptions {
  readonly job: JobBody;
  readonly functions: HostFunctions;
  readonly limits: Limits;
  readonly engine?: CompiledEngine | undefined;
  readonly used: Used;
  /** The number of the next call. */
  readonly nextCall: number;
  /** Calls that were parked before, by number. */
  readonly parked: ReadonlyMap<number, OpenCall>;
  /** Whether a host function may park the run. */
  readonly mayPark: boolean;
  readonly signal: AbortSignal | undefined;
  readonly onLog: ((line: LogLine) => void) | undefined;
}

/** What became of it. */
export interface LaneRunEnd {
  readonly outcome: LaneOutcome;
  readonly logs: readonly LogLine[];
  readonly used: Used;
  readonly nextCall: number;
  readonly parked: readonly OpenCall[];
  /** Of a run that was parked. */
  readonly image: Image | undefined;
  /** Of a guest that stays: comes a little later. The lane is given back when it is there. */
  readonly stays: Promise<Image | undefined> | undefined;
}

let nextRun = 1;

/** Runs one job in a borrowed lane, gives the lane back, and tells how it ended. Never rejects. */
export async function runInLane(
  pool: LanePool<ToLane>,
  lent: LentLane<ToLane>,
  options: LaneRunOptions,
): Promise<LaneRunEnd> {
  return new Promise((resolve) => new LaneRun(pool, lent, options, resolve).begin());
}

class LaneRun {
  readonly #pool: LanePool<ToLane>;
  readonly #lent: LentLane<ToLane>;
  readonly #options: LaneRunOptions;
  readonly #resolve: (end: LaneRunEnd) => void;
  readonly #run = nextRun++;
  readonly #ended = new AbortController();
  readonly #logs: LogLine[] = [];
  readonly #parked: Map<number, OpenCall>;
  /** A lane is lent to one after the other: what it calls runs for whoever has it now, not for who had it made. */
  readonly #within = AsyncLocalStorage.snapshot();
  #nextCall: number;
  #toolCalls: number;
  #outputBytes: number;
  #image: Image | undefined;
  /** Why we told it to stop. */
  #stopped: LaneOutcome | undefined;
  #wall: NodeJS.Timeout | undefined;
  #grace: NodeJS.Timeout | undefined;
  #keeping: ((image: Image | undefined) => void) | undefined;
  #begun = false;
  #over = false;

  constructor(
    pool: LanePool<ToLane>,
    lent: LentLane<ToLane>,
    options: LaneRunOptions,
    resolve: (end: LaneRunEnd) => void,
  ) {
    this.#pool = pool;
    this.#lent = lent;
    this.#options = options;
    this.#resolve = resolve;
    this.#nextCall = options.nextCall;
    this.#toolCalls = options.used.toolCalls;
    this.#outputBytes = options.used.outputBytes;
    this.#parked = new Map(options.parked);
  }

  begin(): void {
    const { job, limits, used, signal, engine } = this.#options;
    this.#lent.events = {
      message: (value) => this.#receive(value),
      exited: (reason) => this.#exited(reason),
    };
    this.#startClock(limits.wallMs + SET_UP_MS);
    signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#post({ ...job, run: this.#run, limits, used, engine });
    if (signal?.aborted === true) this.#onAbort();
  }

  #startClock(ms: number): void {
    clearTimeout(this.#wall);
    const { wallMs } = this.#options.limits;
    this.#wall = setTimeout(() => {
      this.#stop({ status: "limit", limit: "wall", message: `The code ran for more than ${wallMs} ms.` });
    }, ms);
  }

  readonly #onAbort = (): void => this.#stop({ status: "aborted" });

  #post(message: ToLane): void {
    this.#lent.lane.post(message);
  }

  #stop(why: LaneOutcome): void {
    if (this.#over || this.#stopped !== undefined) return;
    this.#stopped = why;
    // Tools hear of it now, not when the lane has answered.
    this.#ended.abort();
    this.#post({ type: "stop", run: this.#run });
    this.#grace = setTimeout(() => this.#finish(why, "replace"), GRACE_MS);
  }

  #receive(value: unknown): void {
    const message = readFromLane(value);
    if (message === undefined) return this.#forged();
    // A lane says that it is ready whenever it is; what belongs to another run is late.
    if (message.type === "ready" || message.run !== this.#run) return;
    if (message.type === "image") return this.#takeImage(message.image);
    if (this.#over) return;
    switch (message.type) {
      case "begun":
        // Once: a lane that says it again gets no more time.
        if (!this.#begun) this.#startClock(this.#options.limits.wallMs);
        this.#begun = true;
        return;
      case "logs":
        return this.#takeLogs(message.lines);
      case "call":
        return this.#takeCall(message);
      case "rest":
        return this.#pool.setResting(this.#lent, true);
      case "done":
        return this.#takeDone(message);
    }
  }

  /** What no honest lane sends: the engine is broken, or worse. */
  #forged(): void {
    this.#finish({ status: "crashed", message: "The lane sent what a lane may not send; it was ended." }, "replace");
  }

  #takeLogs(lines: readonly LogLine[]): void {
    for (const line of lines) {
      this.#outputBytes += Buffer.byteLength(line.text) + LOG_LINE_BYTES;
      if (this.#outputBytes > this.#options.limits.outputBytes) return this.#forged();
      this.#logs.push(line);
      try {
        this.#options.onLog?.(line);
      } catch {
        // Who listens has no say in the run.
      }
    }
  }

  #takeCall(message: Extract<FromLane, { type: "call" }>): void {
    const { call, namespace, name, args } = message;
    const { limits, functions } = this.#options;
    this.#toolCalls += 1;
    if (call !== this.#nextCall || this.#toolCalls > limits.toolCalls) return this.#forged();
    if (Buffer.byteLength(args) > limits.toolBytes) return this.#forged();
    this.#nextCall += 1;
    let parsed: Json;
    try {
      parsed = JSON.parse(args) as Json;
    } catch {
      return this.#forged();
    }
    if (this.#stopped !== undefined) return;
    const named = Object.hasOwn(functions, namespace) ? functions[namespace] : undefined;
    const run = named !== undefined && Object.hasOwn(named, name) ? named[name] : undefined;
    if (run === undefined) {
      const known = named === undefined ? "" : ` There are: ${Object.keys(named).join(", ")}.`;
      return this.#post({ type: "answer", run: this.#run, call, error: `There is no ${namespace}.${name}.${known}` });
    }
    const open: OpenCall = { call, namespace, name, args: parsed };
    void Promise.resolve()
      .then(() => this.#within(run, parsed, { signal: this.#ended.signal, call }))
      .then(
        (value) => this.#answered(open, value),
        (thrown: unknown) => this.#answer({ call, error: messageOf(thrown) }),
      );
  }

  #answered(open: OpenCall, value: Json | undefined | typeof SUSPEND): void {
    const { call, namespace, name } = open;
    if (value === SUSPEND) {
      if (!this.#options.mayPark) {
        return this.#answer({
          call,
          error: `${namespace}.${name} has to ask a person first, which cannot be done here.`,
        });
      }
      if (this.#over) return;
      this.#parked.set(call, open);
      this.#pool.setResting(this.#lent, false);
      return this.#post({ type: "park", run: this.#run, call });
    }
    let text: string | undefined;
    try {
      text = JSON.stringify(value);
    } catch {
      return this.#answer({ call, error: `The result of ${namespace}.${name} is not JSON.` });
    }
    const { toolBytes } = this.#options.limits;
    if (text === undefined || Buffer.byteLength(text) <= toolBytes) return this.#answer({ call, value: text });
    const what = `The result of ${namespace}.${name} has ${Buffer.byteLength(text)} bytes; ${toolBytes} are allowed.`;
    // The bridge's own functions are the guest's to handle: it can ask for less.
    if (namespace.startsWith("$")) return this.#answer({ call, error: what.replace(`${namespace}.`, "") });
    this.#stop({ status: "limit", limit: "toolBytes", message: `${what} Ask it for less.` });
  }

  #answer(answer: { call: number; value?: string | undefined; error?: string }): void {
    if (this.#over || this.#stopped !== undefined) return;
    this.#pool.setResting(this.#lent, false);
    this.#post({ type: "answer", run: this.#run, ...answer });
  }

  #takeImage(image: Image): void {
    if (this.#keeping === undefined) {
      this.#image = image;
      return;
    }
    this.#keeping(image);
    this.#giveBack("reuse");
  }

  /** A lane that does not hand the guest over keeps nobody waiting: the session goes on from the image before. */
  #loseImage(): void {
    this.#keeping?.(undefined);
    this.#giveBack("replace");
  }

  #takeDone(message: Extract<FromLane, { type: "done" }>): void {
    const { outcome, memoryBytes } = message;
    const cpuMs = Math.max(message.cpuMs, this.#options.used.cpuMs);
    if (outcome.status === "ok" && outcome.value !== undefined) {
      this.#outputBytes += Buffer.byteLength(outcome.value);
      if (this.#outputBytes > this.#options.limits.outputBytes) return this.#forged();
    }
    const parked = outcome.status === "suspended";
    if (parked && (this.#image === undefined || this.#parked.size === 0)) return this.#forged();
    // What has overflowed may be the stack of something that all runs of a lane share.
    const overflowed = outcome.status === "limit" && outcome.limit === "stack";
    const spent = outcome.status === "crashed" || overflowed || memoryBytes > LARGE_GUEST_BYTES;
    this.#finish(
      this.#stopped ?? outcome,
      spent ? "replace" : "reuse",
      cpuMs,
      message.keeps && this.#stopped === undefined,
    );
  }

  #exited(reason: string): void {
    clearTimeout(this.#grace);
    this.#keeping?.(undefined);
    this.#finish(this.#stopped ?? { status: "crashed", message: reason }, "replace");
  }

  #finish(outcome: LaneOutcome, fate: "reuse" | "replace", cpuMs = this.#options.used.cpuMs, keeps = false): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#wall);
    clearTimeout(this.#grace);
    this.#options.signal?.removeEventListener("abort", this.#onAbort);
    this.#ended.abort();
    let stays: Promise<Image | undefined> | undefined;
    if (keeps) {
      stays = new Promise((resolve) => (this.#keeping = resolve));
      this.#grace = setTimeout(() => this.#loseImage(), IMAGE_MS);
    } else {
      this.#giveBack(fate);
    }
    this.#resolve({
      outcome,
      logs: this.#logs,
      used: { cpuMs, toolCalls: this.#toolCalls, outputBytes: this.#outputBytes },
      nextCall: this.#nextCall,
      parked: [...this.#parked.values()],
      image: outcome.status === "suspended" ? this.#image : undefined,
      stays,
    });
  }

  #giveBack(fate: "reuse" | "replace"): void {
    clearTimeout(this.#grace);
    this.#keeping = undefined;
    this.#pool.release(this.#lent, fate);
  }
}

/** What a tool threw can be anything, also something that throws when it is looked at. */
function messageOf(thrown: unknown): string {
  try {
    return errorText(thrown).slice(0, LONGEST_ERROR);
  } catch {
    return "Unknown error occurred";
  }
}

/** Answers to calls that the snapshot does not know are a mistake of the caller. @throws PerdureError `bad_input` */
export function checkAnswers(
  answers: readonly { readonly call: number }[],
  parked: ReadonlyMap<number, OpenCall>,
): void {
  const seen = new Set<number>();
  for (const { call } of answers) {
    if (!parked.has(call)) throw new PerdureError("bad_input", `The snapshot has no open call ${call}.`);
    if (seen.has(call)) throw new PerdureError("bad_input", `There are two answers to call ${call}.`);
    seen.add(call);
  }
}
