import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";
import { findWords, markRanges } from "../search/mark-words.ts";
import type { Target } from "./use-reveal.ts";

/** So near to the end counts as at the end. */
const NEAR_PX = 48;
/** Positions are rounded; so much is not a movement. */
const SAME_PX = 2;

/** What a reader scrolls with. */
const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

export interface Scroll {
  readonly outer: RefObject<HTMLDivElement | null>;
  readonly inner: RefObject<HTMLDivElement | null>;
  /** The reader has left the end. */
  readonly isAway: boolean;
  readonly toEnd: () => void;
  /** Brings a message into sight, and keeps it there until the reader moves: what is drawn above it may grow. */
  readonly toMessage: (target: Target) => void;
}

/** Keeps the end of a conversation in sight while it grows, unless the reader went up. */
export function useScroll(): Scroll {
  const outer = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  /** The reader has done something that may scroll since the end was last gone to. */
  const isHandled = useRef(false);
  const [isAway, setIsAway] = useState(false);
  const held = useRef<Target>(undefined);

  const toEnd = useCallback(() => {
    follows.current = true;
    isHandled.current = false;
    held.current = undefined;
    markRanges([]);
    setIsAway(false);
    // Without messages there is a page to read from its top.
    const box = outer.current;
    if (box !== null && box.querySelector("[data-id]") !== null) box.scrollTop = box.scrollHeight;
  }, []);

  const toMessage = useCallback((target: Target) => {
    const box = outer.current;
    const message = messageIn(box, target.id);
    if (box === null || message === null) return;
    if (target.focus === undefined) {
      follows.current = false;
      held.current = target;
      markRanges(findWords(message, target.words ?? []));
      place(box, message, target);
    } else if (!follows.current) {
      // Who comes by the buttons of a message has it before the eyes already.
      message.scrollIntoView({ block: "nearest" });
    }
    const inside = target.focus === undefined ? null : message.querySelector<HTMLElement>(target.focus);
    (inside ?? message).focus({ preventScroll: true });
  }, []);

  useLayoutEffect(() => {
    const [box, content] = [outer.current, inner.current];
    if (box === null || content === null) return;
    let [lastTop, lastHeight] = [box.scrollTop, box.scrollHeight];
    const onScroll = () => {
      const left = box.scrollHeight - box.scrollTop - box.clientHeight;
      const isUp = box.scrollTop < lastTop - SAME_PX;
      // The browser moves it too, when it draws a message that it had only guessed the height of.
      const isReader = isHandled.current || Math.abs(box.scrollHeight - lastHeight) <= SAME_PX;
      // Content that shrinks moves the reader up too, but to the very end.
      if (left <= SAME_PX || (box.scrollTop > lastTop && left < NEAR_PX)) follows.current = true;
      else if (isUp && isReader) follows.current = false;
      [lastTop, lastHeight] = [box.scrollTop, box.scrollHeight];
      setIsAway(!follows.current && left > NEAR_PX);
    };
    const onHand = (event: Event) => {
      isHandled.current = true;
      held.current = undefined;
      // Before the movement, or what grows meanwhile pulls the reader back.
      if (event instanceof WheelEvent && event.deltaY < 0) follows.current = false;
    };
    const sizes = new ResizeObserver(() => {
      // A message that is being changed stays where it is.
      const isEditing =
        document.activeElement instanceof HTMLTextAreaElement && content.contains(document.activeElement);
      const message = held.current === undefined ? null : messageIn(box, held.current.id);
      if (held.current !== undefined && message !== null) place(box, message, held.current);
      else if (follows.current && !isEditing) toEnd();
      else onScroll();
    });
    sizes.observe(box);
    sizes.observe(content);
    box.addEventListener("scroll", onScroll, { passive: true });
    for (const type of HANDS) box.addEventListener(type, onHand, { passive: true });
    toEnd();
    return () => {
      sizes.disconnect();
      box.removeEventListener("scroll", onScroll);
      for (const type of HANDS) box.removeEventListener(type, onHand);
    };
  }, [toEnd]);

  return { outer, inner, isAway, toEnd, toMessage };
}

function messageIn(box: Element | null, id: string): HTMLElement | null {
  return box?.querySelector<HTMLElement>(`[data-id="${CSS.escape(id)}"]`) ?? null;
}

/** Brings a message to the middle; of one that is taller than the window, the first of the words, or its beginning. */
function place(box: HTMLElement, message: HTMLElement, { words = [] }: Target): void {
  if (message.offsetHeight < box.clientHeight) return message.scrollIntoView({ block: "center" });
  const [first] = findWords(message, words);
  if (first === undefined) return message.scrollIntoView({ block: "start" });
  box.scrollTop += first.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}
