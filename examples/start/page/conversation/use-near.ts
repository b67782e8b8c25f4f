import { type RefObject, useEffect, useState } from "react";

/** So far from the window counts as near: more than one turns with one move. */
const MARGIN = "1500px 0px";

type Listener = (isNear: boolean) => void;

interface Watch {
  readonly observer: IntersectionObserver;
  readonly listeners: Map<Element, Listener>;
}

/** One observer for all that scrolls in the same box. */
const watches = new WeakMap<Element, Watch>();

/**
 * Whether an element is in sight or near it. What has the focus or is selected stays near.
 * @param onLeave is called just before it is not near any more.
 */
export function useNear(at: RefObject<HTMLElement | null>, startsNear: boolean, onLeave: () => void): boolean {
  const [isNear, setIsNear] = useState(startsNear);
  useEffect(() => {
    const element = at.current;
    const root = element?.closest(".scroll");
    if (element === null || root === null || root === undefined) return;
    return watch(root, element, (near) => {
      if (!near && isInUse(element)) return;
      if (!near) onLeave();
      setIsNear(near);
    });
  }, [at, onLeave]);
  return isNear;
}

function watch(root: Element, element: Element, listener: Listener): () => void {
  const { observer, listeners } = watches.get(root) ?? makeWatch(root);
  listeners.set(element, listener);
  observer.observe(element);
  return () => {
    observer.unobserve(element);
    listeners.delete(element);
  };
}

function makeWatch(root: Element): Watch {
  const listeners = new Map<Element, Listener>();
  const observer = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) listeners.get(target)?.(isIntersecting);
    },
    { root, rootMargin: MARGIN },
  );
  const made = { observer, listeners };
  watches.set(root, made);
  return made;
}

function isInUse(element: Element): boolean {
  if (element.contains(document.activeElement)) return true;
  const selection = getSelection();
  return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
}
