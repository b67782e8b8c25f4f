import { boundMessage } from "../message/bound.ts";
import type { StoredMessages } from "../message/reconcile.ts";
import { sanitizeMessage } from "../message/sanitize.ts";
import type { Role, UIMessage } from "../message/types.ts";
import { newId } from "../base/id.ts";
import type { SessionStore } from "../store/session-store.ts";
import { deleteStrayCompactions } from "../store/compaction.ts";
import {
  deleteMessage,
  deleteSessionMessages,
  insertMessage,
  type MessagePlace,
  messagesUp,
  placesUp,
  readMessage,
  readMessageAt,
  readMessageIdentity,
  renameMessage,
  rolesOf,
  setParent,
  updateMessage,
} from "../store/message.ts";
import { ownerIdOf, readSessionLine, resetLeaves, setLeaf } from "../store/session.ts";
import { PathLimit } from "./path-limit.ts";
import { dropSummaries } from "./stale-summaries.ts";
import { type Entry, isReadable, PathWindow, type ReadableEntry, toEntry } from "./path-window.ts";

/** What the app may do to a message before it is stored. */
export interface TranscriptOptions {
  /** After the built-in cleaning. Must be quick; what it throws fails the write. */
  sanitize?(message: UIMessage): UIMessage;
  /** The most messages to keep; the oldest go first. */
  maxMessages?(): number | undefined;
  /** A message of the assistant is gone for good, in the caller's transaction. Not told of {@link Transcript.clear}. */
  removed?(id: string): void;
  /** A message that stays on another branch has another id now, in the caller's transaction. */
  renamed?(from: string, to: string): void;
  /** Something was written, in the caller's transaction: others may have old copies of these messages; without ids, of any. */
  changed?(ids?: readonly string[]): void;
}

/** How far back a tool call is looked for: nobody answers one that so much was said after. */
const MAX_CALL_DISTANCE = 1_000;
/** How many places are read at a time on a long way. */
const WAY_PAGE = 256;

/**
 * The conversation of a session: the path from its leaf up. Its end is kept in memory, within a bound; the rest is read on
 * demand. A write changes the row first and the memory after, in the caller's transaction.
 */
export class Transcript implements StoredMessages {
  readonly session: string;
  readonly #host: SessionStore;
  readonly #options: TranscriptOptions;
  #window: PathWindow | undefined;
  #owner: string | undefined;
  #shape = 0;
  readonly #limit: PathLimit;

