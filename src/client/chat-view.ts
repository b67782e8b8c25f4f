import { batchState } from "../message/tool-answer.ts";
import type { UIMessage } from "../message/types.ts";
import type { SessionStateFrame } from "../wire/session-frames.ts";
import type { ChatSnapshot, ChatStatus } from "./chat-types.ts";
import type { LiveTurn } from "./live-turn.ts";

/** What a chat knows. */
export interface ChatFacts {
  readonly list: UIMessage[];
  readonly turns: readonly LiveTurn[];
  /** A turn that answered calls make go on is waited for. */
  readonly awaiting: boolean;
  readonly toolsRun: boolean;
  readonly recovering: boolean;
  readonly failure: Error | undefined;
  readonly isLoaded: boolean;
  readonly hasOlder: boolean;
  readonly isLoadingOlder: boolean;
  readonly branches: ChatSnapshot["branches"];
  /** How things stand in the session, as the agent told last. */
  readonly told: SessionStateFrame | undefined;
}

const NONE: readonly never[] = [];

/** What there is to show of it. */
export function viewOf({ list, turns, toolsRun, recovering, failure, ...facts }: ChatFacts): ChatSnapshot {
  const live = new Map<string, UIMessage>();
  for (const { message } of turns) if (message !== undefined) live.set(message.id, message);
  const messages = live.size === 0 ? list : list.map((message) => live.get(message.id) ?? message);
  const last = messages.at(-1);
  // The turn that is to go on waits for more answers: nobody has to wait for it.
  const isHeld = last?.role === "assistant" && batchState(last).waiting > 0;
  const active = turns.filter((turn) => turn.isActive && (turn.seen || !turn.toolContinuation || !isHeld));
  const awaiting = facts.awaiting && !isHeld;
  const isServerStreaming = toolsRun || turns.some(({ isWatched }) => isWatched);
  const status = statusOf(active, awaiting, failure);
  return {
    messages,
    status,
    error: failure,
    isServerStreaming,
    isStreaming: status === "streaming" || isServerStreaming,
    isRecovering: recovering,
    isLoaded: facts.isLoaded,
    hasOlder: facts.hasOlder,
    isLoadingOlder: facts.isLoadingOlder,
    branches: facts.branches,
    session: facts.told?.session,
    compactions: facts.told?.compactions ?? NONE,
    contextState: facts.told?.context ?? null,
    pins: facts.told?.pins ?? NONE,
    backgroundCalls: facts.told?.background ?? NONE,
    isToolContinuation: awaiting || active.some(({ toolContinuation }) => toolContinuation),
  };
}

function statusOf(active: readonly LiveTurn[], awaiting: boolean, failure: Error | undefined): ChatStatus {
  if (active.some(({ hasContent }) => hasContent)) return "streaming";
  if (active.length > 0 || awaiting) return "submitted";
  return failure === undefined ? "ready" : "error";
}
