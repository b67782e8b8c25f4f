import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import { AckLedger, WakePace, type AckMode } from "./acks.ts";
import {
  callControl,
  readStream,
  readSubscription,
  refusal,
  streamPath,
  streamUrl,
  subscriptionUrl,
  wakeEpoch,
} from "./control.ts";
import type { ControlOptions, SubscriptionFacts } from "./control.ts";
import { BEATS_PER_LEASE, runWithLifecycle } from "./lifecycle.ts";
import type { RunnerClaim, RunnerLifecycleAdapter, RunnerSession, RunnerState } from "./lifecycle.ts";
import { createPump, type PumpOutcome } from "./pump.ts";
import { reporter } from "../retry.ts";
import { ensureWakeSubscription } from "./subscription.ts";

/** "There may be work": what a worker of a pull-wake subscription claims with. */
export interface PullWake {
  readonly subscription_id: string;
}

interface PullWakeOptions extends ControlOptions {
  /** The server: `http://host:4437`. */
  readonly baseUrl: string | URL;
  readonly subscriptionId: string;
  /** This worker's name, for people. */
  readonly worker: string;
  /** Default: a third of the lease. */
  readonly heartbeatIntervalMs?: number;
  readonly acks?: AckMode;
}

interface Claimed {
  readonly fenceToken: string;
  readonly wake_id: string;
  readonly generation: number;
  readonly token: string;
  readonly leaseMs: number;
  readonly ledger: AckLedger;
}

/**
 * Pull-wake subscriptions of Durable Streams servers (0.3.7), which give a wake to one worker. `claimWake` rejects with `fenced`
 * when another worker has it or there is no work, `not_found` when the server forgot the subscription.
 */
export function pullWakeAdapter(options: PullWakeOptions): RunnerLifecycleAdapter<PullWake> {
  return new PullAdapter(options);
}

class PullAdapter implements RunnerLifecycleAdapter<PullWake> {
  readonly #options: PullWakeOptions;
  readonly #url: string;
  /** The latest wake. The server gives the next one only after the last is over, so a lost wake is dropped at the next claim. */
  #current: Claimed | undefined;
  readonly #pace = new WakePace();

  constructor(options: PullWakeOptions) {
    this.#options = options;
    this.#url = subscriptionUrl(options.baseUrl, options.subscriptionId);
  }

