import type { UseAgentChat } from "perdure/react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "react";

/** A message that the reader is to be taken to. */
export interface Target {
  readonly id: string;
  /** What to focus in it, as a selector. Without, it was looked for: it is marked, and has the focus itself. */
  readonly focus?: string;
  /** Words that were looked for. */
  readonly words?: readonly string[];
  /** The session in which it was said. */
  readonly session?: string;
}

/** Where it is looked for: among what was said before, on another branch, in the session where it was said. */
type Stage = "here" | "branch" | "session" | "found";

type Chat = Pick<UseAgentChat, "messages" | "hasOlder" | "isLoadingOlder" | "loadOlder" | "switchBranch" | "session">;

export interface Reveal {
  /** The message that the reader was taken to last, and whether it was looked for. */
  readonly found: { readonly id: string; readonly isSearched: boolean } | undefined;
  /** It is not loaded yet. */
  readonly isLooking: boolean;
  /** Goes to a message, wherever it is: loads what is between, or shows the branch or the copy that has it. */
  readonly reveal: (target: Target) => void;
}

interface Actions {
  /** Scrolls to a message that is on the page. */
  readonly show: (target: Target) => void;
  /** Goes to another session. */
  readonly goTo: (session: string) => void;
}

/** Takes the reader to messages. */
export function useReveal(chat: Chat, { show, goTo }: Actions): Reveal {
  const { messages, hasOlder, isLoadingOlder, loadOlder, switchBranch } = chat;
  const here = chat.session?.viewOf ?? chat.session?.id;
  const [target, setTarget] = useState<Target>();
  const [stage, setStage] = useState<Stage>("here");
  const isHere = target !== undefined && messages.some(({ id }) => id === target.id);
  useEffect(() => {
    if (target === undefined || isHere || stage === "found" || isLoadingOlder || messages.length === 0) return;
    if (hasOlder) return void loadOlder();
    if (stage === "here") {
      setStage("branch");
      switchBranch(target.id).catch(() => {
        setStage("session");
        if (target.session !== undefined) goTo(target.session);
      });
    } else if (stage === "session" && (target.session === undefined || target.session === here)) setTarget(undefined);
  }, [target, isHere, isLoadingOlder, hasOlder, loadOlder, switchBranch, goTo, stage, here, messages]);
  useLayoutEffect(() => {
    if (target === undefined || !isHere || stage === "found") return;
    show(target);
    // What becomes of it later is nobody's business: the reader may go to a branch without it.
    setStage("found");
  }, [target, isHere, stage, show]);
  const reveal = useCallback((next: Target) => {
    setStage("here");
    setTarget(next);
  }, []);
  const found = useMemo(
    () => (target !== undefined && isHere ? { id: target.id, isSearched: target.focus === undefined } : undefined),
    [target, isHere],
  );
  return { found, isLooking: target !== undefined && !isHere && stage !== "found", reveal };
}
