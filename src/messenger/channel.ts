import { PerdureError } from "../base/error.ts";
import type { HostedAgentClass } from "../port.ts";
import type { StateCall } from "./kept-state.ts";

/*
 * The port to a network
 *
 * All that this package knows of Telegram, Slack and the like is behind this interface. A channel makes calls and reads what
 * comes; it stores, retries (that is `courier.ts`) and decides nothing. `channelConformance` of `perdure/testing` says what it
 * must do.
 *
 * A new network is a folder beside `slack/` and `telegram/` whose function makes a `Channel` and ends in
 * `messenger(channel, options)` of `define.ts`, a list in `src/public/`, and an entry in the package's `exports`. Agents return
 * it from `getMessengers()`. Where there is a published adapter of the Chat SDK, `chat-sdk/` serves it without any of this.
 */

/** Where something is said. The thread is the network's own name for a conversation, as the channel writes it. */
export interface Place {
  readonly thread: string;
  /** Two people, or a person and the agent. */
  readonly dm: boolean;
  /** The message that is answered, where the network shows that. */
  readonly replyTo?: string;
}

/** What the agent is called there. */
export interface Self {
  readonly id: string;
  readonly userName: string;
  /** Which workspace it is of, where one app may be in several. */
  readonly team?: string;
}

/** Somebody there. */
export interface Author {
  readonly id: string;
  readonly name: string;
  readonly userName?: string;
  readonly isBot: boolean;
}

/** A file that somebody sent. Stored with the message and shown to the model, so it must not hold an address with a secret. */
export interface FileRef {
  readonly name: string;
  readonly mediaType: string;
  /** What {@link Channel.fetchFile} finds it by, for as long as the network keeps it. Absent: it cannot be fetched. */
  readonly id?: string;
  /** In bytes, as the network says. */
  readonly size?: number;
}

/** A file that the agent sends. */
export interface SentFile {
  readonly name: string;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}

/** What the keys of files begin with, for networks that can be asked about messages alone. */
export const FILE_KEY = "file";

/** A button that somebody pressed. */
export interface Press {
  /** What the network wants to be answered with. */
  readonly id: string;
  /** What the button holds. */
  readonly data: string;
  /** The message that it is under, if the network says. */
  readonly messageId?: string;
}

/** Something that happened there. */
export interface MessengerEvent {
  readonly kind: "message" | "edit" | "press";
  /** Names of this very thing, any of which says that it is the same when it comes again. */
  readonly keys: readonly string[];
  readonly thread: string;
  readonly dm: boolean;
  /** What people call the place. */
  readonly title?: string;
  readonly author: Author;
  readonly messageId: string;
  /** What was said, the agent's own name as `@userName`. */
  readonly text: string;
  /** The agent was named, or answered. */
  readonly mentioned: boolean;
  readonly files: readonly FileRef[];
  /** Messages of one gallery. They are one message to the agent. */
  readonly group?: string;
  readonly press?: Press;
  /** The place has another name from now on. */
  readonly movedTo?: string;
}

/** The name of a message itself, whatever is told of it. */
export function messageKey({ thread, messageId }: Pick<MessengerEvent, "thread" | "messageId">): string {
  return `message:${thread}:${messageId}`;
}

/** A button. `data` comes back in {@link Press}. */
export interface Button {
  readonly label: string;
  readonly data: string;
}

/** What one message shows. */
export interface Content {
  /** Markdown, within {@link Channel.limits}. */
  readonly text: string;
  /** The network did not read it as it was written: it is sent as it is. */
  readonly plain?: boolean;
  /** An empty list: it had some, and has none now. */
  readonly buttons?: readonly Button[];
}

/** A message that was made. */
export interface Sent {
  readonly id: string;
}

/** What a channel is given when its agent starts. */
export interface ChannelRoom {
  /** What the client of a network keeps from one life to the next: rows of the agent. */
  readonly state: StateCall;
  /** The same in a child of the agent, which is made when it is asked. @throws PerdureError `unknown_agent` for a class that the host does not know */
  stateIn(agentClass: HostedAgentClass, name: string): StateCall;
}

/** Where to go on reading. */
export interface Cursor {
  read(): string | undefined;
  /** Stored when it returns. */
  write(value: string): void;
}

