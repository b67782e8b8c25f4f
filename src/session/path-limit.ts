import type { Sql } from "../port.ts";
import { deleteStrayCompactions } from "../store/compaction.ts";
import { deleteBranch, type MessagePlace, messagesBehind, readMessageAt } from "../store/message.ts";

/** What the limit asks of the conversation. */
export interface LimitedPath {
  /** From the newest message up. */
  places(): Iterable<MessagePlace>;
  remove(id: string): void;
  /** An answer of another branch is gone. */
  removed(id: string): void;
}

/**
 * Keeps a conversation from growing beyond a number of messages. The path is counted once; after that only what goes
 * is looked at. Where nobody asks, nothing is counted.
 */
export class PathLimit {
  readonly #db: Sql;
  readonly #path: LimitedPath;
  #extent: { length: number; first: number } | undefined;

  constructor(db: Sql, path: LimitedPath) {
    this.#db = db;
    this.#path = path;
  }

  /** A message more, behind all others. */
  added(): void {
    if (this.#extent !== undefined && this.#extent.length > 0) this.#extent.length++;
    else this.#extent = undefined;
  }

  /** One less. */
  removed(seq: number): void {
    if (this.#extent === undefined || this.#extent.first === seq) this.#extent = undefined;
    else this.#extent.length--;
  }

  /** The path is another one. */
  changed(): void {
    this.#extent = undefined;
  }

  /** Deletes the oldest beyond `max`, with the branches that hang on them, but not the newest nor those of `keep`. */
  trim(max: number, keep: () => ReadonlySet<string>): void {
    let { length, first } = (this.#extent ??= this.#measure());
    if (length <= max) return;
    const kept = keep();
    for (let at = first; length > max;) {
      const place = readMessageAt(this.#db, at);
      const next = this.#nextOf(at);
      if (place === undefined || next === undefined) break;
      if (!kept.has(place.id)) {
        this.#removeBranches(at, next);
        this.#path.remove(place.id);
        length--;
        if (at === first) first = next;
      }
      at = next;
    }
    this.#extent = { length, first };
    deleteStrayCompactions(this.#db);
  }

  /** The message behind one, on this path. */
  #nextOf(seq: number): number | undefined {
    const behind = messagesBehind(this.#db, seq);
    if (behind.length <= 1) return behind[0]?.seq;
    let before: number | undefined;
    for (const place of this.#path.places()) {
      if (place.seq === seq) return before;
      before = place.seq;
    }
    return undefined;
  }

  #removeBranches(seq: number, except: number): void {
    for (const { seq: child } of messagesBehind(this.#db, seq)) {
      if (child === except) continue;
      for (const { id, role } of deleteBranch(this.#db, child)) if (role === "assistant") this.#path.removed(id);
    }
  }

  #measure(): { length: number; first: number } {
    let length = 0;
    let first = 0;
    for (const { seq } of this.#path.places()) {
      length++;
      first = seq;
    }
    return { length, first };
  }
}
