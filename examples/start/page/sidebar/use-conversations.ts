import { useAgent } from "perdure/react";
import { useState } from "react";
import { useOffline } from "../control/use-offline.ts";
import {
  type ConversationItem,
  type ConversationsApi,
  type ConversationsState,
  LIST_AGENT,
  LIST_NAME,
} from "../../contract.ts";

export interface Conversations {
  /** Newest first; undefined until they have come. */
  readonly items: readonly ConversationItem[] | undefined;
  readonly isOffline: boolean;
  /** Why the last change was not made. */
  readonly problem: string | undefined;
  readonly rename: (id: string, title: string) => void;
  readonly remove: (id: string) => void;
}

/** The list of conversations, as the agent that keeps it tells it. */
export function useConversations(): Conversations {
  const list = useAgent<ConversationsApi, ConversationsState>({ agent: LIST_AGENT, name: LIST_NAME });
  const [problem, setProblem] = useState<string>();
  const attempt = (call: Promise<void>) => {
    setProblem(undefined);
    call.catch((error: unknown) => setProblem(error instanceof Error ? error.message : String(error)));
  };
  return {
    items: list.state?.items,
    isOffline: useOffline(list.readyState === 1),
    problem,
    rename: (id, title) => attempt(list.stub.rename(id, title)),
    remove: (id) => attempt(list.stub.remove(id)),
  };
}
