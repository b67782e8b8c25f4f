import { type AgentClient, useSessions } from "perdure/react";
import { useCallback, useMemo, useState } from "react";
import { readSaved, save } from "../control/saved.ts";

/** A way to go on with a conversation without changing it: another session of its agent, with what was said so far. */
export interface Copy {
  readonly id: string;
  readonly label: string;
}

export interface Copies {
  /** The session to be in; undefined: the original. */
  readonly session: string | undefined;
  /** The original first; empty when there are no copies. */
  readonly items: readonly Copy[];
  /** Shows a copy, or with nothing the original, in this tab. */
  readonly choose: (session: string | undefined) => void;
  /** The same by the id of any session. */
  readonly goTo: (session: string) => void;
}

/** The copies of a conversation, and the one that this tab shows: it is the same after a reload. */
export function useCopies(agent: AgentClient, conversation: string): Copies {
  const key = `perdure:copy:${conversation}`;
  const { sessions } = useSessions({ agent });
  const [session, setSession] = useState(() => readSaved(() => sessionStorage, key));
  const items = useMemo(() => {
    if (sessions.length < 2) return [];
    const inOrder = sessions.toSorted((a, b) => Number(b.current) - Number(a.current) || a.createdAt - b.createdAt);
    return inOrder.map(({ id, current }, at) => ({
      id: current ? "" : id,
      label: current ? "Original" : `Copy ${at}`,
    }));
  }, [sessions]);
  const choose = useCallback(
    (next: string | undefined) => {
      setSession(next);
      save(() => sessionStorage, key, next);
    },
    [key],
  );
  const goTo = useCallback(
    (next: string) => choose(sessions.some(({ id, current }) => id === next && current) ? undefined : next),
    [choose, sessions],
  );
  return { session, items, choose, goTo };
}
