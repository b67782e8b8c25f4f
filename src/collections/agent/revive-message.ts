import type { MessageCollection } from "./config.ts";
import { rowsOf } from "../rows.ts";

/**
 * Gives a message that its agent has given up (`error`) back to it, with all its tries. Safe to call twice, and from
 * anywhere.
 * @returns false when there is no such message, or it was not given up.
 */
export async function reviveMessage(messages: MessageCollection, id: string): Promise<boolean> {
  return rowsOf(messages).update(id, (draft) => {
    if (draft.error === undefined) return false;
    draft.processed = false;
    delete draft.error;
    delete draft.attempts;
    return true;
  });
}
