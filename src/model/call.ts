import type { LanguageModel, LanguageModelStreamPart, TimeoutConfiguration, ToolSet } from "ai";
import { aborted, linkSignals, unlessAborted } from "../base/abort.ts";
import { PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { backOff, type Clock, sleep } from "../base/time.ts";
import type { AgentHost } from "../port.ts";
import type { CallResult } from "../ledger/charge.ts";
import type { Ledger, NewCall, OverBudget } from "../ledger/ledger.ts";
import type { OverBudgetAbove, Payers, ReservedAbove } from "../ledger/ledger.ts";
import { readUsage } from "../ledger/token-usage.ts";
import { describeProviderError, wasRefused } from "./provider-error.ts";
import type { SentFacts } from "../store/frame.ts";
import type { ChatErrorClassification } from "../store/usage.ts";
import { retryAfterMs } from "./provider-error.ts";

/** The longest wait between two tries: a clock that was set back must not make it longer than any policy asks for. */
const MAX_WAIT_MS = 10 * 60_000;

/** One part of what a model streams. */
export type ModelPart = LanguageModelStreamPart<ToolSet>;
/** The part that says how its answer ended. */
export type ModelEnd = Extract<ModelPart, { type: "model-call-end" }>;

/** What model calls are booked with. */
export interface Books {
  readonly host: AgentHost;
  readonly ledger: Ledger;
  /** Who pays for them besides the agent. */
  readonly payers: Payers | undefined;
  /** Cuts the call that is under way. */
  readonly signal: AbortSignal;
  /** What kind of error a call gave. */
  classify(error: unknown): Promise<ChatErrorClassification>;
}

/** An earlier try, and its name in the ledger. */
export type TriedCall = AttemptFact & { readonly id: string };

/** A model call, with all its tries. */
export interface BookedCall extends Pick<NewCall, "purpose" | "turn" | "step"> {
  /** Whose it is: of a view, its session. */
  readonly session: string;
  /** Tried in this order. */
  readonly models: readonly LanguageModel[];
  /** Further tries of one model after its first error. */
  readonly maxRetries?: number | undefined;
  /** How many tries there were, in earlier lives too, and those that count now. Default: those of this life. */
  tries?(): { readonly count: number; readonly facts: readonly TriedCall[] };
  /** Before each try: makes what is sent. Undefined: it was stopped meanwhile. */
  prepare(model: LanguageModel): Promise<ModelRequest | undefined>;
  /** The provider said that it is too long. @returns whether it is shorter now: then it is asked again, and that is no retry. */
  overflowed?(model: LanguageModel, id: string): Promise<boolean>;
  /** The transaction that reserves a try. Default: the host's own. */
  commit?<T>(work: () => T): T;
  /** Stores the end of a try. Default: at once. */
  settle?(write: () => void, result: CallResult): void;
  /** Held while nobody waits for the model. */
  working?(): Disposable;
}

/** What is sent in one try. */
export interface ModelRequest {
  readonly model: LanguageModel;
  readonly timeout: TimeoutConfiguration<never> | undefined;
  /** The most that it can use, in tokens. Asked again after those above were: it may have grown. */
  input(): number;
  readonly output: number;
  /** What is stored of it, as it would be sent now. @param bounded as in {@link ModelRequest.begin} */
  sent?(bounded: boolean): SentFacts | undefined;
  /** In the transaction that reserves it. @param seq its number in the ledger */
  reserved?(id: string, seq: number): void;
  /** It is reserved: who sends and reads it. @param bounded a budget counts on `output`: the answer must not be longer. */
  begin(id: string, bounded: boolean): ModelReader | Promise<ModelReader>;
}

/** Sends one try and reads what is streamed: `turn/step/model-call.ts` for a step, `summary-call.ts` for the rest. */
export interface ModelReader {
  open(signal: AbortSignal): Promise<{ readonly stream: AsyncIterable<ModelPart> }>;
  /** Each part but errors and the end. What it throws fails the try. */
  take(part: ModelPart): void | Promise<void>;
  /** The model has ended. @returns what is written in the transaction that settles the call. */
  ended(end: ModelEnd): () => void;
}

/** How a call ended, after all its tries. */
type CallEnd =
  | { readonly kind: "answered" }
  | { readonly kind: "stopped" }
  /** A budget does not allow it. */
  | { readonly kind: "over"; readonly over: OverBudget | OverBudgetAbove }
  /** `error` is what the last try of this life gave; undefined where there was none. */
  | { readonly kind: "failed"; readonly error: unknown; readonly errorClass: ChatErrorClassification };

const STOPPED = { kind: "stopped" } as const;
/** Nobody above has anything to say. */
const NOBODY: ReservedAbove = { ok: true, limited: false };

/**
 * Makes a model call, as often as {@link nextAttempt} says: each try is reserved in the ledger at its worst case, here and above,
 * and settled after. @throws PerdureError `bad_config` for bad budgets and prices; what `prepare` and `begin` throw.
 */
export async function callModel(books: Books, call: BookedCall): Promise<CallEnd> {
  const { host, signal } = books;
  const own: TriedCall[] = [];
  let lastError: unknown;
  for (;;) {
    const { count, facts } = call.tries?.() ?? { count: own.length, facts: own };
    const last = facts.at(-1);
    if (last?.errorClass === "context_overflow" && !signal.aborted) {
      const model = call.models[last.model];
      if (model !== undefined && (await call.overflowed?.(model, last.id)) === true) continue;
    }
    const next = nextAttempt(facts, { models: call.models.length, maxRetries: call.maxRetries });
    if (next.kind === "end") return { kind: "failed", error: lastError, errorClass: next.errorClass };
    await waitUntil(books, call, next.notBefore);
    if (signal.aborted) return STOPPED;
    const model = call.models[next.model];
    // JavaScript can leave it out.
    if (!model) throw new PerdureError("bad_config", "There is no model to call: getModel() returned nothing.");
    const request = await call.prepare(model);
    if (request === undefined) return STOPPED;
    const place = { attempt: count + 1, modelIndex: next.model };
    const reserved = await reserve(books, call, request, place);
    if ("kind" in reserved) return reserved;
    const { id } = reserved;
    const reader = await request.begin(id, reserved.bounded);
    const settle = async (result: CallResult, also?: () => void) => {
      const write = () => {
        books.ledger.settle(id, result);
        also?.();
      };
      if (call.settle === undefined) host.tx(write, "commit");
      else call.settle(write, result);
      await books.payers?.settle(id, result);
    };
    const tried = await read(books, reader, request.timeout);
    if (tried === undefined) {
      await settle({ outcome: "cut", usage: undefined });
      return STOPPED;
    }
    if ("end" in tried) {
      const also = reader.ended(tried.end);
      await settle({ outcome: "ok", usage: readUsage(tried.end.usage) }, also);
      return { kind: "answered" };
    }
    const { error } = tried;
    lastError = error;
    const errorClass = await books.classify(error);
    const wait = retryAfterMs(error, host.clock.now());
    await settle({
      ...{ outcome: "error", usage: undefined, error: describeProviderError(error, errorClass), errorClass },
      // A provider that refuses does so before it says anything.
      refused: tried.spoke ? false : wasRefused(error) || undefined,
      ...(wait !== undefined && { retryAfterMs: wait }),
    });
    const settledAt = host.clock.now();
    own.push({ id, model: next.model, outcome: "error", errorClass, retryAfterMs: wait ?? null, settledAt });
  }
}

async function waitUntil({ host, signal }: Books, call: BookedCall, at: number): Promise<void> {
  const wait = Math.min(at - host.clock.now(), MAX_WAIT_MS);
  if (wait <= 0) return;
  using _ = call.working?.();
  await sleep(host.clock, wait, signal).catch(() => {});
}

/** Reserves a try. Those who asked for the work are asked first: what is booked here is booked there. */
async function reserve(
  books: Books,
  { purpose, session, turn, step, ...call }: BookedCall,
  request: ModelRequest,
  place: Pick<NewCall, "attempt" | "modelIndex">,
): Promise<{ readonly id: string; readonly bounded: boolean } | CallEnd> {
  const { host, ledger, payers, signal } = books;
  for (;;) {
    const id = newId("call");
    const estimate = { input: request.input(), output: request.output };
    const booked: NewCall = {
      ...{ id, purpose, session, turn, step, estimate },
      ...place,
      model: nameOf(request.model),
    };
    const above = payers === undefined ? NOBODY : await askAbove(books, call, payers, booked);
    if (above === undefined) return STOPPED;
    if (!above.ok) return { kind: "over", over: above };
    let kept = false;
    let freed: Promise<void>;
    try {
      if (signal.aborted) return STOPPED;
      // What was said while they were asked is not in what they agreed to.
      if (request.input() > estimate.input) continue;
      const book = () => {
        const sent = request.sent?.(ledger.limited || above.limited);
        const found = ledger.reserve({ ...booked, sent });
        if (found.ok) request.reserved?.(id, found.seq);
        return found;
      };
      const verdict = call.commit?.(book) ?? host.tx(book, "commit");
      kept = verdict.ok;
      if (verdict.ok) return { id, bounded: ledger.limited || above.limited };
      if (!verdict.waits) return { kind: "over", over: verdict };
      ({ freed } = ledger);
    } finally {
      if (!kept) await payers?.release(id);
    }
    // Nobody is asked, and nothing refused, for what the calls of other turns may use at most and mostly do not.
    using _ = call.working?.();
    await unlessAborted(() => freed, signal);
  }
}

/** Undefined: it was stopped meanwhile. */
async function askAbove(
  { ledger, signal }: Books,
  call: Pick<BookedCall, "working">,
  payers: Payers,
  { id, step, attempt, model, modelIndex, estimate }: NewCall,
): Promise<ReservedAbove | OverBudgetAbove | undefined> {
  using _ = call.working?.();
  try {
    const price = ledger.priceOf(model);
    return await payers.reserve({ id, step, attempt, model, modelIndex, estimate, price }, signal);
  } catch (thrown) {
    if (signal.aborted) return undefined;
    if (!PerdureError.is(thrown, "host_stopped")) throw thrown;
    // The turn goes on at the next start. It must not end before this life does.
    await aborted(signal);
    return undefined;
  }
}

/** How a try ended; undefined: it was cut. */
type Read = { readonly end: ModelEnd } | { readonly error: unknown; readonly spoke: boolean } | undefined;

async function read({ host, signal }: Books, reader: ModelReader, timeout: ModelRequest["timeout"]): Promise<Read> {
  const limits = deadline(host.clock, signal, timeout);
  let spoke = false;
  let end: ModelEnd | undefined;
  try {
    const { stream } = await limits.within(reader.open(limits.signal));
    for await (const part of limits.each(stream)) {
      if (part.type === "error") throw part.error;
      if (part.type === "model-call-end") end = part;
      else {
        spoke ||= !SILENT.has(part.type);
        await reader.take(part);
      }
      if (signal.aborted) return undefined;
    }
    if (signal.aborted) return undefined;
    if (end === undefined) throw new Error("The model's stream ended before the model did.");
    return { end };
  } catch (error) {
    return signal.aborted ? undefined : { error, spoke };
  } finally {
    limits.end();
  }
}

/** The provider and the name of a model. */
export function named(model: LanguageModel): { provider: string; modelId: string } {
  if (typeof model !== "string") return { provider: model.provider, modelId: model.modelId };
  const at = model.indexOf("/");
  return at === -1
    ? { provider: "gateway", modelId: model }
    : { provider: model.slice(0, at), modelId: model.slice(at + 1) };
}

/** `provider/modelId` */
export function nameOf(model: LanguageModel): string {
  const { provider, modelId } = named(model);
  return `${provider}/${modelId}`;
}

/** One earlier try of a step. */
export interface AttemptFact {
  /** Its place in the list of models. */
  readonly model: number;
  /** `cut`: the process died, or nobody saw the end. */
  readonly outcome: "ok" | "error" | "cut";
  /** Of an error; null counts as `unknown`. */
  readonly errorClass: ChatErrorClassification | null;
  /** How long the provider asked to wait. */
  readonly retryAfterMs: number | null;
  /** When it ended, in milliseconds since the epoch. */
  readonly settledAt: number;
}

/** How often and how fast to try. */
export interface AttemptPolicy {
  /** How many models there are, the preferred one first. */
  readonly models: number;
  /** Further tries of one model after its first error. */
  readonly maxRetries?: number | undefined;
  /** The first wait; it doubles with each error of the same model. */
  readonly baseDelayMs?: number | undefined;
  /** Never wait longer: rather take the next model. */
  readonly maxDelayMs?: number | undefined;
}

/** What to do next in a step: call a model, not before a time (0: at once), or give up. */
type NextAttempt =
  | { readonly kind: "call"; readonly model: number; readonly notBefore: number }
  | { readonly kind: "end"; readonly errorClass: ChatErrorClassification };

const DEFAULT_RETRIES = 2;
const DEFAULT_BASE_DELAY_MS = 1000;
const DEFAULT_MAX_DELAY_MS = 60_000;
/** An error that nobody understands may be chance once. */
const UNKNOWN_RETRIES = 1;

/**
 * The next try of a step, from the earlier ones alone (oldest first), so that a process that takes over decides alike; no chance
 * in it. Start with the first model. What was **cut** is tried again at once, and is no retry. After **rate_limit** and
 * **transient** errors wait as long as the provider asked, else a base delay that doubles with each error of this model up to the
 * longest delay, and try the same model again, `maxRetries` times; if the provider asks for more than the longest delay, take the
 * next model at once. An **unknown** error is tried again once. After **fatal** and **context_overflow** errors, and when a
 * model's tries are used up, take the next model at once; never go back. No model left: the step ends with the class of the last
 * error.
 *
 * After a compaction for an overflow, give only the tries since then. An `ok` as the last fact means that its answer was of no
 * use to the caller: the same model is asked again, at once.
 * @throws PerdureError `bad_config` when there is no model.
 */
export function nextAttempt(facts: readonly AttemptFact[], policy: AttemptPolicy): NextAttempt {
  if (!(policy.models >= 1)) throw new PerdureError("bad_config", "There is no model to call: pass at least one.");
  const last = facts.at(-1);
  if (last === undefined) return { kind: "call", model: 0, notBefore: 0 };
  // The list may have become shorter since then.
  if (last.outcome !== "error") return { kind: "call", model: Math.min(last.model, policy.models - 1), notBefore: 0 };

  const errorClass = last.errorClass ?? "unknown";
  const wait = waitOf(last, errorsInARow(facts, last.model), errorClass, policy);
  if (wait !== undefined && last.model < policy.models) {
    return { kind: "call", model: last.model, notBefore: last.settledAt + wait };
  }
  const next = last.model + 1;
  return next < policy.models ? { kind: "call", model: next, notBefore: 0 } : { kind: "end", errorClass };
}

/** The errors of the last model since it was taken, or since it last answered. Cuts in between do not count. */
function errorsInARow(facts: readonly AttemptFact[], model: number): AttemptFact[] {
  const errors: AttemptFact[] = [];
  for (const fact of facts.toReversed()) {
    if (fact.model !== model || fact.outcome === "ok") break;
    if (fact.outcome === "error") errors.push(fact);
  }
  return errors;
}

/** How long to wait before the same model is tried again; undefined: it is not. */
function waitOf(
  last: AttemptFact,
  errors: readonly AttemptFact[],
  errorClass: ChatErrorClassification,
  policy: AttemptPolicy,
): number | undefined {
  const {
    maxRetries = DEFAULT_RETRIES,
    baseDelayMs = DEFAULT_BASE_DELAY_MS,
    maxDelayMs = DEFAULT_MAX_DELAY_MS,
  } = policy;
  if (errorClass === "fatal" || errorClass === "context_overflow") return undefined;
  if (errors.length > maxRetries) return undefined;
  if (errorClass === "unknown" && errors.filter(isUnknown).length > UNKNOWN_RETRIES) return undefined;
  if (last.retryAfterMs !== null) return last.retryAfterMs > maxDelayMs ? undefined : Math.max(0, last.retryAfterMs);
  return backOff(errors.length, baseDelayMs, maxDelayMs);
}

function isUnknown({ errorClass }: AttemptFact): boolean {
  return errorClass === null || errorClass === "unknown";
}

/** Parts that a stream brings before the model has said anything, and meanwhile. */
const SILENT: ReadonlySet<string> = new Set(["model-call-start", "model-call-response-metadata", "ping", "raw"]);

/** Bounds on the time of one model call. */
interface Deadline {
  /** Aborts with the turn, and when a bound is reached. */
  readonly signal: AbortSignal;
  /** Waits for the call to begin. Rejects when a bound is reached. */
  within<T>(work: Promise<T>): Promise<T>;
  /** The parts of its stream. Throws when a bound is reached. */
  each<T extends { readonly type: string }>(stream: AsyncIterable<T>): AsyncIterable<T>;
  /** The call is over: no bound holds any more. */
  end(): void;
}

/** The time bounds of one call: whole, to the first part, between parts; the reader's time does not count. Always call `end`. */
export function deadline(clock: Clock, turn: AbortSignal, timeout: TimeoutConfiguration<never> | undefined): Deadline {
  const bounds = typeof timeout === "number" ? { stepMs: timeout } : (timeout ?? {});
  const { chunkMs } = bounds;
  const firstMs = bounds.firstChunkMs ?? chunkMs;
  const wholes = [bounds.stepMs, bounds.totalMs].filter((ms) => ms !== undefined);
  const wholeMs = wholes.length === 0 ? undefined : Math.min(...wholes);
  if (wholeMs === undefined && firstMs === undefined) return { signal: turn, within, each: (s) => s, end() {} };

  const own = new AbortController();
  let late: (error: PerdureError) => void = () => {};
  const unlink = linkSignals([turn], own);
  const watch = (ms: number | undefined, what: string): (() => void) =>
    ms === undefined
      ? () => {}
      : clock.after(ms, () => {
          const error = new PerdureError("timeout", `The model ${what} for ${ms} ms.`);
          own.abort(error);
          late(error);
        });
  const failing = new Promise<never>((_resolve, reject) => (late = reject));
  failing.catch(() => {});
  const endWhole = watch(wholeMs, "did not finish");
  let endNext = watch(firstMs, "said nothing");
  return {
    signal: own.signal,
    within: (work) => Promise.race([work, failing]),
    async *each(stream) {
      const parts = stream[Symbol.asyncIterator]();
      try {
        for (;;) {
          const next = await Promise.race([parts.next(), failing]);
          if (next.done === true) return;
          const said = !SILENT.has(next.value.type);
          if (said) endNext();
          yield next.value;
          if (said) endNext = watch(chunkMs, "said nothing");
        }
      } finally {
        endNext();
        // Not awaited: a stream that says nothing would not end either.
        parts.return?.().catch(() => {});
      }
    },
    end() {
      endWhole();
      endNext();
      unlink();
    },
  };
}

function within<T>(work: Promise<T>): Promise<T> {
  return work;
}
