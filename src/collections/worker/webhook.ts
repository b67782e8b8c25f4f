import { PerdureError, errorText } from "../../base/error.ts";
import { reporter } from "../retry.ts";
import { startTimer, systemClock, within } from "../../base/time.ts";
import { AckLedger, WakePace, type Ack, type AckMode } from "./acks.ts";
import { callControl, fieldOf, parseWakePayload, readSubscription, refusal, wakeEpoch } from "./control.ts";
import type { ControlAnswer, ControlOptions, DurableStreamsWakePayload, SubscriptionFacts } from "./control.ts";
import { BEATS_PER_LEASE, type RunnerLifecycleAdapter, type RunnerState } from "./lifecycle.ts";
import { wakeVerifier, type WakeKey } from "./wake-signature.ts";

/**
 * When a delivery is answered. `request-bound`: when the work is over, or shortly before `maxRequestMs` (default 25 s).
 * `ack-immediate`: at once, with `status` (default 202), while work goes on. Both hold a lease and send heartbeats.
 */
export type WebhookExecutionMode =
  | { readonly type: "request-bound"; readonly maxRequestMs?: number }
  | { readonly type: "ack-immediate"; readonly status?: 200 | 202 };

/** What is posted to a callback. */
export interface WakeCallback {
  readonly wake_id: string;
  readonly generation: number;
  readonly acks?: readonly Ack[];
  readonly done?: boolean;
}

/** What `durableStreamsWebhookAdapter` needs to know. One of `jwksUrl`, `keys` and `verifySignature` must be given. */
interface DurableStreamsWebhookOptions extends ControlOptions {
  /** The server's keys: `<server>/v1/stream/__ds/jwks.json`. Taken from here and never from a delivery. */
  readonly jwksUrl?: string | URL;
  readonly keys?: readonly WakeKey[];
  /** Instead of the check of the signature: throws what is to be answered with 401. Gets the body as it came. */
  readonly verifySignature?: (request: Request, body: string) => Promise<void>;
  /** How far a delivery's time may be from this machine's clock. Default 5 min. */
  readonly toleranceMs?: number;
  /** The mode of `handleDurableStreamsWake`, unless it is given there. Default: `ack-immediate`. */
  readonly mode?: WebhookExecutionMode;
  /** Default: a third of the lease. */
  readonly heartbeatIntervalMs?: number;
  readonly acks?: AckMode;
  /** Posts a callback; for servers that are not reached under the address that they give. */
  readonly postCallback?: (
    wake: DurableStreamsWakePayload,
    body: WakeCallback,
    token: string,
  ) => Promise<ControlAnswer>;
  /** Looks up the subscription of a wake. Default: asks the server, beside the wake's callback. */
  readonly readSubscription?: (wake: DurableStreamsWakePayload) => Promise<SubscriptionFacts>;
}

/** Runs wakes of a Durable Streams server that come to a webhook. */
export interface DurableStreamsWebhookAdapter extends RunnerLifecycleAdapter<DurableStreamsWakePayload> {
  readonly mode: WebhookExecutionMode;
  /**
   * The wake that a request brings. Rejects with PerdureError: `not_allowed` (the signature), `bad_input` (the body),
   * `too_large`, or `disconnected` (no keys to check it with: worth another delivery).
   */
  verify(request: Request): Promise<DurableStreamsWakePayload>;
  /** Whether this process runs the wake, or has ended it: then a further delivery of it has no work. */
  isKnown(wake: DurableStreamsWakePayload): boolean;
}

/** Deliveries are small; a stranger's request need not be. */
const MAX_BODY_CHARS = 1_000_000;
const DEFAULT_TOLERANCE_MS = 5 * 60_000;
/** How many wakes are known again. A delivery is repeated within minutes. */
const REMEMBERED_WAKES = 1_000;

/**
 * Webhooks of Durable Streams servers (0.3.7). A delivery already holds the lease, so a claim is: no run of the same wake in this
 * process, and a callback that the server accepts. Two processes given the same wake get the same fence token: on a Durable
 * Stream, the second writer is refused, see `producerOf`.
 */
export function durableStreamsWebhookAdapter(options: DurableStreamsWebhookOptions): DurableStreamsWebhookAdapter {
  return new WebhookAdapter(options);
}

interface KnownWake {
  state: "running" | "over" | "given-up";
  tries: number;
  ledger: AckLedger;
  leaseMs: number;
}

class WebhookAdapter implements DurableStreamsWebhookAdapter {
  readonly mode: WebhookExecutionMode;
  readonly #options: DurableStreamsWebhookOptions;
  readonly #check: (request: Request, body: string) => Promise<void>;
  readonly #known = new Map<string, KnownWake>();
  readonly #pace = new WakePace();

  constructor(options: DurableStreamsWebhookOptions) {
    this.#options = options;
    this.mode = options.mode ?? { type: "ack-immediate" };
    this.#check = checkOf(options);
  }

