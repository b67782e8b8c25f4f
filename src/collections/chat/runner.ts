import { InOrder } from "../../base/in-order.ts";
import { PerdureError } from "../../base/error.ts";
import type { Claims } from "../worker/claim.ts";
import { createPump, type Pump } from "../worker/pump.ts";
import { asError, maxAttemptsOf, nextDelay, notify, UNREACHED, type RetryPolicy } from "../retry.ts";
import { foregroundClock, pause, Timers, backOff, type Clock } from "../../base/time.ts";
import type { AgentCollectionsBase, AgentContext, AgentReply, AgentState } from "./config.ts";
import type { Mailbox, Turn } from "./mailbox.ts";
import { Seat, type Seated } from "./seat.ts";

interface RunnerOptions<TRow extends object> {
  readonly name: string;
  readonly collections: AgentCollectionsBase | undefined;
  /** Makes the mailbox; `wake` says that its rows may have changed. */
  mailbox(wake: () => void): Mailbox<TRow>;
  generate(turn: Turn<TRow>, mailbox: Mailbox<TRow>, context: AgentContext): Promise<string | AgentReply>;
  afterTurn?(context: AgentContext): Promise<void>;
  readonly retry: RetryPolicy;
  readonly claims: Claims | undefined;
  readonly live: boolean;
  onFailure(error: Error): void;
  readonly clock: Clock | undefined;
}

/** The wait after the backend has failed, doubled up to the second one. */
const PROBLEM_WAIT_MS = 200;
const PROBLEM_WAIT_MAX_MS = 10_000;

/** The wait after somebody else was quicker: enough for his rows to be seen. */
const REFUSED_WAIT_MS = 10;

const DISPOSE_WAIT_MS = 10_000;

/** An agent's loop: one turn behind the other, whoever asks for it. */
export class AgentRunner<TRow extends object> {
  readonly ready: Promise<void>;
  readonly seat: Seat;
  readonly #options: RunnerOptions<TRow>;
  readonly #mailbox: Mailbox<TRow>;
  readonly #pump: Pump;
  readonly #report: (error: Error) => void;
  readonly #disposal = new AbortController();
  /** Rows that wait before their next try, each for its timer. Timers end waits, never a look at a clock: those two
   * may differ by a part of a millisecond, and nobody would look again. */
  readonly #waits = new Map<string, object>();
  readonly #timers: Timers;
  readonly #waiters = new Set<() => void>();
  /** How often an answer was suspended and due again at once. */
  readonly #suspensions = new Map<string, number>();
  /** Nothing is done before its timer: another runner works, or the backend has failed. */
  #pause: object | undefined;
  #problems = 0;
  #turns = 0;
  readonly #order = new InOrder();
  /** `isAnswered`: it is being stored; that its rows are over by now is its own doing. */
  #current: { readonly turn: Turn<TRow>; readonly abort: AbortController; isAnswered: boolean } | undefined;
  #isReady = false;
  #isStandby = false;

