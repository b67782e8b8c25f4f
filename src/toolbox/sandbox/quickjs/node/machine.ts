import { JSException } from "quickjs-wasi";
import type { LimitName, LogLine } from "../../sandbox.ts";
import type { FromLane, Image, LaneAnswer, LaneOutcome, ToLane } from "../message.ts";
import type { HostSide } from "./boot-guest.ts";
import { explainThrown } from "./explain.ts";
import { GuestOutput } from "./guest-output.ts";
import { GuestMemoryError, GuestVm, type GuestVmOptions, type Tokens } from "./guest-vm.ts";
import { moduleSource } from "./module-source.ts";
import { rewriteImports } from "../rewrite-imports.ts";
import { mayBePlain, plainBody, shapesOf } from "./source.ts";
import { isStripperBroken, TOO_DEEP } from "./strip-types.ts";
import { GuestTimers } from "./timers.ts";

type Task = Extract<ToLane, { type: "start" | "resume" | "invoke" }>;

const JOBS_PER_LOOK = 32;
/** Who waits for less counts as one who computes: to say so each time takes a fifth of what a short call takes. */
const REST_AFTER_MS = 2;

interface Meta {
  readonly tokens: Tokens;
  readonly timers: readonly [number, number][];
  readonly parked: readonly number[];
}

/** Milliseconds of this thread's own computing where Node can tell, of the clock where it cannot. */
const cpuNow: () => number =
  typeof process.threadCpuUsage === "function"
    ? () => {
        const { user, system } = process.threadCpuUsage();
        return (user + system) / 1_000;
      }
    : () => performance.now();

/** One run in a lane: the guest, its limits, its open calls and its timers. Ends exactly once, by a `done` message. */
export class Machine {
  readonly #task: Task;
  readonly #post: (message: FromLane) => void;
  readonly #output: GuestOutput;
  readonly #timers = new GuestTimers((id) => this.#work(() => this.#guest?.fire(id)));
  /** Calls that wait for an answer, and whether somebody has to be asked first. */
  readonly #open = new Map<number, { parked: boolean }>();
  #deadline = Infinity;
  readonly #keeps: boolean;
  #guest: GuestVm | undefined;
  #ended = false;
  #over: { readonly limit: LimitName; readonly message: string } | undefined;
  #cpuMs: number;
  #calls: number;
  #jobs = 0;
  /** How often the guest was let to work. */
  #turn = 0;
  #resting: NodeJS.Timeout | undefined;
  /** Never, while the guest does not compute: what the engine does by itself is on nobody's account. */
  #enteredAt = Infinity;

