import { errorText, PerdureError } from "../../base/error.ts";
import type { Clock } from "../../base/time.ts";
import type { ClaimRecord, ClaimRow } from "../contract.ts";
import type { RowChange, RowCondition, RowProducer } from "../../wire/row-frames.ts";
import { linkSignals } from "../../base/abort.ts";
import type { Claim } from "./claim.ts";
import { beatKey, type ClaimTable } from "./claim-table.ts";

/** The part of a lease after which a holder that could give no sign of life stops. The rest is the margin in which
 * the others still wait. */
const SAFE_PART = 0.75;

interface HeldClaimOptions {
  readonly table: ClaimTable;
  readonly clock: Clock;
  readonly row: ClaimRow;
  readonly fence: number;
  readonly heartbeatMs: number;
  readonly maxAttempts: number;
  /** When the write that took it was sent: its first sign of life. */
  readonly takenAt: number;
  /** Called once, when it is neither held nor beating any more. */
  onOver(claim: HeldClaim, lost: PerdureError | undefined): void;
}

/**
 * One claim from when it was taken. It beats until released, given back, failed or lost. It is lost when its row changes hands,
 * or when no beat got through for most of the lease, so that work stops before anybody else begins it.
 */
export class HeldClaim implements Claim {
  readonly id: string;
  readonly owner: string;
  readonly fence: number;
  readonly attempt: number;
  readonly producer: RowProducer;
  readonly #options: HeldClaimOptions;
  readonly #abortion = new AbortController();
  #aliveAt: number;
  #ending = false;
  #over = false;
  #stopBeat = () => {};
  #stopDeadline = () => {};
  #unfollow = () => {};

  constructor(options: HeldClaimOptions) {
    this.#options = options;
    this.id = options.row.id;
    this.owner = options.row.owner;
    this.attempt = options.row.attempt;
    this.fence = options.fence;
    this.producer = { id: this.id, epoch: this.fence };
    this.#aliveAt = options.takenAt;
    this.#watchDeadline();
    this.#beatLater();
  }

  get signal(): AbortSignal {
    return this.#abortion.signal;
  }

  condition(): RowCondition {
    return { ...this.#options.table.unchanged(this.id), version: this.fence };
  }

  release(options: { changes?: readonly RowChange[]; when?: readonly RowCondition[] } = {}): Promise<boolean> {
    return this.#end([this.#options.table.remove(this.id), ...(options.changes ?? [])], options.when);
  }

  giveBack(): Promise<boolean> {
    const { table, row } = this.#options;
    if (this.attempt <= 1) return this.release();
    return this.#end([table.put("update", { ...row, state: "free", attempt: this.attempt - 1, updatedAt: now() })]);
  }

  async fail(error: unknown, options: { retry?: boolean } = {}): Promise<"free" | "dead" | "lost"> {
    const { table, row, maxAttempts } = this.#options;
    const state = options.retry === false || this.attempt >= maxAttempts ? "dead" : "free";
    const failed: ClaimRow = { ...row, state, error: errorText(error), updatedAt: now() };
    return (await this.#end([table.put("update", failed)])) ? state : "lost";
  }

  /** Stops the work; the claim stays held, so that its outcome can be written. */
  abort(reason: unknown): void {
    if (!this.signal.aborted) this.#abortion.abort(reason);
  }

  /** Stops the work when somebody else's signal says so. */
  follow(signal: AbortSignal): void {
    if (!this.#over) this.#unfollow = linkSignals([signal], this.#abortion);
  }

  /** Its rows may have changed. */
  look(): void {
    if (this.#over || this.#ending) return;
    const { table } = this.#options;
    if (table.unchanged(this.id).version !== this.fence) return this.#lose(this.#takenOver());
    const cancel = table.beat(this.id)?.cancel;
    if (cancel !== undefined) this.abort(new PerdureError("cancelled", `"${this.id}" was cancelled: ${cancel}`));
  }

  async #end(changes: RowChange[], when: readonly RowCondition[] = []): Promise<boolean> {
    const { table } = this.#options;
    if (this.#ending || table.unchanged(this.id).version !== this.fence) return false;
    this.#ending = true;
    try {
      const all = [...table.withoutBeat(this.id), ...changes];
      if (await table.write(all, [this.condition(), ...when])) {
        this.#finish(undefined);
        return true;
      }
    } catch (error) {
      this.#lose(unreachable(this.id, error));
      throw error;
    } finally {
      this.#ending = false;
    }
    this.look();
    return false;
  }

  async #beat(): Promise<void> {
    const { table, clock } = this.#options;
    const sent = clock.now();
    let applied = true;
    try {
      // An update, so that a request to cancel that comes at the same moment is kept.
      const count = (row: ClaimRecord) => void (row.kind === "beat" && row.beat++);
      applied = await table.rows.update(beatKey(this.id), count, { when: [this.condition()] });
      if (applied) this.#aliveAt = sent;
    } catch {
      // Whether that is the end is decided by the deadline.
    }
    if (this.#over) return;
    if (!applied) this.look();
    if (this.#over) return;
    this.#watchDeadline();
    this.#beatLater();
  }

  #beatLater(): void {
    this.#stopBeat = this.#options.clock.after(this.#options.heartbeatMs, () => void this.#beat());
  }

  #watchDeadline(): void {
    const { clock, row } = this.#options;
    this.#stopDeadline();
    const left = this.#aliveAt + row.leaseMs * SAFE_PART - clock.now();
    this.#stopDeadline = clock.after(Math.max(0, left), () => this.#lose(unreachable(this.id)));
  }

  #lose(reason: PerdureError): void {
    if (this.#over) return;
    this.abort(reason);
    this.#finish(reason);
  }

  #finish(lost: PerdureError | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#stopBeat();
    this.#stopDeadline();
    this.#unfollow();
    this.#options.onOver(this, lost);
  }

  #takenOver(): PerdureError {
    const row = this.#options.table.claim(this.id);
    const by = row === undefined ? "Somebody else" : `"${row.owner}"`;
    return new PerdureError("fenced", `${by} has taken over "${this.id}". Stop: results of this try no longer count.`);
  }
}

function unreachable(id: string, cause?: unknown): PerdureError {
  const message = `No sign of life for "${id}" could be written for most of its lease: others may take it over.`;
  return new PerdureError("disconnected", message, cause === undefined ? {} : { cause });
}

function now(): string {
  return new Date().toISOString();
}
