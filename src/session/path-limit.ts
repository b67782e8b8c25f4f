import type { Sql } from "../port.ts";
import { deleteStrayCompactions, moveCompactions } from "../store/compaction.ts";
import {
  deleteBranch,
  giveBranch,
  type MessagePlace,
  messagesBehind,
  placesUp,
  readMessageAt,
  setOwner,
  setParent,
} from "../store/message.ts";
import { otherLeaves } from "../store/session.ts";

/** What the limit asks of the conversation. */
interface LimitedPath {
  readonly session: string;
  /** Whose its messages are. */
  owner(): string;
  /** From the newest message up. */
  places(): Iterable<MessagePlace>;
  remove(id: string): void;
  /** An answer of another branch is gone. */
  removed(id: string): void;
  /** The path begins with another message now. */
  cut(): void;
}

interface Extent {
  readonly length: number;
  readonly first: number;
  /** Those messages of the path that other sessions show, and one that does. Looked up when something is to go. */
  readonly shared: ReadonlyMap<number, string> | undefined;
}

/** How many places are read at a time. */
const PAGE = 256;

/**
 * Keeps a conversation within a number of messages. The path is counted once, on demand; then only what goes is looked at. What
 * another session shows is not deleted: this one lets go of it where they part, and may be too long until then.
 */
export class PathLimit {
  readonly #db: Sql;
  readonly #path: LimitedPath;
  #extent: Extent | undefined;

  constructor(db: Sql, path: LimitedPath) {
    this.#db = db;
    this.#path = path;
  }

  /** A message more, behind all others. */
  added(): void {
    const extent = this.#extent;
    this.#extent = extent === undefined || extent.length === 0 ? undefined : { ...extent, length: extent.length + 1 };
  }

  /** One less. */
  removed(seq: number): void {
    const extent = this.#extent;
    this.#extent = extent === undefined || extent.first === seq ? undefined : { ...extent, length: extent.length - 1 };
  }

  /** The path is another one. */
  changed(): void {
    this.#extent = undefined;
  }

  /** Deletes the oldest beyond `max`, with the branches that hang on them, but not the newest nor those of `keep`. */
  trim(max: number, keep: () => ReadonlySet<string>): void {
    let { length, first, shared } = (this.#extent ??= this.#measure());
    if (length <= max) return;
    shared ??= this.#shared();
    const kept = keep();
    const held: number[] = [];
    let at = first;
    while (length - held.length > max) {
      const place = readMessageAt(this.#db, at);
      const next = this.#nextOf(at);
      if (place === undefined || next === undefined) break;
      // The path would begin behind it.
      if (shared.has(at) && kept.has(place.id)) break;
      if (shared.has(at)) held.push(at);
      else {
        if (held.length > 0) {
          length -= this.#letGo(held.splice(0), at, shared);
          first = at;
        }
        if (!kept.has(place.id)) {
          this.#removeBranches(at, next);
          moveCompactions(this.#db, at, next);
          this.#path.remove(place.id);
          length--;
          if (at === first) first = next;
        }
      }
      at = next;
    }
    if (held.length > 0 && !shared.has(at)) {
      length -= this.#letGo(held, at, shared);
      first = at;
    }
    this.#extent = { length, first, shared };
    deleteStrayCompactions(this.#db);
  }

  /** Leaves messages to those who show them too: the path begins with `next` now. @returns how many. */
  #letGo(seqs: readonly number[], next: number, shared: ReadonlyMap<number, string>): number {
    for (const [i, seq] of seqs.entries()) {
      const heir = shared.get(seq) ?? this.#path.owner();
      this.#removeBranches(seq, seqs[i + 1] ?? next, heir);
      setOwner(this.#db, seq, heir);
    }
    setParent(this.#db, next, null);
    this.#path.cut();
    return seqs.length;
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

  /** @param heir who has those that a session ends in. */
  #removeBranches(seq: number, except: number, heir = this.#path.owner()): void {
    const owner = this.#path.owner();
    for (const { seq: child, session } of messagesBehind(this.#db, seq)) {
      if (child === except || session !== owner) continue;
      const gone = deleteBranch(this.#db, child);
      if (gone.length === 0 && heir !== owner) giveBranch(this.#db, child, owner, heir);
      for (const { id, role } of gone) if (role === "assistant") this.#path.removed(id);
    }
  }

  #measure(): Extent {
    let length = 0;
    let first = 0;
    for (const { seq } of this.#path.places()) {
      length++;
      first = seq;
    }
    return { length, first, shared: undefined };
  }

  #shared(): ReadonlyMap<number, string> {
    const others = otherLeaves(this.#db, this.#path.session);
    if (others.length === 0) return new Map();
    const path = [...this.#path.places()].map(({ seq }) => seq);
    const onPath = new Set(path);
    const meet = new Map<number, string>();
    for (const { owner, leaf } of others) {
      const at = this.#firstOf(onPath, leaf);
      if (at !== undefined) meet.set(at, owner);
    }
    const shared = new Map<number, string>();
    let owner: string | undefined;
    for (const seq of path) {
      owner = meet.get(seq) ?? owner;
      if (owner !== undefined) shared.set(seq, owner);
    }
    return shared;
  }

  /** The first of `seqs` on the way up from `leaf`. */
  #firstOf(seqs: ReadonlySet<number>, leaf: number): number | undefined {
    for (let at: number | null = leaf; at !== null;) {
      const page: MessagePlace[] = placesUp(this.#db, at, PAGE);
      const found = page.find(({ seq }) => seqs.has(seq));
      if (found !== undefined) return found.seq;
      at = page.at(-1)?.parent ?? null;
    }
    return undefined;
  }
}
