import type { UIMessage } from "../../message/types.ts";
import type { AgentHost, WriteLevel } from "../../port.ts";
import type { Transcripts } from "../../session/transcripts.ts";
import type { TurnRow } from "../../store/turn.ts";
import type { ActiveTurn } from "./active-turn.ts";
import type { ChatHooks, ChatOutput, Origin, TurnOutcome } from "./chat-types.ts";

/** What the parts of a chat share. */
export interface Desk {
  readonly host: AgentHost;
  readonly hooks: ChatHooks;
  readonly output: ChatOutput;
  readonly transcripts: Transcripts;
  /** The session of the turn that runs; while none does, the one of all who name none. */
  readonly session: string;
  /** The conversation of that session as the app and the model see it. */
  readonly messages: UIMessage[];
  /** The turn that runs now. */
  readonly running: ActiveTurn | undefined;
  /** The turn of this id, while it runs. */
  turn(id: string): ActiveTurn | undefined;
  /** The turn that runs in a session. */
  turnIn(session: string): ActiveTurn | undefined;
  /** Who asked for which turn, as long as the turn is open in this life. */
  readonly origins: Map<string, Origin>;
  /** Runs `work` in a transaction. If it is undone, so is what is in memory. */
  commit<T>(work: () => T, level?: WriteLevel): T;
  /** Looks what is to be done next. */
  pump(): void;
  /** Tells everyone who waits for it that a turn which never ran has ended. Its end is stored. */
  close(turn: TurnRow, status: TurnOutcome): void;
  /** Stops a turn for good, whether it runs or waits. False: no such turn. */
  cancel(requestId: string): boolean;
}

/** How many ended turns are remembered, so that late questions for them can be answered. */
export const KEPT_TURNS = 50;
