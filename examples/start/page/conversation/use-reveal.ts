import type { UseAgentChat } from "perdure/react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useState } from "react";

/** A message that the reader is to be taken to. */
interface Target {
  readonly id: string;
  /** What to focus in it, as a selector; the message itself if there is no such thing. */
  readonly focus: string | undefined;
}

type Chat = Pick<UseAgentChat, "messages" | "hasOlder" | "isLoadingOlder" | "loadOlder" | "switchBranch" | "session">;

export interface Reveal {
  /** The message that the reader was taken to last, and whether it was looked for. */
  readonly found: { readonly id: string; readonly isSearched: boolean } | undefined;
  /** It is not loaded yet. */
  readonly isLooking: boolean;
  /** Goes to a message, wherever it is in the conversation: loads what is between, or shows the branch that has it. */
  readonly reveal: (id: string, focus?: string) => void;
}

/** Takes the reader to messages. @param show scrolls to the one with this id, which is on the page. */
export function useReveal(chat: Chat, show: (id: string, focus: string | undefined) => void): Reveal {
  const { messages, hasOlder, isLoadingOlder, loadOlder, switchBranch } = chat;
  const session = chat.session?.id;
  const [target, setTarget] = useState<Target>();
  /** The session in which it was looked for on another branch: once is enough. */
  const [turned, setTurned] = useState<string>();
  const id = target?.id;
  const isHere = id !== undefined && messages.some((message) => message.id === id);
  const isLooking = target !== undefined && !isHere;
  useEffect(() => {
    if (id === undefined || isHere || isLoadingOlder) return;
    if (hasOlder) void loadOlder();
    else if (turned === undefined) {
      setTurned(session ?? "");
      switchBranch(id).catch(() => setTarget(undefined));
    }
  }, [id, isHere, isLoadingOlder, hasOlder, loadOlder, switchBranch, turned, session, messages]);
  useLayoutEffect(() => {
    if (target !== undefined && isHere) show(target.id, target.focus);
  }, [target, isHere, show]);
  const reveal = useCallback((next: string, focus?: string) => {
    setTurned(undefined);
    setTarget({ id: next, focus });
  }, []);
  const found = useMemo(
    () => (target !== undefined && isHere ? { id: target.id, isSearched: target.focus === undefined } : undefined),
    [target, isHere],
  );
  return { found, isLooking, reveal };
}
