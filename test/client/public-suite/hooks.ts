import { useAgentChat as ours, type UseAgentChat, type UseAgentChatOptions } from "../../../src/client/react.ts";

/*
 * Stands in for the public hooks in `test/chat-client`. Two differences that those tests look at: the public hook
 * shows a lost connection as an error of the chat, ours when it is asked to; and it does not stop a turn when the page
 * is left, whatever `cancelOnClientAbort` says.
 */

export * from "../../../src/client/react.ts";

export function useAgentChat(options: UseAgentChatOptions): UseAgentChat {
  return ours({ disconnectIsError: true, ...options, cancelOnClientAbort: false });
}
