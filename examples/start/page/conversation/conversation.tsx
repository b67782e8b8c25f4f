import "./conversation.css";
import { useAgent } from "perdure/react";
import type { ReactNode } from "react";
import { CONVERSATION_AGENT, LIST_AGENT, LIST_NAME } from "../../contract.ts";
import { Chat } from "./chat.tsx";
import { Closed } from "./closed.tsx";
import type { BarProps } from "./topbar.tsx";

interface Props extends BarProps {
  readonly id: string;
}

/** One conversation: its connection and its chat. */
export function Conversation({ id, ...bar }: Props): ReactNode {
  const agent = useAgent({ agent: LIST_AGENT, name: LIST_NAME, sub: [{ agent: CONVERSATION_AGENT, name: id }] });
  const { connectionError } = agent;
  if (connectionError === null) return <Chat id={id} agent={agent} bar={bar} />;
  return <Closed {...bar} reason={connectionError.message} onRetry={() => agent.open()} />;
}
