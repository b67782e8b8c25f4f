import { useState } from "react";
import { isFresh } from "../route/route.ts";

/** Whether it is known what was said. Once true, it stays. */
export function useIsLoaded(id: string, isHere: boolean): boolean {
  const [wasHere, setWasHere] = useState(() => isFresh(id));
  if (isHere && !wasHere) setWasHere(true);
  return isHere || wasHere;
}
