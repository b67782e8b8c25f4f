import "./conversation.css";
import { useAgent } from "perdure/react";
import type { ReactNode } from "react";
import { CONVERSATION_AGENT, LIST_AGENT, LIST_NAME } from "../../contract.ts";
import type { Step } from "../route/route.ts";
import { Chat } from "./chat.tsx";
import { Closed } from "./closed.tsx";
import type { BarProps } from "./topbar.tsx";

interface Props extends BarProps {
  readonly id: string;
  /** The way to a helper of it, if one is shown. */
  readonly chain: readonly Step[];
}

/** One conversation, of the user or of a helper: its connection and its chat. */
export function Conversation({ id, chain, ...bar }: Props): ReactNode {
  const sub = [{ agent: CONVERSATION_AGENT, name: id }, ...chain];
  const agent = useAgent({ agent: LIST_AGENT, name: LIST_NAME, sub });
  const { connectionError } = agent;
  if (connectionError === null) return <Chat id={id} chain={chain} agent={agent} bar={bar} />;
  return <Closed {...bar} reason={connectionError.message} onRetry={() => agent.open()} />;
}
