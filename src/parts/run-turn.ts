import type { OutputInterface, ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import type { Identity } from "../base/identity.ts";
import type { Follower } from "../live/broadcast.ts";
import { type MessageInput, toMessages } from "../message/input.ts";
import type { UIMessage } from "../message/types.ts";
import { readTurn, type TurnRow } from "../store/turn.ts";
import { type Conversations, sessionNamed } from "../turn/engine/conversations.ts";
import type { SaveMessagesResult } from "../turn/policy.ts";
import { findMessage, findSession, refuseDuringTurns } from "../session/session-changes.ts";
import { messagesIn } from "../turn/engine/mend.ts";
import { accept, acceptMore, givenIdentity, nameSession, persist } from "../turn/intake/accept.ts";
import { submitMessages, type SubmitOptions, type SubmitResult } from "../turn/intake/submissions.ts";
import type { TurnConfig } from "../turn/step/config.ts";
import type { StepParts } from "../turn/step/parts.ts";
import { countElsewhere } from "./cause.ts";
import type { ChatRoom } from "../live/chat-room.ts";
import { noteWaiting, refuseCircle } from "./circle.ts";
import { currentAgent, sessionNow, turnNow } from "./current.ts";
import { parts } from "./part.ts";

/** What a turn answers: a text, a message, or several. Those without an id get one. */
export type TurnInput = MessageInput;

/** Who listens to a turn of `chat()`. Called one after the other, in order; what one throws stops the turn. */
export interface StreamCallback {
  /** The turn has its id, by which it can be cancelled. */
  onStart?(event: { requestId: string }): void | Promise<void>;
  /** One chunk of the answer, as JSON. */
  onEvent(json: string): void | Promise<void>;
  onDone(): void | Promise<void>;
  onError?(error: string): void | Promise<void>;
  /** The attempt was given up and will be carried on without this callback: neither done nor failed. */
  onInterrupted?(): void | Promise<void>;
}

/** Options of `chat()`. */
export interface ChatOptions extends TurnExtras {
  /** Aborting it stops the turn. */
  readonly signal?: AbortSignal;
}

/** What server code may bring along for one turn. Kept in memory: after a crash the turn goes on without it. */
export interface TurnExtras {
  readonly tools?: ToolSet;
  readonly config?: TurnConfig;
  /** Its session. Default: that of the running turn, else the current one. */
  readonly session?: string;
  /** For whom it is. Stored, unlike the others. */
  readonly identity?: Identity;
}

/** What all modes of `runTurn()` take. */
interface TurnRequest extends TurnExtras {
  /** What to answer; none goes on with the last answer. */
  readonly input?: TurnInput;
  /** Goes on with the last answer. */
  readonly continuation?: boolean;
  /** Aborting it stops the turn. Not for submissions: they outlive their caller. */
  readonly signal?: AbortSignal;
}

/** `runTurn()` that waits for the answer. */
export interface WaitTurnOptions extends TurnRequest {
  readonly mode?: "wait";
}

/** `runTurn()` that streams the answer and waits for its end. */
export interface StreamTurnOptions extends TurnRequest {
  readonly mode: "stream";
  readonly callback: StreamCallback;
}

/** `runTurn()` that only has the messages accepted. */
export interface SubmitTurnOptions extends SubmitOptions {
  readonly mode: "submit";
  readonly input: TurnInput;
}

/** Options of `runTurn()`. */
export type RunTurnOptions = WaitTurnOptions | StreamTurnOptions | SubmitTurnOptions;

/** A request whose answer has this structure. */
export interface WithOutput<OUTPUT> {
  readonly config: TurnConfig & { readonly output: OutputInterface<OUTPUT> };
}

/** Options of `addMessages()`. */
export interface AddMessagesOptions {
  /** `upsert` (default) replaces messages of the same id; `append` leaves them as they are. */
  readonly mode?: "append" | "upsert";
  /** New ones go behind this message, one behind the other; null: they begin a conversation. Default: behind what was said last. */
  readonly parentId?: string | null;
  /** Default: that of the running turn, else the current one. */
  readonly session?: string;
}

/** See `Think.addMessages`. */
export function addMessages(
  chat: Conversations,
  given: MessageInput | ((messages: UIMessage[]) => MessageInput),
  { mode = "upsert", parentId, session: named }: AddMessagesOptions,
): void {
  const session = sessionNamed(chat, named ?? sessionNow(chat));
  const transcript = chat.transcripts.of(session);
  const list = toMessages(typeof given === "function" ? given(messagesIn(chat, session)) : given);
  const fresh = mode === "append" ? list.filter(({ id }) => transcript.role(id) === undefined) : list;
  if (parentId !== undefined) return addBehind(chat, session, parentId, fresh);
  if (fresh.length > 0) persist(chat, fresh, { session });
}

/** What is there already stays where it is. */
function addBehind(
  chat: Conversations,
  session: string,
  parentId: string | null,
  messages: readonly UIMessage[],
): void {
  const rows = { store: chat.host };
  const parent = parentId === null ? null : findMessage(rows, findSession(rows, session), parentId).seq;
  if (messages.length === 0) return;
  chat.commit(() => {
    const transcript = chat.transcripts.of(session);
    const isNew = messages.some(({ id }) => transcript.role(id) === undefined);
    if (isNew && parent !== transcript.leaf) {
      refuseDuringTurns(chat.host, session);
      transcript.cutTo(parent);
    }
    for (const message of messages) transcript.rewrite(message);
    nameSession(chat, session, messages);
  });
  chat.output.transcript(session);
}

/** See `Think.chat`. */
export async function chat(
  room: ChatRoom,
  brought: StepParts["brought"],
  input: TurnInput,
  callback: StreamCallback,
  options: ChatOptions = {},
): Promise<SaveMessagesResult> {
  refuseInside(room.chat, "chat");
  const elsewhere = countElsewhere(room.chat.host);
  if (elsewhere !== undefined) await elsewhere;
  const requestId = begin(room.chat, brought, input, options);
  if (requestId === undefined) return { requestId: "", status: "skipped" };
  return follow(room, brought, requestId, callback, options.signal);
}

/** See `Think.runTurn`. */
export async function runTurn(
  of: Accepting & { readonly room: ChatRoom },
  brought: StepParts["brought"],
  options: RunTurnOptions,
): Promise<SaveMessagesResult | SubmitResult> {
  // JavaScript can give the text alone; taken for options it would ask for nothing.
  if (typeof (options as unknown) !== "object")
    throw new PerdureError("bad_input", 'runTurn() takes an object: `{ input: "hello" }`.');
  if (options.mode === "submit") {
    // JavaScript can leave it out.
    if ((options.input as TurnInput | undefined) === undefined)
      throw new PerdureError("bad_input", "Give `input`: a submission is a message to answer.");
    return submit(of, options.input, options);
  }
  const { room } = of;
  refuseInside(room.chat, "runTurn");
  const elsewhere = countElsewhere(room.chat.host);
  if (elsewhere !== undefined) await elsewhere;
  const input = options.input === undefined || options.continuation === true ? undefined : options.input;
  const requestId = begin(room.chat, brought, input, options);
  if (requestId === undefined) return { requestId: "", status: "skipped" };
  const callback = options.mode === "stream" ? options.callback : undefined;
  return follow(room, brought, requestId, callback, options.signal);
}

/** An agent that accepts messages, and knows where answers can be delivered. */
interface Accepting {
  readonly chat: Conversations;
  readonly whyNowhere: (place: unknown) => Promise<string | undefined>;
}

/** See `Think.submitMessages`. */
export async function submit(
  { chat, whyNowhere }: Accepting,
  messages: MessageInput,
  options: SubmitOptions,
): Promise<SubmitResult> {
  const why = options.deliverTo && (await whyNowhere(options.deliverTo));
  if (why !== undefined) throw new PerdureError("bad_input", why);
  const session = sessionNamed(chat, options.session ?? sessionNow(chat));
  const elsewhere = countElsewhere(chat.host);
  if (elsewhere !== undefined) await elsewhere;
  const result = submitMessages(chat, messages, { ...options, session });
  await chat.host.durable();
  return result;
}

function begin(
  chat: Conversations,
  brought: StepParts["brought"],
  given: MessageInput | undefined,
  { tools, config, session, identity }: TurnExtras,
): string | undefined {
  const wish = {
    session: sessionNamed(chat, session ?? sessionNow(chat)),
    identity: givenIdentity({ identity }),
    // Before the turn starts, which it may do at once.
    also({ id }: TurnRow) {
      if (tools !== undefined || config !== undefined) brought.set(id, { tools, config });
      noteWaiting(id);
    },
  };
  if (given === undefined) return acceptMore(chat, wish)?.id;
  return accept(chat, { ...wish, input: { kind: "messages", messages: toMessages(given), joins: "now" } }).id;
}

async function follow(
  room: ChatRoom,
  brought: StepParts["brought"],
  requestId: string,
  callback: StreamCallback | undefined,
  signal: AbortSignal | undefined,
): Promise<SaveMessagesResult> {
  const told = callback === undefined ? undefined : tell(room, requestId, callback);
  try {
    const end = await room.chat.settled(requestId, signal);
    await told?.finish(end);
    return { requestId, ...end };
  } finally {
    if (told !== undefined) room.live.followers.delete(told.follower);
    brought.delete(requestId);
    currentAgent().agent?.[parts].waiting.delete(requestId);
  }
}

/** Hands chunks to a callback, one after the other. */
function tell({ chat, live }: ChatRoom, requestId: string, callback: StreamCallback) {
  let said: Promise<unknown> = Promise.resolve();
  const then = (work: () => unknown) => {
    said = said.then(work);
    said.catch(() => chat.cancel(requestId));
  };
  then(() => callback.onStart?.({ requestId }));
  const seq = readTurn(chat.host, requestId)?.seq ?? -1;
  const follower: Follower = {
    seq,
    chunks(turn, chunks) {
      if (turn.seq === seq) for (const { body } of chunks) then(() => callback.onEvent(body));
    },
    interrupted(turn) {
      if (turn.seq === seq) then(() => callback.onInterrupted?.());
    },
    ended() {},
    gone() {},
  };
  live.followers.add(follower);
  return {
    follower,
    async finish(end: { status: string; error?: string }): Promise<void> {
      await said;
      if (end.status === "error") await callback.onError?.(end.error ?? "");
      else await callback.onDone();
    },
  };
}

/** A turn that waits for another turn of the same agent waits for itself. */
function refuseInside(chat: Conversations, method: string): void {
  const { host } = chat;
  refuseCircle(host, (turn) => chat.turn(turn) !== undefined, method);
  if (turnNow(host) === undefined) return;
  throw new PerdureError(
    "bad_state",
    `${method}() was called inside a turn of the same agent, where it would wait for itself. Use submitMessages().`,
  );
}