  async verify(request: Request): Promise<DurableStreamsWakePayload> {
    const body = await request.text();
    if (body.length > MAX_BODY_CHARS) throw new PerdureError("too_large", "The delivery is too large to be a wake.");
    await this.#check(request, body);
    return parseWakePayload(body);
  }

  isKnown(wake: DurableStreamsWakePayload): boolean {
    const known = this.#known.get(wake.wake_id);
    return known !== undefined && known.state !== "given-up";
  }

  async claimWake(wake: DurableStreamsWakePayload) {
    if (this.isKnown(wake)) {
      throw new PerdureError("fenced", `The wake "${wake.wake_id}" is already claimed, in this very process.`);
    }
    const tries = (this.#known.get(wake.wake_id)?.tries ?? -1) + 1;
    const entry: KnownWake = { state: "running", tries, ledger: new AckLedger(wake.streams), leaseMs: 0 };
    this.#remember(wake.wake_id, entry);
    try {
      const facts = await this.#facts(wake);
      entry.leaseMs = facts.leaseMs;
      // Behind that look: if it is accepted, the subscription that was seen is the one that this wake is of.
      await this.#call(wake, {});
      return {
        fenceToken: String(wakeEpoch(facts, wake.generation, tries)),
        leaseMs: facts.leaseMs,
        heartbeatIntervalMs: this.#options.heartbeatIntervalMs ?? facts.leaseMs / BEATS_PER_LEASE,
        tails: entry.ledger.tails(),
      };
    } catch (error) {
      if (entry.state === "running") entry.state = "given-up";
      throw error;
    }
  }

  async heartbeat({ wake }: RunnerState<DurableStreamsWakePayload>): Promise<void> {
    await this.#call(wake, {});
  }

  async checkpoint(
    checkpoints: { source: string; cursor: string }[],
    { wake }: RunnerState<DurableStreamsWakePayload>,
  ): Promise<void> {
    const acks = this.#entry(wake).ledger.take(checkpoints);
    if (this.#options.acks === "at-once") await this.#call(wake, { acks });
  }

  async complete({ wake }: RunnerState<DurableStreamsWakePayload>, { done }: { done: boolean }): Promise<void> {
    const entry = this.#entry(wake);
    const acks = done ? entry.ledger.final() : [];
    if (this.#pace.mayGiveBack(wake.subscription_id, entry.ledger.hasMoved(acks), entry.leaseMs)) {
      // For the server "done" is: this wake is over. Whether another one comes at once is decided by what was acked.
      await this.#call(wake, acks.length === 0 ? { done: true } : { acks, done: true });
    } else if (acks.length > 0) await this.#call(wake, { acks });
    entry.state = "over";
  }

  /** Nothing is sent: the server wakes again when the lease has run out, or delivers again what was answered with 500. */
  async fail({ wake }: RunnerState<DurableStreamsWakePayload>): Promise<void> {
    this.#entry(wake).state = "given-up";
  }

  async #facts(wake: DurableStreamsWakePayload): Promise<SubscriptionFacts> {
    try {
      if (this.#options.readSubscription !== undefined) return await this.#options.readSubscription(wake);
      return await readSubscription(this.#options, wake.callback_url.replace(/\/callback$/, ""));
    } catch (error) {
      throw this.#judged(wake, error);
    }
  }

  async #call(wake: DurableStreamsWakePayload, more: { acks?: readonly Ack[]; done?: boolean }): Promise<void> {
    const body: WakeCallback = { wake_id: wake.wake_id, generation: wake.generation, ...more };
    const token = wake.callback_token;
    const answer = await (this.#options.postCallback?.(wake, body, token) ??
      callControl({ ...this.#options, headers: {} }, wake.callback_url, { method: "POST", body, token }));
    if (answer.status === 200 && fieldOf(answer.body, "ok") === true) return;
    throw this.#judged(wake, refusal(answer, `The callback of the wake "${wake.wake_id}"`));
  }

  /** A subscription that is gone has no wakes: what it has woken is over too. */
  #judged(wake: DurableStreamsWakePayload, error: unknown): unknown {
    const lost = PerdureError.is(error, "not_found") ? new PerdureError("fenced", error.message) : error;
    const entry = this.#known.get(wake.wake_id);
    if (PerdureError.is(lost, "fenced") && entry !== undefined) entry.state = "over";
    return lost;
  }

  #entry(wake: DurableStreamsWakePayload): KnownWake {
    const entry = this.#known.get(wake.wake_id);
    if (entry === undefined) throw new PerdureError("bad_state", `The wake "${wake.wake_id}" was not claimed.`);
    return entry;
  }

  #remember(wakeId: string, entry: KnownWake): void {
    this.#known.delete(wakeId);
    this.#known.set(wakeId, entry);
    if (this.#known.size <= REMEMBERED_WAKES) return;
    for (const [oldest, { state }] of this.#known) {
      if (state === "running") continue;
      this.#known.delete(oldest);
      return;
    }
  }
}

function checkOf(options: DurableStreamsWebhookOptions): (request: Request, body: string) => Promise<void> {
  const own = options.verifySignature;
  if (own !== undefined) {
    return async (request, body) => {
      try {
        await own(request, body);
      } catch (error) {
        throw PerdureError.is(error)
          ? error
          : new PerdureError("not_allowed", "The delivery was refused.", { cause: error });
      }
    };
  }
  if (options.jwksUrl === undefined && options.keys === undefined) {
    throw new PerdureError(
      "bad_config",
      "durableStreamsWebhookAdapter needs the server's keys: pass jwksUrl, keys or verifySignature.",
    );
  }
  const verify = wakeVerifier(options, options.toleranceMs ?? DEFAULT_TOLERANCE_MS);
  return (request, body) => verify(request.headers.get("webhook-signature"), body);
}

interface HandleWakeOptions {
  /** The delivery. Its body must not have been read: the signature is over its bytes. */
  readonly request: Request;
  readonly adapter: DurableStreamsWebhookAdapter;
  readonly mode?: WebhookExecutionMode;
  /**
   * Does the work: `runWithLifecycle(wake, adapter, …, { signal })`. May be slow; `signal` aborts when the request's time is
   * nearly over. What it throws is reported, and the work is retried.
   */
  readonly run: (wake: DurableStreamsWakePayload, context: { readonly signal: AbortSignal }) => Promise<unknown>;
  /** Keeps the process alive for work that goes on behind the answer, where a platform needs to be asked. */
  readonly waitUntil?: (work: Promise<unknown>) => void;
  /** Told what `run` threw, unless that was that others have the work. Default: the console. */
  readonly onError?: (error: unknown) => void;
}

const DEFAULT_REQUEST_MS = 25_000;
/** The part of a request's time that is kept for the end of the work: the last write and the last callback. */
const ENDING_SHARE = 0.2;
const MAX_ENDING_MS = 2_000;

/**
 * Answers a delivery of a Durable Streams server. Never throws. What is not the server's, or no wake, gets 401 or 400 and runs
 * nothing; a wake that this process runs or has ended gets 200 and does not run again.
 *
 * It never answers `{"done":true}`, which the server would take as the end of whatever wake is current by then: runs end by
 * callback only.
 */
export async function handleDurableStreamsWake(options: HandleWakeOptions): Promise<Response> {
  const { request, adapter } = options;
  if (request.method !== "POST") return answer(405, { error: "Wakes are posted." });
  let wake: DurableStreamsWakePayload;
  try {
    wake = await adapter.verify(request);
  } catch (error) {
    return answer(statusOf(error), { error: errorText(error) });
  }
  if (adapter.isKnown(wake)) return answer(200, { done: false, duplicate: true });
  const mode = options.mode ?? adapter.mode;
  return mode.type === "ack-immediate" ? runBehind(options, wake, mode.status ?? 202) : runWithin(options, wake, mode);
}

function runBehind(options: HandleWakeOptions, wake: DurableStreamsWakePayload, status: number): Response {
  const work = doWork(options, wake, new AbortController().signal);
  options.waitUntil?.(work);
  return answer(status, { accepted: true });
}

async function runWithin(
  options: HandleWakeOptions,
  wake: DurableStreamsWakePayload,
  { maxRequestMs = DEFAULT_REQUEST_MS }: { readonly maxRequestMs?: number },
): Promise<Response> {
  const stop = new AbortController();
  const ending = Math.min(maxRequestMs * ENDING_SHARE, MAX_ENDING_MS);
  const work = doWork(options, wake, stop.signal);
  const reason = new PerdureError("timeout", `The request's ${maxRequestMs} ms are nearly over.`);
  const stopTimer = startTimer(maxRequestMs - ending, () => stop.abort(reason));
  const outcome = await within(systemClock, maxRequestMs, work);
  stopTimer();
  if (outcome === undefined) options.waitUntil?.(work);
  if (outcome === "failed") return answer(500, { done: false, error: "The work of this wake has failed." });
  return answer(200, outcome === "over" && !stop.signal.aborted ? { ok: true } : { done: false });
}

/** Runs the work and reports what it throws. Never rejects. */
async function doWork(
  { run, onError }: HandleWakeOptions,
  wake: DurableStreamsWakePayload,
  signal: AbortSignal,
): Promise<"over" | "failed"> {
  try {
    await run(wake, { signal });
    return "over";
  } catch (error) {
    // Others have the work, or it was told to stop: neither is a failure.
    if (PerdureError.is(error, "fenced") || (signal.aborted && error === signal.reason)) return "over";
    reporter(onError)(error);
    return "failed";
  }
}

function statusOf(error: unknown): number {
  if (PerdureError.is(error, "not_allowed")) return 401;
  if (PerdureError.is(error, "too_large")) return 413;
  if (PerdureError.is(error, "disconnected")) return 503;
  return 400;
}

function answer(status: number, body: object): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json" } });
}
