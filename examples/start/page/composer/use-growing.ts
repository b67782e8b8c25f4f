import { type RefObject, useLayoutEffect } from "react";

/** Makes a text area as high as its text; CSS says how high at most. */
export function useGrowing(area: RefObject<HTMLTextAreaElement | null>, value: string): void {
  useLayoutEffect(() => {
    const { current } = area;
    if (current === null) return;
    current.style.height = "auto";
    const border = current.offsetHeight - current.clientHeight;
    current.style.height = `${current.scrollHeight + border}px`;
  }, [area, value]);
}
