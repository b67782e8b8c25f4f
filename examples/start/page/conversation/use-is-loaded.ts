import { useState } from "react";
import { useLasting } from "../control/use-lasting.ts";
import { isFresh } from "../route/route.ts";

/** The messages come right behind the first word of the agent; without any, nothing comes. */
const MESSAGES_MS = 150;

/** Whether it is known what was said. Once true, it stays. */
export function useIsLoaded(id: string, isIdentified: boolean, hasMessages: boolean): boolean {
  const isHere = useLasting(isIdentified, MESSAGES_MS) || hasMessages;
  const [wasHere, setWasHere] = useState(() => isFresh(id));
  if (isHere && !wasHere) setWasHere(true);
  return isHere || wasHere;
}