  constructor(options: RunnerOptions<TRow>) {
    this.#options = options;
    this.#report = (error) => notify(() => options.onFailure(error));
    const { clock = foregroundClock } = options;
    this.#timers = new Timers(clock);
    this.#pump = createPump({
      poll: async () => {
        if (this.#due().length === 0) return { later: true };
        await this.#cycle(this.#disposal.signal);
        return "again";
      },
      clock,
      retry: UNREACHED,
      onError: this.#report,
    });
    this.seat = new Seat(options.name, options.claims, () => this.#resume());
    this.#mailbox = options.mailbox(() => this.#wake());
    this.ready = Promise.all([this.#mailbox.ready, this.seat.ready]).then(() => {
      this.#isReady = true;
      this.#wake();
    });
    // Whoever awaits it learns of it; nobody must.
    this.ready.catch((error: unknown) => this.#report(asError(error)));
  }

  get state(): AgentState {
    if (this.#disposal.signal.aborted) return "disposed";
    if (!this.#isReady) return "starting";
    if (this.#current !== undefined) return "working";
    return this.#isStandby ? "standby" : "idle";
  }

  hasPendingWork(): boolean {
    return this.#mailbox.pending().length > 0;
  }

  /** Runs one turn, or waits until somebody has. */
  async runCycle(signal: AbortSignal): Promise<void> {
    await this.ready;
    const before = this.#turns;
    while (!signal.aborted && !this.#disposal.signal.aborted && this.hasPendingWork()) {
      const changed = this.#changed(signal);
      await this.#cycle(signal);
      if (this.#turns !== before) return;
      await changed;
    }
  }

  async dispose(): Promise<void> {
    if (this.#disposal.signal.aborted) return;
    this.#disposal.abort(new PerdureError("agent_gone", `The agent "${this.#options.name}" was disposed.`));
    this.#timers.end();
    this.#wakeWaiters();
    // Bounded as a whole: a callback that awaits this very promise would wait for itself, a lost backend for ever.
    const ended = new AbortController();
    const over = pause(DISPOSE_WAIT_MS, ended.signal);
    const steps = [
      () => this.#pump.dispose(),
      () => this.#order.idle(),
      () => this.seat.dispose(),
      () => this.#mailbox.dispose(),
    ];
    for (const step of steps) {
      const done = step().catch((error: unknown) => this.#report(asError(error)));
      await Promise.race([over, done]);
    }
    ended.abort();
  }

  /** Rows or what belongs to them may have changed. */
  #wake(): void {
    const current = this.#current;
    if (current !== undefined && !current.isAnswered && !current.abort.signal.aborted) {
      const lost = this.#mailbox.lost(current.turn);
      if (lost !== undefined) current.abort.abort(lost);
    }
    this.#wakeWaiters();
    if (this.#options.live && this.#isReady) this.#pump.wake();
  }

  /** The seat may be free: no reason to wait any longer. */
  #resume(): void {
    if (this.#isStandby) this.#pause = undefined;
    if (this.#isReady) this.#wake();
  }

  #wakeWaiters(): void {
    for (const waiter of this.#waiters) waiter();
    this.#waiters.clear();
  }

  /** Resolves at the next wake. */
  #changed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = () => {
        signal.removeEventListener("abort", end);
        resolve();
      };
      this.#waiters.add(end);
      signal.addEventListener("abort", end, { once: true });
    });
  }

  /** Calls `end`, then wakes. */
  #wakeIn(ms: number, end: () => void): void {
    this.#timers.after(ms, () => {
      end();
      this.#wake();
    });
  }

  #due(): TRow[] {
    if (!this.#isReady || this.#pause !== undefined) return [];
    const pending = this.#mailbox.pending();
    if (this.#waits.size > 0) {
      const there = new Set(pending.map((row) => this.#mailbox.idOf(row)));
      for (const id of this.#waits.keys()) if (!there.has(id)) this.#waits.delete(id);
    }
    return pending.filter((row) => !this.#waits.has(this.#mailbox.idOf(row)));
  }

  #cycle(signal: AbortSignal): Promise<void> {
    return this.#order.run(() => this.#once(signal));
  }

  async #once(signal: AbortSignal): Promise<void> {
    if (signal.aborted || this.#disposal.signal.aborted || this.#due().length === 0) return;
    try {
      const seated = await this.seat.take(AbortSignal.any([signal, this.#disposal.signal]));
      if ("retryInMs" in seated) return this.#standBy(seated.retryInMs);
      this.#isStandby = false;
      const max = maxAttemptsOf(this.#options.retry);
      const turn = await this.#begin(max, seated);
      if (turn === undefined) this.#pauseFor(REFUSED_WAIT_MS);
      else await this.#run(turn, max, seated, signal);
      this.#problems = 0;
    } catch (thrown) {
      if (signal.aborted || this.#disposal.signal.aborted) return;
      this.#report(asError(thrown));
      this.#pauseFor(backOff(++this.#problems, PROBLEM_WAIT_MS, PROBLEM_WAIT_MAX_MS));
    } finally {
      if (this.#due().length === 0) this.seat.rest();
    }
  }

  async #begin(max: number, seated: Seated): Promise<Turn<TRow> | undefined> {
    const rows = this.#mailbox.batch(this.#due(), max);
    return rows.length === 0 ? undefined : this.#mailbox.begin(rows, seated.fence);
  }

  #standBy(retryInMs: number): void {
    this.#isStandby = true;
    this.#pauseFor(retryInMs);
  }

  #pauseFor(ms: number): void {
    const pause = {};
    this.#pause = pause;
    this.#wakeIn(ms, () => {
      if (this.#pause === pause) this.#pause = undefined;
    });
  }

  async #run(turn: Turn<TRow>, max: number, seated: Seated, asked: AbortSignal): Promise<void> {
    const { name, collections } = this.#options;
    const abort = new AbortController();
    const stops = [asked, this.#disposal.signal, ...(seated.signal === undefined ? [] : [seated.signal])];
    const stopped = AbortSignal.any(stops);
    const stop = () => abort.abort(stopReason(name, stopped.reason));
    if (stopped.aborted) stop();
    stopped.addEventListener("abort", stop, { once: true });
    const { signal } = abort;
    const context: AgentContext = {
      agentName: name,
      collections,
      signal,
      generationId: turn.generationId,
      attempt: turn.attempt,
      callers: turn.callers,
      fence: seated.fence,
    };
    const current = { turn, abort, isAnswered: false };
    this.#current = current;
    try {
      const lost = this.#mailbox.lost(turn);
      if (lost !== undefined) throw lost;
      if (turn.attempt > max) throw cutOff(name, max);
      const reply = readReply(name, await this.#options.generate(turn, this.#mailbox, context));
      signal.throwIfAborted();
      current.isAnswered = true;
      if (reply.outcome === "suspended") await this.#suspend(turn, seated);
      else await this.#store(turn, reply, context);
    } catch (thrown) {
      // What a run that was stopped throws or returns says nothing; why it was stopped does.
      await this.#missed(turn, asError(signal.aborted ? signal.reason : thrown), max, context);
    } finally {
      stopped.removeEventListener("abort", stop);
      this.#current = undefined;
      this.#turns++;
    }
  }

  /** An answer that is suspended again and again, and still due, is asked for ever more rarely. */
  async #suspend(turn: Turn<TRow>, seated: Seated): Promise<void> {
    await this.#mailbox.handBack(turn, "suspended", seated.fence);
    const times = this.#suspensions.get(turn.generationId) ?? 0;
    const due = new Set(this.#mailbox.pending().map((row) => this.#mailbox.idOf(row)));
    if (!turn.rows.some((row) => due.has(this.#mailbox.idOf(row))))
      return void this.#suspensions.delete(turn.generationId);
    this.#suspensions.set(turn.generationId, times + 1);
    if (times > 0) this.#wait(turn, backOff(times + 1, PROBLEM_WAIT_MS, PROBLEM_WAIT_MAX_MS));
  }

  #wait(turn: Turn<TRow>, ms: number): void {
    const wait = {};
    const ids = turn.rows.map((row) => this.#mailbox.idOf(row));
    for (const id of ids) this.#waits.set(id, wait);
    this.#wakeIn(ms, () => {
      for (const id of ids) if (this.#waits.get(id) === wait) this.#waits.delete(id);
    });
  }

  async #store(turn: Turn<TRow>, reply: AgentReply, context: AgentContext): Promise<void> {
    this.#suspensions.delete(turn.generationId);
    if (!(await this.#mailbox.store(turn, reply, context))) {
      throw (
        this.#mailbox.lost(turn) ??
        new PerdureError("fenced", `Another runner of "${this.#options.name}" has answered.`)
      );
    }
    try {
      await this.#options.afterTurn?.(context);
    } catch (error) {
      if (!context.signal.aborted) this.#report(asError(error));
    }
  }

  /** A try that has come to nothing. */
  async #missed(turn: Turn<TRow>, error: Error, max: number, context: AgentContext): Promise<void> {
    if (PerdureError.is(error, "fenced")) return this.#report(error);
    const isStopped = context.signal.aborted && !PerdureError.is(error, "cancelled");
    if (isStopped) return this.#mailbox.handBack(turn, "disposed", context.fence);
    if (PerdureError.is(error, "cancelled")) return this.#giveUp(turn, error, context);
    this.#report(error);
    const delay = turn.attempt >= max ? undefined : nextDelay(this.#options.retry, turn.attempt, error);
    if (delay === undefined) return this.#giveUp(turn, error, context);
    this.#wait(turn, delay);
    await this.#mailbox.failed(turn, error, context.fence);
  }

  #giveUp(turn: Turn<TRow>, error: Error, context: AgentContext): Promise<void> {
    this.#suspensions.delete(turn.generationId);
    return this.#mailbox.giveUp(turn, error, context);
  }
}

/** A run that is only told to stop here goes on later: its calls of tools must not be taken for unwanted. */
function stopReason(name: string, reason: unknown): PerdureError {
  if (PerdureError.is(reason)) return reason;
  return new PerdureError("bad_state", `The agent "${name}" was told to stop; it continues later.`, { cause: reason });
}

function cutOff(name: string, max: number): PerdureError {
  return new PerdureError(
    "limit",
    `The agent "${name}" was cut off ${max} times while it answered this message, and does not try again.`,
  );
}

/** A generate function's result as an answer to store or a suspended one. Throws PerdureError `call_failed` for anything else. */
function readReply(agentName: string, result: string | AgentReply): AgentReply {
  if (typeof result === "string") {
    if (result !== "") return { content: result };
    throw new PerdureError(
      "call_failed",
      `generate of the agent "${agentName}" returned an empty string: chat() does so when it stops for an approval ` +
        `or a tool of a client. Return { content: "", outcome: "completed" } if the answer is really empty.`,
    );
  }
  const outcome = result.outcome ?? "completed";
  if (outcome === "suspended") return result;
  if (outcome === "completed" && typeof result.content === "string") return result;
  throw new PerdureError(
    "call_failed",
    `generate of the agent "${agentName}" returned no answer: its outcome is "${outcome}".`,
  );
}