  async claimWake(_wake: PullWake, { signal }: { readonly signal: AbortSignal }): Promise<RunnerClaim> {
    // Before the claim: a subscription that is made again in between makes the claim fail or is this old.
    const facts = await readSubscription(this.#options, this.#url);
    const body = { worker: this.#options.worker };
    const answer = await callControl(this.#options, `${this.#url}/claim`, { method: "POST", body, signal });
    if (answer.status !== 200) throw refusal(answer, `The claim of "${this.#options.subscriptionId}"`);
    const claimed = readClaim(answer.body, facts);
    this.#current = claimed;
    return {
      fenceToken: claimed.fenceToken,
      leaseMs: claimed.leaseMs,
      heartbeatIntervalMs: this.#options.heartbeatIntervalMs ?? claimed.leaseMs / BEATS_PER_LEASE,
      tails: claimed.ledger.tails(),
    };
  }

  async heartbeat(state: RunnerState<PullWake>): Promise<void> {
    await this.#call("ack", state, {});
  }

  async checkpoint(checkpoints: { source: string; cursor: string }[], state: RunnerState<PullWake>): Promise<void> {
    const acks = this.#claimed(state).ledger.take(checkpoints);
    if (this.#options.acks === "at-once") await this.#call("ack", state, { acks });
  }

  async complete(state: RunnerState<PullWake>, { done }: { readonly done: boolean }): Promise<void> {
    const { ledger, leaseMs } = this.#claimed(state);
    const acks = done ? ledger.final() : [];
    const mayGiveBack = this.#pace.mayGiveBack(this.#options.subscriptionId, ledger.hasMoved(acks), leaseMs);
    if (!done && mayGiveBack) await this.#call("release", state, {});
    if (done) await this.#call("ack", state, mayGiveBack ? { acks, done: true } : { acks });
    this.#forget(state);
  }

  /** Nothing is sent: the next wake comes when the lease has run out, so what always fails does not loop. */
  async fail(state: RunnerState<PullWake>): Promise<void> {
    this.#forget(state);
  }

  async #call(action: "ack" | "release", state: RunnerState<PullWake>, more: object): Promise<void> {
    const { wake_id, generation, token } = this.#claimed(state);
    const body = { wake_id, generation, ...more };
    const answer = await callControl(this.#options, `${this.#url}/${action}`, { method: "POST", body, token });
    if (answer.status < 300) return;
    const error = refusal(answer, `The ${action} of the wake "${wake_id}"`);
    const isLost = PerdureError.is(error, "fenced") || PerdureError.is(error, "not_found");
    if (!isLost) throw error;
    this.#forget(state);
    throw new PerdureError("fenced", error.message);
  }

  #claimed({ fenceToken }: RunnerState<PullWake>): Claimed {
    const current = this.#current;
    if (current !== undefined && current.fenceToken === fenceToken) return current;
    throw new PerdureError("fenced", "This worker does not, or no longer, hold the wake.");
  }

  #forget({ fenceToken }: RunnerState<PullWake>): void {
    if (this.#current?.fenceToken === fenceToken) this.#current = undefined;
  }
}

function readClaim(body: unknown, facts: SubscriptionFacts): Claimed {
  const { wake_id, generation, token, lease_ttl_ms: leaseMs, streams } = Object(body) as Record<string, unknown>;
  const isWhole = typeof wake_id === "string" && typeof generation === "number" && typeof token === "string";
  if (!isWhole || typeof leaseMs !== "number" || !Array.isArray(streams)) {
    throw new PerdureError(
      "bad_input",
      "The server answered a claim without wake_id, generation, token, lease or streams.",
    );
  }
  const fenceToken = String(wakeEpoch(facts, generation, 0));
  return { fenceToken, wake_id, generation, token, leaseMs, ledger: new AckLedger(streams.map(readStream)) };
}

interface PullWakeWorkerOptions extends Omit<PullWakeOptions, "worker" | "heartbeatIntervalMs"> {
  /** What wakes: paths or addresses of streams. The same for all workers of the subscription. */
  readonly streams: readonly string[];
  /** The stream that wakes are told on. Default: one that is named after the subscription. */
  readonly wakeStream?: string;
  readonly leaseTtlMs?: number;
  /** This worker's name, for people. Default: a new one. */
  readonly worker?: string;
  /** Does the work of a wake, and ends it with `session.complete`. What it throws has the work tried again. */
  readonly run: (session: RunnerSession<PullWake>) => Promise<unknown>;
  /** Ends the worker, like `stop`. */
  readonly signal?: AbortSignal;
  /** Told of each failure of `run` and of each outage. Default: the console. */
  readonly onError?: (error: unknown) => void;
}

/** A worker that runs until it is stopped. */
export interface PullWakeWorker extends AsyncDisposable {
  /** Resolves when it has ended. */
  readonly done: Promise<void>;
  /** Takes nothing more, tells what runs to stop, and waits for it. */
  stop(): Promise<void>;
}

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 5_000;
/** A look without having been told, in case a wake was never told. */
const LOOK_MS = 35_000;

/** Claims and runs the wakes of a pull-wake subscription, which it creates and re-creates. One worker has work at a time. */
export function runPullWakeWorker(options: PullWakeWorkerOptions): PullWakeWorker {
  const worker = new PullWorker(options);
  const pump = createPump({
    poll: ({ signal }) => worker.poll(signal),
    retry: { maxAttempts: Number.POSITIVE_INFINITY, delayMs: FIRST_RETRY_MS, maxDelayMs: MAX_RETRY_MS },
    onError: worker.report,
  });
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const end = (reason: unknown) => {
    options.signal?.removeEventListener("abort", aborted);
    void pump.dispose(Number.POSITIVE_INFINITY, reason).then(resolve);
  };
  const aborted = () => end(options.signal?.reason);
  options.signal?.addEventListener("abort", aborted, { once: true });
  if (options.signal?.aborted === true) aborted();
  else pump.wake();
  const stop = async () => {
    end(new PerdureError("bad_state", "The worker was stopped."));
    await done;
  };
  return { done, stop, [Symbol.asyncDispose]: stop };
}

class PullWorker {
  readonly report: (error: unknown) => void;
  readonly #options: PullWakeWorkerOptions;
  readonly #adapter: RunnerLifecycleAdapter<PullWake>;
  readonly #wakeStream: string;
  /** Up to where wakes were heard; undefined: not yet known. */
  #heard: string | undefined;

  constructor(options: PullWakeWorkerOptions) {
    this.#options = options;
    this.#adapter = pullWakeAdapter({ ...options, worker: options.worker ?? newId("worker") });
    this.#wakeStream = options.wakeStream ?? `perdure-wakes/${options.subscriptionId.replace(/[^\w.-]/g, "_")}`;
    this.report = reporter(options.onError);
  }

  /** Runs one wake, or waits until there is one. */
  async poll(signal: AbortSignal): Promise<PumpOutcome> {
    const options = this.#options;
    const adapter = this.#adapter;
    const wakeStream = this.#wakeStream;
    const wake = { subscription_id: options.subscriptionId };
    let began = false;
    try {
      // Before the claim: a wake that is told behind it must be heard.
      this.#heard ??= await this.#tail(signal);
      await runWithLifecycle(wake, adapter, (session) => ((began = true), options.run(session)), { signal });
      return "again";
    } catch (error) {
      if (signal.aborted) return "done";
      if (began) this.report(error);
      if (began || PerdureError.is(error, "fenced")) {
        return (await this.#told(signal)) ? "again" : { later: true, ms: FIRST_RETRY_MS };
      }
      this.#heard = undefined;
      if (!PerdureError.is(error, "not_found")) throw error;
      await ensureWakeSubscription({ ...options, id: options.subscriptionId, wakeStream });
      return "again";
    }
  }

  /** Where the stream of wakes ends. @throws PerdureError `not_found` when there is none. */
  async #tail(signal: AbortSignal): Promise<string> {
    const response = await this.#request("HEAD", "", [signal]);
    if (response.status === 404) throw new PerdureError("not_found", "There is no stream of wakes yet.");
    const offset = response.headers.get("stream-next-offset");
    if (!response.ok || offset === null) {
      throw new PerdureError("disconnected", `The stream of wakes answered ${response.status}.`);
    }
    return offset;
  }

  /** Waits until a wake is told, or for a while. False: it could not listen. */
  async #told(signal: AbortSignal): Promise<boolean> {
    try {
      const query = `?offset=${encodeURIComponent(this.#heard ?? "-1")}&live=long-poll`;
      const response = await this.#request("GET", query, [signal, AbortSignal.timeout(LOOK_MS)]);
      await response.text();
      const offset = response.headers.get("stream-next-offset");
      if (!response.ok || offset === null) this.#heard = undefined;
      else this.#heard = offset;
      return response.ok;
    } catch {
      this.#heard = undefined;
      return false;
    }
  }

  async #request(method: string, query: string, signals: AbortSignal[]): Promise<Response> {
    const { headers, baseUrl } = this.#options;
    const given = typeof headers === "function" ? await headers() : (headers ?? {});
    const url = `${streamUrl(baseUrl, streamPath(this.#wakeStream))}${query}`;
    return (this.#options.fetch ?? fetch)(url, { method, headers: given, signal: AbortSignal.any(signals) });
  }
}
