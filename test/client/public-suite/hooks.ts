import { useAgentChat as ours, type UseAgentChat, type UseAgentChatOptions } from "../../../src/client/react.ts";

/*
 * Stands in for the public hooks in `test/chat-client`. The one difference that those tests look at: the public hook
 * shows a lost connection as an error of the chat; ours does when it is asked to.
 */

export * from "../../../src/client/react.ts";

export function useAgentChat(options: UseAgentChatOptions): UseAgentChat {
  return ours({ disconnectIsError: true, ...options });
}
