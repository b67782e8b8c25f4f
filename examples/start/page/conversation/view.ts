import type { UseAgentChat } from "perdure/react";
import { hasContent } from "../message/parts.ts";

/** What the page makes of where a chat stands. */
export interface View {
  /** Something is under way, asked for here or in another tab. */
  readonly isBusy: boolean;
  /** The answer that grows. */
  readonly liveId: string | undefined;
  /** An answer is on its way and there is nothing to see of it. */
  readonly isWaiting: boolean;
  /** The last word is the user's, and nobody answers it. */
  readonly isUnanswered: boolean;
}

export function viewOf(chat: UseAgentChat): View {
  const { messages, status } = chat;
  const isBusy = status === "submitted" || status === "streaming" || chat.isServerStreaming || chat.isRecovering;
  const last = messages.at(-1);
  const answer = messages.findLast(({ role }) => role === "assistant");
  // A message may wait behind the answer that grows.
  const live = chat.isStreaming || last?.role === "assistant" ? answer : undefined;
  const liveId = isBusy ? live?.id : undefined;
  return {
    isBusy,
    liveId,
    isWaiting: isBusy && (live === undefined || !hasContent(live)),
    isUnanswered: status === "ready" && !isBusy && last?.role === "user",
  };
}
