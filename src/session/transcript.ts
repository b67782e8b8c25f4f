import { boundMessage } from "../message/bound.ts";
import type { StoredMessages } from "../message/reconcile.ts";
import { sanitizeMessage } from "../message/sanitize.ts";
import type { Role, UIMessage } from "../message/types.ts";
import { parseMessage } from "../message/validate.ts";
import type { AgentHost } from "../port.ts";
import { deleteAllMessages, deleteMessage, listMessages, messageIdsBefore, putMessage } from "../store/message.ts";

/** What the app may do to a message before it is stored. */
export interface TranscriptOptions {
  /** After the built-in cleaning. Must be quick; what it throws fails the write. */
  sanitize?(message: UIMessage): UIMessage;
  /** The most messages to keep; the oldest go first. */
  maxMessages?(): number | undefined;
  /** A message of the assistant is gone for good, in the caller's transaction. Not told of {@link Transcript.clear}. */
  removed?(id: string): void;
}

/** One message that is shown otherwise than it is stored, or not at all. */
export interface Instead {
  readonly id: string;
  readonly json: string | undefined;
}

/** A stretch of the conversation. */
export interface MessagePage {
  /** A JSON array, oldest first. */
  readonly json: string;
  /** With this, the page before can be had; undefined when there is nothing before. */
  readonly before: number | undefined;
}

/** The most that a page holds, in UTF-16 units of JSON, unless its newest message alone is longer. */
const MAX_PAGE_LENGTH = 500_000;

interface Entry {
  readonly id: string;
  readonly role: Role;
  json: string;
  /** Parsed on demand. */
  message: UIMessage | undefined;
}

/**
 * The stored conversation, in order. Messages are kept as the JSON that is stored and sent, and parsed when
 * somebody looks at them. A write changes the row first and the memory after, in the caller's transaction.
 */
export class Transcript implements StoredMessages {
  readonly #host: AgentHost;
  readonly #options: TranscriptOptions;
  #entries: Map<string, Entry> | undefined;

  constructor(host: AgentHost, options: TranscriptOptions = {}) {
    this.#host = host;
    this.#options = options;
  }

  get size(): number {
    return this.#all().size;
  }

  role(id: string): Role | undefined {
    return this.#all().get(id)?.role;
  }

  get(id: string): UIMessage | undefined {
    const entry = this.#all().get(id);
    return entry === undefined ? undefined : parsed(entry);
  }

