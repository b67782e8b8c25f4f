import { tryParseJson } from "../base/json.ts";
import type { Role, UIMessage } from "../message/types.ts";
import { parseMessage } from "../message/validate.ts";
import type { Sql } from "../port.ts";
import { type MessageRow, messagesUp } from "../store/message.ts";

/** A stored message in memory: the JSON that is stored and sent, parsed when somebody looks at it. */
export interface Entry {
  readonly seq: number;
  readonly id: string;
  readonly role: Role;
  parent: number | null;
  json: string;
  /** Parsed on demand; null: the row is damaged. It keeps its place, and is shown to nobody. */
  message: UIMessage | null | undefined;
  readonly pinned: boolean;
}

/** An entry that can be read. */
export type ReadableEntry = Entry & { message: UIMessage };

/** How many messages are read at a time. */
const PAGE = 64;
/** The most that is kept in memory of a conversation, in UTF-16 units of JSON: more than the largest model reads. */
const MAX_KEPT = 8_000_000;
/** Never fewer than these, however long they are. */
const MIN_KEPT = 16;

/** The end of a path, in memory: as much as was asked for, up to a bound. What stands further up is read each time. */
export class PathWindow {
  readonly #db: Sql;
  /** Oldest first; the last one is the leaf. */
  readonly #entries: Entry[] = [];
  readonly #byId = new Map<string, Entry>();
  #size = 0;
  #leaf: number | null;

  constructor(db: Sql, leaf: number | null) {
    this.#db = db;
    this.#leaf = leaf;
  }

  get leaf(): number | null {
    return this.#leaf;
  }

  /** What is in memory under this id. */
  get(id: string): Entry | undefined {
    return this.#byId.get(id);
  }

  /** From the leaf up to the first message. What it reads is kept while there is room. */
  *up(): Generator<ReadableEntry> {
    for (let i = this.#entries.length - 1; i >= 0; i--) {
      const entry = this.#entries[i];
      if (entry !== undefined && isReadable(entry)) yield entry;
    }
    const first = this.#entries[0];
    let above = first === undefined ? this.#leaf : first.parent;
    while (above !== null) {
      const page = messagesUp(this.#db, above, PAGE).map(toEntry);
      if (page.length === 0) return;
      // Only what is contiguous with the rest: a walk that outgrew the window does not touch it any more.
      if (this.#joins(above)) this.#prepend(page);
      for (const entry of page) if (isReadable(entry)) yield entry;
      above = page.at(-1)?.parent ?? null;
    }
  }

  /** A new message behind all others. */
  push(entry: Entry): void {
    this.#entries.push(entry);
    this.#byId.set(entry.id, entry);
    this.#size += entry.json.length;
    this.#leaf = entry.seq;
    this.#shrink();
  }

  /** A message has another text. */
  replace(entry: Entry, json: string, message: UIMessage): void {
    this.#size += json.length - entry.json.length;
    entry.json = json;
    entry.message = message;
  }

  /** The leaf is further up now, or elsewhere. */
  moveTo(leaf: number | null): void {
    const at = this.#entries.findLastIndex(({ seq }) => seq === leaf);
    for (const entry of this.#entries.splice(at + 1)) this.#drop(entry);
    if (at === -1) this.#size = 0;
    this.#leaf = leaf;
  }

  /** A message is gone; what stood behind it stands behind `parent` now. */
  remove(seq: number, parent: number | null): void {
    const at = this.#entries.findLastIndex((entry) => entry.seq === seq);
    for (const entry of at === -1 ? [] : this.#entries.splice(at, 1)) this.#drop(entry);
    for (const entry of this.#entries) if (entry.parent === seq) entry.parent = parent;
    if (this.#leaf === seq) this.#leaf = parent;
  }

  /** Behind `parent` stand these now, in this order, and nothing else. */
  arrange(order: readonly number[], parent: number | null): void {
    const start = this.#entries.findIndex((entry) => entry.seq === parent) + 1;
    const bySeq = new Map(this.#entries.slice(start).map((entry) => [entry.seq, entry]));
    const arranged = order.flatMap((seq) => bySeq.get(seq) ?? []);
    const leaf = order.at(-1) ?? parent;
    if (arranged.length < order.length || (start === 0 && parent !== null)) return this.reset(leaf);
    for (const entry of this.#entries.splice(start)) this.#drop(entry);
    this.#leaf = parent;
    for (const entry of arranged) this.push(Object.assign(entry, { parent: this.#leaf }));
  }

  /** Forgets all that is in memory; `leaf` is read by the caller. */
  reset(leaf: number | null): void {
    this.#entries.length = 0;
    this.#byId.clear();
    this.#size = 0;
    this.#leaf = leaf;
  }

  #joins(above: number): boolean {
    const first = this.#entries[0];
    return this.#size < MAX_KEPT && above === (first === undefined ? this.#leaf : first.parent);
  }

  /** @param page newest first. */
  #prepend(page: readonly Entry[]): void {
    this.#entries.unshift(...page.toReversed());
    for (const entry of page) {
      this.#byId.set(entry.id, entry);
      this.#size += entry.json.length;
    }
  }

  #shrink(): void {
    while (this.#size > MAX_KEPT && this.#entries.length > MIN_KEPT) {
      const oldest = this.#entries.shift();
      if (oldest !== undefined) this.#drop(oldest);
    }
  }

  #drop(entry: Entry): void {
    this.#byId.delete(entry.id);
    this.#size -= entry.json.length;
  }
}

/** A row as it is kept in memory. */
export function toEntry(row: MessageRow): Entry {
  const { seq, id, parent, role, body, pinned } = row;
  return { seq, id, parent, role: role as Role, json: body, message: undefined, pinned: pinned === 1 };
}

/** Whether the row holds a message. A damaged one is passed over, not deleted: whoever mends it finds it as it is. */
export function isReadable(entry: Entry): entry is ReadableEntry {
  if (entry.message === undefined) entry.message = parse(entry);
  return entry.message !== null;
}

function parse({ id, json }: Entry): UIMessage | null {
  const message = parseMessage(tryParseJson(json));
  return message?.id === id ? message : null;
}
