import type { ReactNode } from "react";
import { Message, type MessageHandlers } from "../message/message.tsx";
import { type ChatMessage, hasContent } from "../message/parts.ts";
import type { View } from "./view.ts";

interface Props {
  readonly messages: readonly ChatMessage[];
  readonly view: View;
  readonly handlers: MessageHandlers;
}

/** All messages that are loaded. */
export function MessageList({ messages, view, handlers }: Props): ReactNode {
  const shown = messages.filter((message) => message.role !== "system" && hasContent(message));
  const last = messages.at(-1)?.id;
  return shown.map((message) => (
    <Message
      key={message.id}
      message={message}
      live={message.id === view.liveId}
      isFirst={message.id === messages[0]?.id}
      isLast={message.id === last}
      busy={view.isBusy}
      handlers={handlers}
    />
  ));
}