  idsAfter(id: string): readonly string[] {
    const ids = [...this.#all().keys()];
    const at = ids.indexOf(id);
    return at === -1 ? [] : ids.slice(at + 1);
  }

  /** All messages, but for one that should not be seen yet. */
  list(without?: string): UIMessage[] {
    const messages: UIMessage[] = [];
    for (const entry of this.#all().values()) if (entry.id !== without) messages.push(parsed(entry));
    return messages;
  }

  last(without?: string): UIMessage | undefined {
    let last: Entry | undefined;
    for (const entry of this.#all().values()) if (entry.id !== without) last = entry;
    return last === undefined ? undefined : parsed(last);
  }

  /** The newest message of the assistant. */
  lastAnswer(): UIMessage | undefined {
    let last: Entry | undefined;
    for (const entry of this.#all().values()) if (entry.role === "assistant") last = entry;
    return last === undefined ? undefined : parsed(last);
  }

  /** Ids of the messages behind the last answer; `without` is an answer that does not count yet. */
  unanswered(without?: string): string[] {
    const ids: string[] = [];
    for (const { id, role } of this.#all().values()) {
      if (id === without) continue;
      if (role === "assistant") ids.length = 0;
      else ids.push(id);
    }
    return ids;
  }

  /** The newest message that has this call. */
  withCall(toolCallId: string): UIMessage | undefined {
    // Ids are quoted in JSON; most messages are passed over without being parsed.
    const needle = JSON.stringify(toolCallId);
    for (const entry of [...this.#all().values()].reverse()) {
      if (entry.role !== "assistant" || !entry.json.includes(needle)) continue;
      const message = parsed(entry);
      if (message.parts.some((part) => "toolCallId" in part && part.toolCallId === toolCallId)) return message;
    }
    return undefined;
  }

  /** The whole conversation as a JSON array, one message replaced or left out. */
  json(instead?: Instead): string {
    const texts: string[] = [];
    for (const entry of this.#all().values()) {
      const text = shown(entry, instead);
      if (text !== undefined) texts.push(text);
    }
    return `[${texts.join(",")}]`;
  }

  /**
   * The newest messages, at most `limit`, or those before an earlier page. Costs the same however long the
   * conversation is.
   */
  page(limit: number, before?: number, instead?: Instead): MessagePage {
    const texts: string[] = [];
    let length = 0;
    let first: number | undefined;
    const rows = messageIdsBefore(this.#host, before ?? Number.MAX_SAFE_INTEGER, limit + 1);
    for (const { id, seq } of rows.slice(0, limit)) {
      const entry = this.#all().get(id);
      const text = entry && shown(entry, instead);
      length += text?.length ?? 0;
      if (length > MAX_PAGE_LENGTH && texts.length > 0) return pageOf(texts, first);
      if (text !== undefined) texts.push(text);
      first = seq;
    }
    return pageOf(texts, rows.length > limit ? first : undefined);
  }

  /** Adds a message at the end, or replaces the one with its id. Cleaned and cut to size. @returns what is stored. */
  put(message: UIMessage): UIMessage {
    const { message: stored, json } = boundMessage(this.clean(message));
    const entries = this.#all();
    const known = entries.get(message.id);
    if (known?.json === json) return stored;
    putMessage(this.#host, { id: stored.id, role: stored.role, body: json }, this.#host.clock.now());
    if (known === undefined) entries.set(stored.id, { id: stored.id, role: stored.role, json, message: stored });
    else {
      known.json = json;
      known.message = stored;
    }
    return stored;
  }

  /** What storing makes of a message. */
  clean(message: UIMessage): UIMessage {
    const cleaned = sanitizeMessage(message);
    return this.#options.sanitize?.(cleaned) ?? cleaned;
  }

  remove(id: string): void {
    const answer = this.role(id) === "assistant";
    this.#delete(id);
    if (answer) this.#options.removed?.(id);
  }

  #delete(id: string): void {
    deleteMessage(this.#host, id);
    this.#all().delete(id);
  }

  /** Puts messages behind all others, in the order that they have. */
  moveToEnd(ids: ReadonlySet<string>): void {
    if (ids.size === 0) return;
    const entries = this.#all();
    for (const entry of [...entries.values()].filter(({ id }) => ids.has(id))) {
      this.#delete(entry.id);
      putMessage(this.#host, { id: entry.id, role: entry.role, body: entry.json }, this.#host.clock.now());
      entries.set(entry.id, entry);
    }
  }

  clear(): void {
    deleteAllMessages(this.#host);
    this.#entries = new Map();
  }

  /** Deletes the oldest beyond the limit, but never the newest message nor those of `keep`. */
  trim(keep: () => ReadonlySet<string> = () => new Set()): void {
    const max = this.#options.maxMessages?.();
    if (max === undefined || !Number.isFinite(max)) return;
    const entries = this.#all();
    let left = entries.size;
    if (left <= Math.max(1, max)) return;
    const kept = keep();
    for (const id of entries.keys()) {
      if (entries.size <= Math.max(1, max) || --left === 0) return;
      if (!kept.has(id)) this.remove(id);
    }
  }

  /** A transaction was undone: what is in memory may be ahead of the rows. */
  reload(): void {
    this.#entries = undefined;
  }

  #all(): Map<string, Entry> {
    if (this.#entries !== undefined) return this.#entries;
    const entries = new Map<string, Entry>();
    for (const row of listMessages(this.#host)) {
      const entry = toEntry(row.body);
      // A damaged row is passed over, not deleted: whoever mends it finds it as it is.
      if (entry !== undefined && !entries.has(entry.id)) entries.set(entry.id, entry);
    }
    return (this.#entries = entries);
  }
}

function parsed(entry: Entry): UIMessage {
  return (entry.message ??= JSON.parse(entry.json) as UIMessage);
}

function shown(entry: Entry, instead: Instead | undefined): string | undefined {
  return entry.id === instead?.id ? instead.json : entry.json;
}

/** @param texts newest first. */
function pageOf(texts: string[], before: number | undefined): MessagePage {
  return { json: `[${texts.reverse().join(",")}]`, before };
}

function toEntry(json: string): Entry | undefined {
  try {
    const message = parseMessage(JSON.parse(json));
    return message && { id: message.id, role: message.role, json, message };
  } catch {
    return undefined;
  }
}
