import type { Role } from "../message/types.ts";

// What is told of sessions, searches and the model's window, in rows, in frames and to the app.

/** Who gave a session its name. */
export type NamedBy = "derived" | "model" | "user";

/** `truncate`: without a model, since none could summarise and the provider refused it whole. `prune`: tool outputs only. */
export type CompactionKind = "summary" | "truncate" | "prune";

/** `started` has not ended yet, or was cut; `undone` was done, and counts no more. */
export type CompactionStatus = "started" | "done" | "failed" | "undone";

/**
 * Why it was made: a person or the app asked (`manual`), the conversation outgrew a bound between turns (`after`), the next
 * request would not fit (`before`) or was refused (`error`), the last one had not fit (`usage`) or hardly (`proactive`), to make
 * room early (`background`), or to summarise at last what was left out without a summary (`retry`).
 */
export type CompactionTrigger =
  | "manual"
  | "after"
  | "before"
  | "error"
  | "usage"
  | "proactive"
  | "background"
  | "retry";

/** What a list of sessions shows. */
export interface SessionInfo {
  readonly id: string;
  readonly name: string | null;
  /** Who gave it its name: it was taken from the first message, a model found it, or a person wrote it. */
  readonly namedBy: NamedBy | null;
  /** Those who name no session are in this one. */
  readonly current: boolean;
  /** The session that it was forked from, and the message with which it began. */
  readonly parent: string | null;
  readonly forkedAt: string | null;
  /** Whose data it holds. */
  readonly subject: string | null;
  /** It is one client's own place in that session. */
  readonly viewOf: string | null;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** When something was said in it last, or it was changed. */
  readonly updatedAt: number;
}

/** A message in which something was found. */
export interface SearchHit {
  readonly sessionId: string;
  readonly sessionName: string | null;
  readonly messageId: string;
  readonly role: Role;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** A piece of the message; what was found stands in `**`. */
  readonly excerpt: string;
  /** 1 is the best. */
  readonly rank: number;
}

/** A compaction, as it is told. */
export interface CompactionInfo {
  readonly id: string;
  /** The session that it was made in. Others that go through its message have it too. */
  readonly session: string;
  readonly kind: CompactionKind;
  readonly status: CompactionStatus;
  readonly trigger: CompactionTrigger;
  /** The newest message that it covers; null when that is gone. */
  readonly messageId: string | null;
  /** How many parts of it are covered; null: all. */
  readonly parts: number | null;
  /** Whether the model reads it now. */
  readonly inEffect: boolean;
  readonly summary: string | null;
  /** What code put below the summary. */
  readonly carried: string | null;
  readonly focus: string | null;
  readonly model: string | null;
  readonly tokensBefore: number;
  readonly tokensAfter: number | null;
  /** How many of the messages that it covers nobody has read for it; null: none. */
  readonly leftOut: number | null;
  /** Why it came to nothing; of `truncate`, why there is no summary. */
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** A summary that could be applied. */
export interface DraftCompaction {
  readonly kind: "summary" | "truncate";
  readonly summary: string;
  /** The newest message that it covers. */
  readonly messageId: string;
  /** How many of its parts; null: all. */
  readonly parts: number | null;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  /** Why it could not be applied as it is; undefined: it could. */
  readonly problem: string | undefined;
}

/**
 * What something in the window is: the system prompt without its blocks, a tool, a context block, the summary of what
 * was said before, the state that code carried over with it, a message that is kept word for word, any other message, what
 * a tool returned, a file.
 */
export type ContextItemKind =
  | "system"
  | "tools"
  | "block"
  | "summary"
  | "carried"
  | "pinned"
  | "message"
  | "tool-output"
  | "file";

/** One thing in the window. */
export interface ContextItem {
  readonly kind: ContextItemKind;
  /** The stored message that it is from. None for what is not from one. */
  readonly id?: string;
  /** For a person: the beginning of a text, or the name of a tool, a block or a file. */
  readonly label: string;
  readonly tokens: number;
}

/** Why something is not in the window: summarised, a tool output cleared for room, superseded by newer ones, or too long. */
export type LeftOutKind = "summarised" | "cleared" | "superseded" | "bounded";

/** One thing that is not in the window. It is still stored. */
export interface LeftOutItem {
  readonly kind: LeftOutKind;
  /** The stored message that it is from; of what is summarised, the newest one. */
  readonly id?: string;
  /** The call whose output it is. */
  readonly call?: string;
  /** The calls that have newer outputs, with their messages. */
  readonly newer?: readonly { readonly id: string; readonly call: string }[];
  /** What would have to be undone to have it back. */
  readonly compaction?: string;
  /** For a person: the name of a tool, or what it is. */
  readonly label: string;
  /** About what it would add to every request. */
  readonly tokens: number;
  /** What that would cost in one request, in US dollars, if nothing is cached. None where the model has no known price. */
  readonly cost?: number;
}

/** What fills the window of a model, item by item, of one request as it was sent; and what was left out of it. */
export interface ContextReport {
  /** `provider/modelId` */
  readonly model: string;
  /** The whole window. */
  readonly limit: number;
  /** What may be sent: the window without what is set aside for the answer. */
  readonly usable: number;
  /** What is sent. The sum of all items. */
  readonly used: number;
  /** Whether `used` is an estimate. Else the provider counted it; what each item has of it is always estimated. */
  readonly estimated: boolean;
  /** In the order in which they are sent. */
  readonly items: readonly ContextItem[];
  readonly byKind: Readonly<Record<ContextItemKind, number>>;
  /** What is not in it, and what it would take to have it back. */
  readonly leftOut: readonly LeftOutItem[];
  readonly leftOutByKind: Readonly<Record<LeftOutKind, number>>;
  /** Input cost of one uncached request in US dollars: as sent, and with all that was left out. None without a known price. */
  readonly cost?: { readonly sent: number; readonly whole: number };
}
