import { PerdureError } from "../../base/error.ts";
import type { AckMode } from "./acks.ts";
import { AckLedger, WakePace } from "./acks.ts";
import type { ControlOptions, SubscriptionFacts } from "./control.ts";
import { callControl, fieldOf, readSubscription, refusal, subscriptionUrl, wakeEpoch } from "./control.ts";
import type { RunnerClaim, RunnerLifecycleAdapter, RunnerState } from "./lifecycle.ts";
import { readStream } from "./wake-payload.ts";

/** "There may be work": what a worker of a pull-wake subscription claims with. */
export interface PullWake {
  readonly subscription_id: string;
}

/** What `pullWakeAdapter` needs to know. */
export interface PullWakeOptions extends ControlOptions {
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

const BEATS_PER_LEASE = 3;

/**
 * The lifecycle of pull-wake subscriptions of Durable Streams servers (0.3.7): the server gives a wake to one worker.
 * `claimWake` rejects with `fenced` when another worker has it or there is no work, and with `not_found` when the
 * server has forgotten the subscription.
 */
export function pullWakeAdapter(options: PullWakeOptions): RunnerLifecycleAdapter<PullWake> {
  return new PullAdapter(options);
}

class PullAdapter implements RunnerLifecycleAdapter<PullWake> {
  private readonly options: PullWakeOptions;
  private readonly url: string;
  /**
   * The latest wake. The server gives the next one only when the one before is over, also when nobody here has said so:
   * a wake that was lost is forgotten with the next claim.
   */
  private current: Claimed | undefined;
  private readonly pace = new WakePace();

  constructor(options: PullWakeOptions) {
    this.options = options;
    this.url = subscriptionUrl(options.baseUrl, options.subscriptionId);
  }

  async claimWake(_wake: PullWake, { signal }: { readonly signal: AbortSignal }): Promise<RunnerClaim> {
    // Before the claim: a subscription that is made again in between makes the claim fail or is this old.
    const facts = await readSubscription(this.options, this.url);
    const body = { worker: this.options.worker };
    const answer = await callControl(this.options, `${this.url}/claim`, { method: "POST", body, signal });
    if (answer.status !== 200) throw refusal(answer, `The claim of "${this.options.subscriptionId}"`);
    const claimed = readClaim(answer.body, facts);
    this.current = claimed;
    return {
      fenceToken: claimed.fenceToken,
      leaseMs: claimed.leaseMs,
      heartbeatIntervalMs: this.options.heartbeatIntervalMs ?? claimed.leaseMs / BEATS_PER_LEASE,
      tails: claimed.ledger.tails(),
    };
  }

  async heartbeat(state: RunnerState<PullWake>): Promise<void> {
    await this.call("ack", state, {});
  }

  async checkpoint(checkpoints: { source: string; cursor: string }[], state: RunnerState<PullWake>): Promise<void> {
    const acks = this.claimed(state).ledger.take(checkpoints);
    if (this.options.acks === "at-once") await this.call("ack", state, { acks });
  }

  async complete(state: RunnerState<PullWake>, { done }: { readonly done: boolean }): Promise<void> {
    const { ledger, leaseMs } = this.claimed(state);
    const acks = done ? ledger.final() : [];
    const mayGiveBack = this.pace.mayGiveBack(this.options.subscriptionId, ledger.hasMoved(acks), leaseMs);
    if (!done && mayGiveBack) await this.call("release", state, {});
    if (done) await this.call("ack", state, mayGiveBack ? { acks, done: true } : { acks });
    this.forget(state);
  }

  /** Nothing is sent: the next wake comes when the lease has run out, so what always fails does not loop. */
  async fail(state: RunnerState<PullWake>): Promise<void> {
    this.forget(state);
  }

  private async call(action: "ack" | "release", state: RunnerState<PullWake>, more: object): Promise<void> {
    const { wake_id, generation, token } = this.claimed(state);
    const body = { wake_id, generation, ...more };
    const answer = await callControl(this.options, `${this.url}/${action}`, { method: "POST", body, token });
    if (answer.status < 300) return;
    const error = refusal(answer, `The ${action} of the wake "${wake_id}"`);
    const isLost = PerdureError.is(error, "fenced") || PerdureError.is(error, "not_found");
    if (!isLost) throw error;
    this.forget(state);
    throw new PerdureError("fenced", error.message);
  }

  private claimed({ fenceToken }: RunnerState<PullWake>): Claimed {
    const { current } = this;
    if (current !== undefined && current.fenceToken === fenceToken) return current;
    throw new PerdureError("fenced", "The wake is not claimed (any more) by this worker.");
  }

  private forget({ fenceToken }: RunnerState<PullWake>): void {
    if (this.current?.fenceToken === fenceToken) this.current = undefined;
  }
}

function readClaim(body: unknown, facts: SubscriptionFacts): Claimed {
  const [wake_id, generation, token, leaseMs, streams] = [
    "wake_id",
    "generation",
    "token",
    "lease_ttl_ms",
    "streams",
  ].map((name) => fieldOf(body, name));
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