  constructor(host: SessionStore, session: string, options: TranscriptOptions = {}) {
    this.#host = host;
    this.session = session;
    this.#options = options;
    this.#limit = new PathLimit(host, {
      session,
      owner: () => this.#ownerOf(),
      places: () => this.places(),
      remove: (id) => this.remove(id),
      removed: (id) => options.removed?.(id),
      cut: () => {
        this.#window = undefined;
        this.#reshaped();
      },
    });
  }

  get isEmpty(): boolean {
    return this.#path.leaf === null;
  }

  /** The number of the newest message. */
  get leaf(): number | null {
    return this.#path.leaf;
  }

  /** Another number whenever the conversation changes other than by a message at its end, or by what one says. */
  get shape(): number {
    return this.#shape;
  }

  /** Of a message anywhere in the tree: another branch has it too. */
  role(id: string): Role | undefined {
    return (this.#path.get(id)?.role ?? readMessage(this.#host, id)?.role) as Role | undefined;
  }

  /** Of many at once. */
  roles(ids: readonly string[]): ReadonlyMap<string, Role> {
    const path = this.#path;
    const roles = new Map<string, Role>();
    const others: string[] = [];
    for (const id of ids) {
      const known = path.get(id);
      if (known === undefined) others.push(id);
      else roles.set(id, known.role);
    }
    if (others.length > 0) for (const [id, role] of rolesOf(this.#host, others)) roles.set(id, role as Role);
    return roles;
  }

  /** Its number in the tree. */
  seqOf(id: string): number | undefined {
    return this.#find(id)?.seq;
  }

  /** Who wrote a message, or for whom it was written, as it is stored. */
  identityOf(id: string): string | null {
    return this.#host.blank ? null : readMessageIdentity(this.#host, id);
  }

  get(id: string): UIMessage | undefined {
    const entry = this.#find(id);
    return entry !== undefined && isReadable(entry) ? entry.message : undefined;
  }

  idsAfter(id: string): readonly string[] {
    const seq = this.seqOf(id);
    return seq === undefined ? [] : this.#behind(seq).map((place) => place.id);
  }

  /** From the newest message up. Stop as soon as you have what you need: the way may be long. */
  up(): Generator<ReadableEntry> {
    return this.#path.up();
  }

  /** All messages, but for one that should not be seen yet. Costs the whole conversation. */
  list(without?: string): UIMessage[] {
    const messages: UIMessage[] = [];
    for (const entry of this.up()) if (entry.id !== without) messages.push(entry.message);
    return messages.reverse();
  }

  last(without?: string): UIMessage | undefined {
    for (const entry of this.up()) if (entry.id !== without) return entry.message;
    return undefined;
  }

  /** The newest message of the assistant. */
  lastAnswer(): UIMessage | undefined {
    for (const entry of this.up()) if (entry.role === "assistant") return entry.message;
    return undefined;
  }

  /** Ids of the messages behind the last answer; `without` is an answer that does not count yet. */
  unanswered(without?: string): string[] {
    const ids: string[] = [];
    for (const { id, role } of this.up()) {
      if (id === without) continue;
      if (role === "assistant") break;
      ids.push(id);
    }
    return ids.reverse();
  }

  /** The newest message that has this call. */
  withCall(toolCallId: string): UIMessage | undefined {
    // Ids are quoted in JSON; most messages are passed over without being looked into.
    const needle = JSON.stringify(toolCallId);
    let distance = 0;
    for (const { role, json, message } of this.up()) {
      if (++distance > MAX_CALL_DISTANCE) return undefined;
      if (role !== "assistant" || !json.includes(needle)) continue;
      if (message.parts.some((part) => "toolCallId" in part && part.toolCallId === toolCallId)) return message;
    }
    return undefined;
  }

  /** Whether it is longer than so many UTF-16 units of JSON. Looks no further. */
  isLongerThan(length: number): boolean {
    let left = length;
    for (const { json } of this.up()) if ((left -= json.length) < 0) return true;
    return false;
  }

  /** The conversation as a JSON array, one message replaced or left out. Of a very long one only the end. */
  json(instead?: Instead): string {
    return writeWhole(this.up(), instead);
  }

  /** The newest messages, at most `limit`, or those before an earlier page. Costs the same in any conversation. */
  page(limit: number, before?: number, instead?: Instead): MessagePage {
    return writePage(before === undefined ? this.up() : this.#upFrom(before, limit), limit, instead);
  }

  /**
   * Adds a message at the end, or replaces the one with its id. Cleaned and cut to size. @returns what is stored.
   * @param identity whose words these are, as stored; undefined: as before.
   */
  put(message: UIMessage, identity?: string | null): UIMessage {
    const { message: stored, json } = boundMessage(this.clean(message));
    const known = this.#find(message.id);
    if (known?.json === json) return stored;
    if (known === undefined) this.#append(stored, json, identity);
    else {
      updateMessage(this.#host, known.seq, stored.role, json, identity);
      if (this.#path.get(message.id) === known) this.#path.replace(known, json, stored);
      this.#options.changed?.([message.id]);
    }
    return stored;
  }

  /** {@link Transcript.put} for what somebody rewrote: summaries that stand for the message are taken back. */
  rewrite(message: UIMessage, identity?: string | null): UIMessage {
    const known = this.#find(message.id);
    const json = known?.json;
    const before = known !== undefined && isReadable(known) ? known.message : undefined;
    const stored = this.put(message, identity);
    if (known !== undefined && this.#find(message.id)?.json !== json)
      dropSummaries(this.#host, { seq: known.seq, id: message.id, reason: "changed", before, now: stored });
    return stored;
  }

  /**
   * Puts a new version in a message's place, under its id; the old one gets a new id and stays, with what was set aside behind
   * it, as a branch. What still stands behind it follows the new version.
   */
  edit(message: UIMessage, identity?: string | null): UIMessage {
    const known = this.#find(message.id);
    if (known === undefined) return this.put(message, identity);
    const { message: stored, json } = boundMessage(this.clean(message));
    const before = { ...(isReadable(known) ? known.message : stored), id: newId("msg") };
    renameMessage(this.#host, known.seq, before.id, isReadable(known) ? JSON.stringify(before) : known.json);
    this.#options.renamed?.(message.id, before.id);
    const behind = this.#behind(known.seq);
    this.cutTo(known.parent);
    this.#append(stored, json, identity);
    const seq = this.#path.leaf;
    if (behind.length > 0) this.#relink(behind, seq);
    if (behind.length > 0 && seq !== null)
      dropSummaries(this.#host, { seq, id: message.id, reason: "changed", before, now: stored });
    return stored;
  }

  /** What storing makes of a message. */
  clean(message: UIMessage): UIMessage {
    const cleaned = sanitizeMessage(message);
    return this.#options.sanitize?.(cleaned) ?? cleaned;
  }

  /** Deletes a message for good; what stood behind it moves up. */
  remove(id: string): void {
    const place = readMessage(this.#host, id);
    if (place === undefined) return;
    const path = this.#path;
    deleteMessage(this.#host, place.seq, place.parent);
    this.#limit.removed(place.seq);
    path.remove(place.seq, place.parent);
    this.#reshaped();
    if (place.role === "assistant") this.#options.removed?.(id);
  }

  /** Ends the conversation with this message, wherever it stands. What came behind it stays, as a branch. */
  cutAfter(id: string): void {
    const entry = this.#find(id);
    if (entry !== undefined) this.cutTo(entry.seq);
  }

  /** The same by number; null: nothing is left. */
  cutTo(leaf: number | null): void {
    if (leaf === this.#path.leaf) return;
    setLeaf(this.#host, this.session, leaf, this.#host.clock.now());
    this.#path.moveTo(leaf);
    this.#limit.changed();
    this.#reshaped();
  }

  /** Takes messages out of the conversation. They stay in the tree, as a branch; what stood behind them moves up. */
  setAside(ids: ReadonlySet<string>): void {
    if (ids.size === 0) return;
    const stay: MessagePlace[] = [];
    let left = ids.size;
    let above: number | null = this.#path.leaf;
    for (const place of this.places()) {
      if (left === 0) break;
      if (ids.has(place.id)) left--;
      else stay.push(place);
      above = place.parent;
    }
    this.#relink(stay.reverse(), above);
  }

  /** Puts messages behind all others, in the order that they have. */
  moveToEnd(ids: ReadonlySet<string>): void {
    if (ids.size === 0) return;
    const stay: MessagePlace[] = [];
    const move: MessagePlace[] = [];
    let top: number | null = null;
    for (const place of this.places()) {
      (ids.has(place.id) ? move : stay).push(place);
      top = place.parent;
      if (move.length === ids.size) break;
    }
    this.#relink([...stay.reverse(), ...move.reverse()], top);
  }

  /** What stands behind a message on this path, oldest first; nothing when it does not stand on it. */
  #behind(seq: number): MessagePlace[] {
    const behind: MessagePlace[] = [];
    for (const place of this.places()) {
      if (place.seq === seq) return behind.reverse();
      behind.push(place);
    }
    return [];
  }

  /** The conversation ends with these from now on, behind `above`. */
  #relink(order: readonly MessagePlace[], above: number | null): void {
    let parent = above;
    for (const place of order) {
      if (place.parent !== parent) setParent(this.#host, place.seq, parent);
      parent = place.seq;
    }
    if (parent !== this.#path.leaf) setLeaf(this.#host, this.session, parent, this.#host.clock.now());
    this.#path.arrange(
      order.map(({ seq }) => seq),
      above,
    );
    this.#limit.changed();
    this.#reshaped();
  }

  /** Deletes all that was said in the session, but for what others show. @returns what is gone. */
  clear(): readonly { readonly id: string; readonly seq: number; readonly role: string }[] {
    const gone = deleteSessionMessages(this.#host, this.#ownerOf());
    resetLeaves(this.#host, this.#ownerOf(), this.#host.clock.now());
    deleteStrayCompactions(this.#host);
    this.reload();
    this.#reshaped();
    return gone;
  }

  /** Deletes the oldest beyond the limit, with their branches, but not the newest message nor those of `keep`. */
  trim(keep: () => ReadonlySet<string> = () => new Set()): void {
    const max = this.#options.maxMessages?.();
    if (max === undefined || !Number.isFinite(max)) return;
    this.#limit.trim(Math.max(1, max), keep);
  }

  /** Another conversation of the tree has changed, as {@link TranscriptOptions.changed} says. */
  changedElsewhere(ids: readonly string[] | undefined): void {
    if (ids === undefined || ids.some((id) => this.#window?.get(id) !== undefined)) this.reload();
    else this.#limit.changed();
  }

  /** A transaction was undone, or somebody else wrote: what is in memory may not be what is stored. */
  reload(): void {
    this.#window = undefined;
    this.#shape++;
    this.#limit.changed();
  }

  #reshaped(): void {
    this.#shape++;
    this.#options.changed?.();
  }

  get #path(): PathWindow {
    return (this.#window ??= new PathWindow(
      this.#host,
      this.#host.blank ? null : (readSessionLine(this.#host, this.session)?.leaf ?? null),
    ));
  }

  #find(id: string): Entry | undefined {
    const known = this.#path.get(id);
    if (known !== undefined || this.#host.blank) return known;
    const row = readMessage(this.#host, id);
    return row && toEntry(row);
  }

  #append(message: UIMessage, json: string, identity?: string | null): void {
    const { id, role } = message;
    const parent = this.#path.leaf;
    const now = this.#host.clock.now();
    const row = { id, session: this.#ownerOf(), parent, role, body: json, createdAt: now, identity: identity ?? null };
    const seq = insertMessage(this.#host, row);
    setLeaf(this.#host, this.session, seq, now);
    this.#path.push({ seq, id, role, parent, json, message, pinned: false });
    this.#limit.added();
    this.#options.changed?.([]);
  }

  /** Whose the messages are that are said here: a view has none of its own. */
  #ownerOf(): string {
    return (this.#owner ??= ownerIdOf(this.#host, this.session));
  }

  /** Places from the leaf up, read in pages. */
  *places(): Generator<MessagePlace> {
    let at = this.#path.leaf;
    while (at !== null) {
      const page = placesUp(this.#host, at, WAY_PAGE);
      yield* page;
      at = page.at(-1)?.parent ?? null;
    }
  }

  /** Messages before the one with this number, newest first. */
  *#upFrom(before: number, limit: number): Generator<ReadableEntry> {
    let at = readMessageAt(this.#host, before)?.parent ?? null;
    while (at !== null) {
      const page = messagesUp(this.#host, at, limit + 1).map(toEntry);
      for (const entry of page) if (isReadable(entry)) yield entry;
      at = page.at(-1)?.parent ?? null;
    }
  }
}

/** One message that is shown otherwise than it is stored, or not at all. */
export interface Instead {
  readonly id: string;
  readonly json: string | undefined;
}

/** A stretch of a conversation. */
interface MessagePage {
  /** A JSON array, oldest first. */
  readonly json: string;
  /** With this, the page before can be had; undefined when there is nothing before. */
  readonly before: number | undefined;
  /** Numbers in the tree of the messages that it shows. */
  readonly seqs: readonly number[];
}

/** The most that a page holds, in UTF-16 units of JSON, unless its newest message alone is longer. */
const MAX_PAGE_LENGTH = 500_000;
/** The most of a conversation that is shown at once to those who cannot ask for pages. */
const MAX_WHOLE_LENGTH = 24_000_000;

/** Messages as a JSON array, within a bound. @param up newest first; read as far as they fit. */
function writeWhole(up: Iterable<ReadableEntry>, instead?: Instead): string {
  const texts: string[] = [];
  let length = 0;
  for (const entry of up) {
    const text = shown(entry, instead);
    if (text === undefined) continue;
    length += text.length;
    if (length > MAX_WHOLE_LENGTH && texts.length > 0) break;
    texts.push(text);
  }
  return `[${texts.reverse().join(",")}]`;
}

/** At most `limit` messages as a page. @param up newest first; read no further than needed. */
function writePage(up: Iterable<ReadableEntry>, limit: number, instead?: Instead): MessagePage {
  const texts: string[] = [];
  const seqs: number[] = [];
  let length = 0;
  let first: ReadableEntry | undefined;
  for (const entry of up) {
    const text = shown(entry, instead);
    length += text?.length ?? 0;
    if ((length > MAX_PAGE_LENGTH && texts.length > 0) || seqs.length >= limit) break;
    if (text !== undefined) texts.push(text);
    seqs.push(entry.seq);
    first = entry;
  }
  const before = first === undefined || first.parent === null ? undefined : first.seq;
  return { json: `[${texts.reverse().join(",")}]`, before, seqs: seqs.reverse() };
}

function shown(entry: ReadableEntry, instead: Instead | undefined): string | undefined {
  return entry.id === instead?.id ? instead.json : entry.json;
}
