import { useState } from "react";
import type { ConversationItem } from "../../contract.ts";

/** Whether the conversation was in the list while it was shown and is not any more: somebody deleted it. */
export function useIsDeleted(items: readonly ConversationItem[] | undefined, id: string): boolean {
  const isListed = items?.some((item) => item.id === id) === true;
  const [listed, setListed] = useState<string>();
  if (isListed && listed !== id) setListed(id);
  return listed === id && !isListed;
}
