import { runnerClaimId, type Acquired, type Claim, type Claims } from "../worker/claim.ts";
import { linkSignals } from "../../base/abort.ts";
import type { RowOptions } from "../log/rows.ts";

/** The right to work, while it lasts. */
export interface Seated {
  /** For all writes of the work. */
  readonly fence: RowOptions;
  /** Aborts when it is lost. */
  readonly signal?: AbortSignal;
}

/** How long the right to work is kept without work: long enough for a conversation, too short for many heartbeats. */
const LINGER_MS = 5_000;

/** No number of crashes ends an agent: its messages have their own limit. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** The right to be an agent's only runner. Taken for work and given back when idle for a while; without claims all have it. */
export class Seat {
  readonly #claims: Claims | undefined;
  readonly #id: string;
  readonly #unsubscribe: (() => void) | undefined;
  #claim: Claim | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** A wake of a transport that fences its runners by itself. */
  #session: Seated | undefined;

  /** `wake`: the seat may be free. */
  constructor(agentName: string, claims: Claims | undefined, wake: () => void) {
    this.#id = runnerClaimId(agentName);
    this.#claims = claims;
    this.#unsubscribe = claims?.subscribe(wake);
  }

  get ready(): Promise<void> {
    return this.#claims?.ready ?? Promise.resolve();
  }

  /** Works under a session of a transport until the returned function is called. */
  enter(session: Seated): () => void {
    this.#session = session;
    return () => {
      if (this.#session === session) this.#session = undefined;
    };
  }

  /**
   * Takes the seat, or says when to ask again.
   * @throws PerdureError `fenced` when another life of this worker has replaced it; `disconnected`.
   */
  async take(signal: AbortSignal): Promise<Seated | { readonly retryInMs: number }> {
    clearTimeout(this.#timer);
    if (this.#claims === undefined) return this.#session ?? { fence: {} };
    if (this.#claim?.signal.aborted === true) await this.leave();
    if (this.#claim === undefined) {
      const got = await this.#ask(this.#claims, signal);
      if (got.claim === undefined) return { retryInMs: got.dead === undefined ? got.retryInMs : LINGER_MS };
      this.#claim = got.claim;
    }
    const claim = this.#claim;
    const session = this.#session;
    const when = [...(session?.fence.when ?? []), claim.condition()];
    const signals = session?.signal === undefined ? [claim.signal] : [claim.signal, session.signal];
    return { fence: { when, producer: session?.fence.producer ?? claim.producer }, signal: AbortSignal.any(signals) };
  }

  /** The signal ends only the question: what is got outlives who has asked for it. */
  async #ask(claims: Claims, signal: AbortSignal): Promise<Acquired> {
    const asking = new AbortController();
    const unlink = linkSignals([signal], asking);
    try {
      return await claims.acquire(this.#id, { signal: asking.signal, maxAttempts: NO_LIMIT });
    } finally {
      unlink();
    }
  }

  /** There is no work now. */
  rest(): void {
    clearTimeout(this.#timer);
    if (this.#claim !== undefined) this.#timer = setTimeout(() => void this.leave().catch(() => {}), LINGER_MS);
  }

  /** Gives the seat back. */
  async leave(): Promise<void> {
    clearTimeout(this.#timer);
    const claim = this.#claim;
    this.#claim = undefined;
    // Also one whose signal has aborted: it may still be held, and then it would beat on. One that was lost says no.
    await claim?.release();
  }

  async dispose(): Promise<void> {
    this.#unsubscribe?.();
    await this.leave();
  }
}
