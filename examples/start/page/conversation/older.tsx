import { type ReactNode, useEffect, useRef } from "react";

/** Begin to load when the top is so near: the messages are there and drawn before it is reached. */
const AHEAD = "2500px 0px 0px";

interface Props {
  readonly isLoading: boolean;
  /** Changes with each page, so that a page too short to fill the screen brings the next. */
  readonly first: string | undefined;
  readonly onLoad: () => void;
}

/** What stands above the first message as long as there are older ones: loads them when it comes into sight. */
export function Older({ isLoading, first, onLoad }: Props): ReactNode {
  const button = useRef<HTMLButtonElement>(null);
  const latest = useRef(onLoad);
  useEffect(() => {
    latest.current = onLoad;
  });
  useEffect(() => {
    if (button.current === null) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting === true && latest.current(), {
      root: button.current.closest(".scroll"),
      rootMargin: AHEAD,
    });
    observer.observe(button.current);
    return () => observer.disconnect();
  }, [first]);
  return (
    <div className="older">
      <button ref={button} type="button" className="button" onClick={onLoad} data-testid="load-older">
        {isLoading ? "Loading older messages…" : "Load older messages"}
      </button>
    </div>
  );
}
