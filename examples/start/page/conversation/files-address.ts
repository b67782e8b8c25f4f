import { CONVERSATION_AGENT, LIST_AGENT, LIST_NAME } from "../../contract.ts";

/** Where the files of a conversation are, up to the name of one. */
export function filesOfConversation(id: string): string {
  return `/agents/${LIST_AGENT}/${LIST_NAME}/sub/${CONVERSATION_AGENT}/${encodeURIComponent(id)}/files/`;
}
