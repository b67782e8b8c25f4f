import { type RefObject, useCallback, useLayoutEffect, useRef, useState } from "react";

/** So near to the end counts as at the end. */
const NEAR_PX = 48;
/** Positions are rounded; so much is not a movement. */
const SAME_PX = 2;

export interface Scroll {
  readonly outer: RefObject<HTMLDivElement | null>;
  readonly inner: RefObject<HTMLDivElement | null>;
  /** The reader has left the end. */
  readonly isAway: boolean;
  readonly toEnd: () => void;
}

/** Keeps the end of a conversation in sight while it grows, unless the reader went up. */
export function useScroll(): Scroll {
  const outer = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAway, setIsAway] = useState(false);

  const toEnd = useCallback(() => {
    follows.current = true;
    setIsAway(false);
    // Without messages there is a page to read from its top.
    const box = outer.current;
    if (box !== null && box.querySelector("[data-id]") !== null) box.scrollTop = box.scrollHeight;
  }, []);

  useLayoutEffect(() => {
    const [box, content] = [outer.current, inner.current];
    if (box === null || content === null) return;
    let lastTop = box.scrollTop;
    const onScroll = () => {
      const left = box.scrollHeight - box.scrollTop - box.clientHeight;
      // Content that shrinks moves the reader up too, but to the very end.
      if (left <= SAME_PX || (box.scrollTop > lastTop && left < NEAR_PX)) follows.current = true;
      else if (box.scrollTop < lastTop - SAME_PX) follows.current = false;
      lastTop = box.scrollTop;
      setIsAway(!follows.current && left > NEAR_PX);
    };
    const sizes = new ResizeObserver(() => (follows.current ? toEnd() : onScroll()));
    sizes.observe(box);
    sizes.observe(content);
    box.addEventListener("scroll", onScroll, { passive: true });
    toEnd();
    return () => {
      sizes.disconnect();
      box.removeEventListener("scroll", onScroll);
    };
  }, [toEnd]);

  return { outer, inner, isAway, toEnd };
}
