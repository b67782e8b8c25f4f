import type { UIMessage } from "../../message/types.ts";
import type { AgentHost, WriteLevel } from "../../port.ts";
import type { SessionChange } from "../../session/session-ground.ts";
import type { Transcripts } from "../../session/transcripts.ts";
import type { TurnRow } from "../../store/turn.ts";
import type { Origin, TurnAgent, TurnOutcome, TurnPolicy } from "../policy.ts";
import type { BackgroundCall } from "../step/background-note.ts";
import type { ChatAnswer, OrdinaryTurn } from "./by-stream.ts";
import type { LoggedChunk } from "./stream-log.ts";
import type { Turn } from "./turn.ts";
import type { ChatTurnOptions } from "../step/config.ts";

/* How a turn's parts see each other. Commands go down; facts return by `TurnFacts` in the commit, by `TurnOutput` after it. */

/** The conversations of an agent and the turns that run in them. */
export interface Engine {
  readonly host: AgentHost;
  readonly policy: TurnPolicy;
  /** The policy that says nothing: a class that has its hooks is not asked. */
  readonly silent: TurnPolicy;
  readonly agent: TurnAgent;
  readonly answerer: Answerer;
  readonly facts: readonly TurnFacts[];
  readonly output: TurnOutput;
  readonly transcripts: Transcripts;
  /** Who asked for which turn, as long as the turn is open in this life. */
  readonly origins: Map<string, Origin>;
  /** The turns that run. */
  readonly turns: readonly Turn[];
  /** The session of the running turn, if it is the only one; else the current one. */
  readonly session: string;
  /** The turn of this id, while it runs. */
  turn(id: string): Turn | undefined;
  /** The turn that runs in a session. */
  turnIn(session: string): Turn | undefined;
  /** Stops a turn for good, whether it runs or waits. */
  cancel(requestId: string): boolean;
  /** Runs `work` in a transaction. If it is undone, so is what is in memory. */
  commit<T>(work: () => T, level?: WriteLevel): T;
  /** Does what is to be done next. */
  pump(): void;
  /** Tells everyone who waits for it that a turn which never ran has ended. Its end is stored. */
  close(turn: TurnRow, status: TurnOutcome): void;
}

/** How turns are answered. */
export interface Answerer {
  /** What the app says to a turn: an answer, which is streamed; that it runs step by step; or nothing. May throw. */
  respond(options: ChatTurnOptions): Promise<ChatAnswer | OrdinaryTurn | undefined>;
  /** Undefined where no turn runs step by step. */
  readonly steps?: StepAnswerer;
}

/** Runs turns step by step. */
export interface StepAnswerer {
  /** One attempt to its end. Undefined: it was stopped or given up, and whoever did it knows how it ends. */
  run(turn: Turn, options: ChatTurnOptions): Promise<TurnEnd | undefined>;
  /** Whether a turn that was cut off had run step by step: then it goes on from its log by itself. */
  ran(turn: TurnRow): boolean;
  /** Whether it was a step that asked about a call. */
  asked(messageId: string, toolCallId: string): boolean;
  /** Tool calls that go on without their turns. */
  readonly background: ChatBackground;
}

/** Tool calls that go on without their turns, as seen from outside the turns. */
export interface ChatBackground {
  /** Those that have not ended, oldest first; of one session and its views, if it is given. */
  list(session?: string): BackgroundCall[];
  /** Stops one for good: stored first, with the message that tells the model. False: none of that id runs there. */
  stop(toolCallId: string, options?: { readonly session?: string; readonly reason?: string }): boolean;
  /** Forgets calls that nobody wants any more, in the caller's transaction, and stops them after the commit. */
  drop(isUnwanted: (call: { readonly messageId: string; readonly session: string }) => boolean): void;
}

/** For parts that keep rows beside a turn: in the commit, which a throw undoes, but for `wanted`. */
export interface TurnFacts {
  /** An attempt of a turn begins; `attempts` says how many there were before. */
  begun?(turn: TurnRow): void;
  /** An answer is stored whose calls get no other end. @param turn that has ended with it */
  settled?(message: UIMessage, turn?: TurnRow): void;
  /** A conversation is forgotten. @param turns of it that run */
  cleared?(session: string, turns: readonly TurnRow[]): void;
  /** Rows were erased. Must not throw. */
  erased?(): void;
  /** Whether what a turn is for is still wanted by those above the agent, asked before each attempt. */
  wanted?(turn: TurnRow): Promise<boolean>;
}

/** How a turn's end is told. */
export interface TurnEnd {
  readonly status: TurnOutcome;
  /** For `error`: what the user reads. */
  readonly error?: string;
  /** It was cut off as often, or for as long, as it is carried on. */
  readonly exhausted?: boolean;
  /** The model said nothing at all. */
  readonly silent?: boolean;
  /** What came of a structured output. */
  readonly output?: unknown;
}

/** What a request tells of what its sender has. */
export interface ShownByRequest {
  /** The number of the newest answer in it. */
  readonly answer: number | undefined;
  /** Whether it holds anything but what is new. */
  readonly anything: boolean;
  /** Whether messages that waited became part of its own: they are not in the conversation any more. */
  readonly merged: boolean;
}

/** Where the chat's facts go, after their commit: all that clients ever see of the chat. Must not throw. */
export interface TurnOutput {
  /** A conversation changed, other than by a stream. */
  transcript(session: string, except?: Origin): void;
  /** A request was taken in, and the conversation changed with it. */
  accepted(session: string, origin: Origin, shown: ShownByRequest): void;
  /** The first chunk is about to come: those who wait for it are told. */
  streaming(turn: TurnRow): void;
  chunks(turn: TurnRow, chunks: readonly LoggedChunk[]): void;
  /** The log of a stream is about to be deleted, in the transaction that does it; `read` returns its chunks. */
  closing?(turn: TurnRow, read: () => readonly string[]): void;
  ended(turn: TurnRow, end: TurnEnd, origin: Origin): void;
  /** A turn that was passed over and never ran. */
  skipped(turn: TurnRow, origin: Origin, everyone: boolean): void;
  /** A request whose turn has ended came again. */
  repeated(turn: TurnRow, origin: Origin): void;
  /** A message that was turned away because another turn is under way. Nothing of it was stored. */
  turnedAway(requestId: string, messageIds: readonly string[], origin: Origin): void;
  /** A question came again that `turn` is about to answer: its sender is given that answer. */
  joined(requestId: string, messageIds: readonly string[], turn: TurnRow, origin: Origin): void;
  messageUpdated(session: string, message: UIMessage): void;
  /** A message that `session` does not show any more, but others may, has another id. */
  renamed?(session: string, from: string, to: string): void;
  recovering(turn: TurnRow, value: boolean): void;
  cleared(session: string, origin: Origin): void;
  /** Something happened to a session, other than that somebody spoke in it; or turns have ended. */
  sessions?(change: SessionChange | { readonly kind: "turn" }): void;
}