  constructor(task: Task, post: (message: FromLane) => void) {
    this.#task = task;
    this.#post = post;
    this.#keeps = task.type === "invoke" || (task.type === "start" && task.keep);
    this.#cpuMs = task.used.cpuMs;
    this.#calls = task.used.toolCalls;
    this.#output = new GuestOutput(task.used.outputBytes, task.limits.outputBytes, (lines) =>
      post({ type: "logs", run: task.run, lines }),
    );
  }

  /** Never rejects. */
  async begin(): Promise<void> {
    try {
      if (this.#task.type === "start") await this.#start(this.#task);
      else await this.#wake(this.#task);
    } catch (thrown) {
      this.#broken(thrown);
    }
  }

  answer(answer: LaneAnswer): void {
    if (!this.#open.delete(answer.call)) return;
    this.#work(() => this.#guest?.answer(answer.call, answer.error === undefined, answer.error ?? answer.value));
  }

  park(call: number): void {
    const open = this.#open.get(call);
    if (open !== undefined) open.parked = true;
    this.#work(() => undefined);
  }

  stop(): void {
    this.#end({ status: "aborted" });
  }

  async #start(task: Extract<Task, { type: "start" }>): Promise<void> {
    const config = `{"input":${task.input},${JSON.stringify(task.world).slice(1)}`;
    const guest = await GuestVm.create(this.#vmOptions(), config);
    if (this.#ended) return guest.dispose();
    this.#beginWith(guest);
    const untyped = this.#enter(() => this.#startCode(guest, task));
    if (untyped !== undefined) return this.#end({ status: "untyped", message: untyped });
    this.#work(() => undefined);
  }

  /** Starts the code in the shape that fits. Returns why its types cannot be taken off, if so. */
  #startCode(guest: GuestVm, task: Extract<Task, { type: "start" }>): string | undefined {
    const given = rewriteImports(task.code);
    if (task.language === "js" || mayBePlain(given)) {
      if (this.#startPlain(guest, given, task.language === "js")) return undefined;
    }
    const plain = plainBody(given);
    if (!plain.ok) return plain.message;
    this.#startPlain(guest, plain.code, true);
    return undefined;
  }

  /** False when the code is no JavaScript, unless it has to be: then what the engine says to it is thrown. */
  #startPlain(guest: GuestVm, code: string, mustBe: boolean): boolean {
    const { expression, body } = shapesOf(code);
    if (guest.compiles(expression)) {
      guest.begin(expression, true);
      return true;
    }
    if (mustBe) guest.check(body);
    else if (!guest.compiles(body)) return false;
    guest.begin(body, false);
    return true;
  }

  async #wake(task: Extract<Task, { type: "resume" | "invoke" }>): Promise<void> {
    const meta = JSON.parse(task.image.meta) as Meta;
    const guest = await GuestVm.restore(this.#vmOptions(), task.image, meta.tokens);
    if (this.#ended) return guest.dispose();
    this.#beginWith(guest);
    for (const [id, ms] of meta.timers) this.#timers.set(id, ms, true);
    if (task.type === "invoke") return this.#work(() => guest.invoke(task.path, task.args));
    for (const call of meta.parked) this.#open.set(call, { parked: true });
    const answers = task.answers.filter((answer) => this.#open.delete(answer.call));
    this.#work(() => {
      for (const { call, value, error } of answers) guest.answer(call, error === undefined, error ?? value);
    });
  }

  /** From here on the clock runs: what it takes to set up an engine is not the guest's. */
  #beginWith(guest: GuestVm): void {
    this.#guest = guest;
    this.#deadline = performance.now() + this.#task.limits.wallMs;
    this.#post({ type: "begun", run: this.#task.run });
  }

  #vmOptions(): GuestVmOptions {
    const { limits, modules, engine } = this.#task;
    return {
      engine,
      memoryMB: limits.memoryMB,
      host: this.#hostSide(),
      modules: moduleSource(modules),
      interrupted: () => this.#isOver(),
    };
  }

  #hostSide(): HostSide {
    const { run, limits } = this.#task;
    return {
      call: (call, namespace, name, args) => {
        if (this.#over !== undefined || this.#ended) return;
        this.#calls += 1;
        if (this.#calls > limits.toolCalls) {
          return this.#exceed("toolCalls", `The code made more than ${limits.toolCalls} tool calls.`);
        }
        const bytes = Buffer.byteLength(args);
        if (bytes > limits.toolBytes) {
          const what = `The arguments of ${namespace}.${name} have ${bytes} bytes`;
          return this.#exceed("toolBytes", `${what}; ${limits.toolBytes} are allowed.`);
        }
        this.#open.set(call, { parked: false });
        this.#output.flush();
        this.#post({ type: "call", run, call, namespace, name, args });
      },
      log: (level, text) => {
        if (this.#over !== undefined || this.#ended) return;
        if (!this.#output.add(level as LogLine["level"], text)) this.#tooMuch();
      },
      setTimer: (id, ms, repeats) => {
        if (this.#ended || this.#timers.set(id, ms, repeats)) return;
        this.#exceed("toolCalls", "The code has too many timers at once.");
      },
      clearTimer: (id) => this.#timers.clear(id),
    };
  }

  #tooMuch(): void {
    const { outputBytes } = this.#task.limits;
    this.#exceed("output", `Logs and result together have more than ${outputBytes} bytes. Print and return less.`);
  }

  #exceed(limit: LimitName, message: string): void {
    this.#over ??= { limit, message };
  }

  /** Asked by the engine while the guest computes. */
  #isOver(): boolean {
    if (this.#over !== undefined) return true;
    const { cpuMs, wallMs } = this.#task.limits;
    if (this.#cpuMs + cpuNow() - this.#enteredAt > cpuMs) {
      this.#exceed("cpu", `The code computed for more than ${cpuMs} ms.`);
    } else if (performance.now() > this.#deadline) {
      this.#exceed("wall", `The code ran for more than ${wallMs} ms.`);
    }
    return this.#over !== undefined;
  }

  /** Asked between jobs. To look at the clocks takes longer than most jobs do; a long job is asked by the engine. */
  #isOverAfterJob(): boolean {
    if (this.#over !== undefined) return true;
    this.#jobs += 1;
    return this.#jobs % JOBS_PER_LOOK === 0 && this.#isOver();
  }

  /** Runs something inside of the guest, on the guest's account. */
  #enter<T>(inside: () => T): T {
    this.#enteredAt = cpuNow();
    try {
      return inside();
    } finally {
      this.#cpuMs += cpuNow() - this.#enteredAt;
      this.#enteredAt = Infinity;
    }
  }

  /** Lets the guest work, then looks at where it stands. */
  #work(first: () => void): void {
    if (this.#ended) return;
    this.#turn += 1;
    try {
      this.#enter(() => {
        first();
        this.#guest?.drain(() => this.#isOverAfterJob());
      });
      this.#look();
    } catch (thrown) {
      this.#broken(thrown);
    }
  }

  #look(): void {
    const guest = this.#guest;
    if (guest === undefined || this.#ended) return;
    if (this.#over !== undefined) return this.#end({ status: "limit", ...this.#over });
    const outcome = guest.outcome();
    if (outcome?.ok === false) return this.#end(this.#enter(() => explainThrown(guest.explain(outcome.value))));
    if (outcome !== undefined) return this.#succeed(outcome.value);
    if (this.#awaitsAnswer() || this.#timers.pending) return this.#rest();
    if (this.#open.size > 0) return this.#suspend(guest);
    if (this.#timers.repeating) return this.#rest();
    this.#end({
      status: "error",
      name: "Error",
      message: "The code waits for a promise that nothing can settle any more.",
    });
  }

  /** Whether a call is open that is not parked. Asked after each answer, so it must not look at all of them. */
  #awaitsAnswer(): boolean {
    for (const call of this.#open.values()) if (!call.parked) return true;
    return false;
  }

  #succeed(value: Parameters<GuestVm["encode"]>[1]): void {
    const guest = this.#guest;
    if (guest === undefined) return;
    const how = this.#task.type === "start" && this.#task.keep ? "keep" : "encode";
    const text = this.#enter(() =>
      guest.encode(how, value, (length) => {
        if (length > this.#output.left) this.#tooMuch();
        return this.#over !== undefined;
      }),
    );
    if (text !== undefined && Buffer.byteLength(text) > this.#output.left) this.#tooMuch();
    if (this.#over !== undefined) return this.#end({ status: "limit", ...this.#over });
    this.#warnOfOpenCalls();
    this.#end({ status: "ok", value: text });
  }

  /** A forgotten `await` is the likeliest mistake, and nothing else would show it. */
  #warnOfOpenCalls(): void {
    const { size } = this.#open;
    if (size === 0) return;
    const what = size === 1 ? "1 call was" : `${size} calls were`;
    this.#output.add("warn", `${what} not finished when the code ended, and went on for nothing. Await each call.`);
  }

  #suspend(guest: GuestVm): void {
    this.#output.flush();
    const { image, tokens } = guest.image(true);
    const meta: Meta = { tokens, timers: this.#timers.list(), parked: [...this.#open.keys()] };
    this.#postImage({ ...image, meta: JSON.stringify(meta) });
    this.#end({ status: "suspended" });
  }

  /** Says that the guest waits, when it has done so for a while. Only here is it asked, so it never computes meanwhile. */
  #rest(): void {
    this.#output.flush();
    const turn = this.#turn;
    this.#resting ??= setTimeout(() => {
      this.#resting = undefined;
      if (turn === this.#turn) this.#post({ type: "rest", run: this.#task.run });
      else this.#rest();
    }, REST_AFTER_MS);
  }

  /** Something was thrown that is not a rejection of the guest's own promise. */
  #broken(thrown: unknown): void {
    if (this.#over !== undefined) return this.#end({ status: "limit", ...this.#over }, "throw away");
    const memory = `The code needs more than ${this.#task.limits.memoryMB} MB of memory.`;
    const guest = this.#guest;
    if (thrown instanceof JSException && guest !== undefined) {
      try {
        return this.#end(this.#enter(() => explainThrown(guest.explain(thrown.handle))));
      } catch {
        // Too little left to say what it is.
        if (this.#over === undefined) this.#exceed("memory", memory);
        return this.#end({ status: "limit", ...(this.#over ?? { limit: "memory", message: memory }) }, "throw away");
      }
    }
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    if (thrown instanceof GuestMemoryError || /malloc|out of memory/.test(message)) {
      return this.#end({ status: "limit", limit: "memory", message: memory }, "throw away");
    }
    if (thrown instanceof RangeError) {
      const deep = "The code calls itself, or nests its data, too deeply.";
      return this.#end({ status: "limit", limit: "stack", message: deep }, "throw away");
    }
    this.#end({ status: "crashed", message: `The engine failed: ${message}` }, "throw away");
  }

  #end(reached: LaneOutcome, engine: "reuse" | "throw away" = "reuse"): void {
    if (this.#ended) return;
    // A lane that ends like this is ended too: nobody else gets this stripper.
    const outcome: LaneOutcome = isStripperBroken() ? { status: "limit", limit: "stack", message: TOO_DEEP } : reached;
    this.#ended = true;
    clearTimeout(this.#resting);
    this.#timers.clearAll();
    this.#output.flush();
    const guest = this.#guest;
    this.#guest = undefined;
    const stays =
      this.#keeps && (outcome.status === "ok" || (outcome.status === "error" && this.#task.type === "invoke"));
    this.#post({
      type: "done",
      run: this.#task.run,
      outcome,
      cpuMs: this.#cpuMs,
      memoryBytes: guest?.memoryBytes ?? 0,
      keeps: stays,
    });
    // A broken engine must not be touched again, and one that is dropped whole needs no cleaning up.
    if (engine === "throw away" || guest === undefined) return;
    if (stays) {
      guest.rest();
      // A thread hands its memory over as it is; through a pipe less is more.
      const { image, tokens } = guest.image(this.#task.engine === undefined);
      const meta: Meta = { tokens, timers: [], parked: [] };
      this.#postImage({ ...image, meta: JSON.stringify(meta) });
    }
    guest.dispose();
  }

  #postImage(image: Image): void {
    this.#post({ type: "image", run: this.#task.run, image });
  }
}
