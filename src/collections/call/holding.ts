import { PerdureError } from "../../base/error.ts";
import type { Claim } from "../worker/claim.ts";
import type { RowCondition } from "../../wire/row-frames.ts";
import type { Rows } from "../log/rows.ts";
import { isSettled, touch, type CallRow } from "./call-row.ts";

/**
 * Why a call should stop. `cancelled`: it is no longer wanted. `settled`: somebody else gave it a result. `taken`: another worker
 * has it, or may have it soon.
 */
type StopReason = "cancelled" | "settled" | "taken";

/** What holds a call: the row as it was claimed, a claim, or (where callbacks write) only what the row shows. */
interface HoldingOptions {
  readonly id: string;
  /** The rows that are written; undefined: callbacks write. */
  readonly writer: Rows<CallRow> | undefined;
  /** The rows that are looked at; undefined: there is no way to look. */
  readonly reader: Rows<CallRow> | undefined;
  readonly claim?: Claim;
  /** Without a claim, on a log: the version that the row got by being claimed. */
  readonly version?: number;
}

/**
 * One call that this process works on. Its signal aborts when that ends from outside, and it writes only while the call is this
 * process's: a result that arrives after a takeover is refused.
 */
export class Holding {
  readonly id: string;
  readonly #options: HoldingOptions;
  readonly #abort = new AbortController();
  readonly #ends: (() => void)[] = [];
  #stop: { readonly why: StopReason; readonly ours: boolean } | undefined;

  constructor(options: HoldingOptions) {
    this.id = options.id;
    this.#options = options;
    this.#follow();
    const { claim } = options;
    if (claim === undefined) return;
    const lost = () => this.#claimStopped(claim.signal.reason);
    if (claim.signal.aborted) lost();
    claim.signal.addEventListener("abort", lost);
    this.#ends.push(() => claim.signal.removeEventListener("abort", lost));
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Why it is to stop; undefined: it is not. */
  get stopped(): StopReason | undefined {
    return this.#stop?.why;
  }

  /** Whether it is to stop because nobody wants it any more. */
  get cancelled(): boolean {
    return this.#stop?.why === "cancelled";
  }

  /** Whether what becomes of the call is still this process's to write. */
  get ours(): boolean {
    return this.#stop?.ours ?? true;
  }

  /** The call is not wanted any more; its outcome is still to be written here. */
  cancel(): void {
    this.#stopFor("cancelled", true);
  }

  /**
   * Changes the row while it is ours. @returns false when it is not, or when one of `when` did not hold.
   * @throws what the write throws: then its outcome is not known.
   */
  async write(change: (draft: CallRow) => void, when: readonly RowCondition[] = []): Promise<boolean> {
    const { writer, claim } = this.#options;
    if (writer === undefined || !this.ours) return false;
    const conditions = claim === undefined ? when : [claim.condition(), ...when];
    const update = (draft: CallRow) => {
      this.#look(draft);
      if (!this.ours) return false;
      change(draft);
      touch(draft);
      return true;
    };
    return writer.update(this.id, update, { when: conditions });
  }

  /** The call is over here, whatever came of it. */
  async end(): Promise<void> {
    this.#unfollow();
    await this.#options.claim?.release();
  }

  /** Somebody else may begin it again, as if this process had not. */
  async giveBack(): Promise<void> {
    try {
      await this.write((draft) => void (draft.status = "pending"));
    } finally {
      this.#unfollow();
      await this.#options.claim?.giveBack();
    }
  }

  #unfollow(): void {
    for (const end of this.#ends.splice(0)) end();
  }

  #follow(): void {
    const { writer, reader, claim, version } = this.#options;
    const log = writer?.log;
    const at = writer?.unchanged(this.id);
    if (claim !== undefined || log === undefined || at === undefined || version === undefined) {
      if (reader !== undefined) this.#ends.push(reader.subscribe(() => this.#look(reader.get(this.id))));
      return;
    }
    // Every change is looked at, not only the last one: a row that was given to another worker in between is
    // "executing" before and after.
    const table = log.table(at.table);
    const end = table.subscribe((changes, reset) => {
      if (reset) this.#look(writer?.get(this.id));
      for (const change of changes) {
        if (change.key !== this.id || change.version <= version) continue;
        // What the log keeps of a call is a row of the collection.
        this.#look(change.operation === "delete" ? undefined : (change.value as unknown as CallRow));
      }
    });
    this.#ends.push(end);
    if (at.version !== version) this.#look(writer?.get(this.id));
  }

  /** What the row's state says about this process's hold on it. */
  #look(row: CallRow | undefined): void {
    if (row === undefined || row.status === "cancelled") this.#stopFor("cancelled", false);
    else if (isSettled(row)) this.#stopFor("settled", false);
    // With a claim its own row decides; where callbacks write, so do they.
    else if (this.#options.claim !== undefined || this.#options.writer === undefined) return;
    else if (row.status !== "executing") this.#stopFor("taken", false);
  }

  #claimStopped(reason: unknown): void {
    if (PerdureError.is(reason, "cancelled")) this.#stopFor("cancelled", true);
    // Nobody may have it yet: the log decides whether a result still counts.
    else this.#stopFor("taken", PerdureError.is(reason, "disconnected"));
  }

  #stopFor(why: StopReason, ours: boolean): void {
    // What is not ours does not become ours again.
    if (this.#stop !== undefined && (!this.#stop.ours || ours)) return;
    this.#stop = { why, ours };
    this.#abort.abort(new PerdureError("cancelled", stopText(this.id, why)));
  }
}

function stopText(id: string, why: StopReason): string {
  if (why === "cancelled") return `The tool call "${id}" was cancelled.`;
  if (why === "settled") return `The tool call "${id}" has its result from elsewhere.`;
  return `The tool call "${id}" was taken over by another worker.`;
}