/** What happened to a call of a channel. */
export type ChannelErrorKind =
  /** It was surely not done: it never left, or the network could not be reached. */
  | "unsent"
  /** Nobody knows whether it was done. */
  | "unknown"
  /** Too many; `retryAfterMs` says when. It was not done. */
  | "rate"
  /** The network will not do this, however often it is asked: blocked, no such chat, too long. */
  | "refused"
  /** The message that was to be changed is not there any more. */
  | "gone"
  /** The message shows this already. */
  | "same"
  /** The network does not read the text as it is written. */
  | "format"
  /** The token is wrong. */
  | "auth"
  /** Somebody else reads what comes. */
  | "conflict";

/** What a call of a channel throws. */
export class ChannelError extends PerdureError {
  readonly kind: ChannelErrorKind;
  readonly retryAfterMs: number | undefined;

  constructor(kind: ChannelErrorKind, message: string, options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super("call_failed", message, { cause: options.cause });
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** One network. Its calls must not retry by themselves, and fail with a {@link ChannelError}. */
export interface Channel {
  /** `telegram`, `slack`: what identities begin with. */
  readonly provider: string;
  readonly limits: {
    /** The longest text of a message, counted in UTF-16 units of the Markdown. */
    readonly text: number;
    /** The longest data of a button, in bytes; 0: there are no buttons. */
    readonly buttonData: number;
    /** Whether a message can be changed. If not, an answer is sent when it is whole. */
    readonly editable: boolean;
    /** The largest file that can be sent, in bytes. Absent: as large as it may be. */
    readonly file?: number;
  };
  readonly pace: {
    /** Between two calls at one place. */
    perPlaceMs(place: Place): number;
    /** Of all places together. */
    readonly perSecond: number;
    /** Places of one name share their pace, and are called one after another. Default: each thread is one. */
    lane?(place: Place): string;
  };
  /** Whose messages {@link Channel.listen} reads, where two that read take them from each other: one agent of a host does. */
  readonly account?: string;
  /** The agent begins its life. Called before all else, once. */
  open?(room: ChannelRoom): void;
  /** Who the agent is there. Asked once per life. */
  self(signal: AbortSignal): Promise<Self>;
  /** Judges a request to the webhook. A Response refuses it; undefined: it is genuine. */
  verify?(request: Request, body: Uint8Array): Promise<Response | undefined>;
  /** Pure: what a genuine body, update or envelope tells. Throws `bad_input` for what is none. */
  parse(input: unknown, self: Self): readonly MessengerEvent[];
  /**
   * Asks the network for what the input leaves out, such as people's names; {@link Channel.parse} reads the result as it reads
   * the input. Called only for those who may talk. Must not reject, and not take long: the network waits. Absent: nothing is left out.
   */
  complete?(input: unknown, signal: AbortSignal): Promise<unknown>;
  /**
   * Reads a webhook's body for {@link Channel.parse}, or answers it at once. A channel that finds out itself what to store awaits
   * `accept`, which resolves once stored, before it answers.
   */
  read?(
    request: Request,
    body: Uint8Array,
    accept: (input: unknown) => Promise<void>,
  ): Promise<{ readonly input: unknown } | { readonly answer: Response }>;
  /**
   * Reads what comes until `signal`. Await `accept`, which resolves once stored, before telling the network; where it rejects, go
   * on with what others say, and bring it again. Returning early means that nothing is left to do in this life.
   */
  listen?(accept: (input: unknown) => Promise<void>, cursor: Cursor, signal: AbortSignal): Promise<void>;
  create(place: Place, content: Content, key: string, signal: AbortSignal): Promise<Sent>;
  edit(place: Place, id: string, content: Content, signal: AbortSignal): Promise<void>;
  /** A message that is a file. Absent: the network takes none; people read that there is one. */
  sendFile?(place: Place, file: SentFile, key: string, signal: AbortSignal): Promise<Sent>;
  /** The bytes of what somebody sent, as they come. Absent: people's files are named, and not read. */
  fetchFile?(file: FileRef, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Whether a create, or a file, of this key has happened. Absent: the network cannot be asked. */
  find?(place: Place, key: string, since: number, signal: AbortSignal): Promise<Sent | "none" | "unknown">;
  /** Tells whoever pressed what came of it. */
  acknowledge?(press: Press, text: string, signal: AbortSignal): Promise<void>;
}
