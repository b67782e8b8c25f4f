import { useEffect } from "react";

/** Calls `work` on Escape, unless something nearer (a dialog, a form, the drawer) has used it. */
export function useEscape(work: (() => unknown) | undefined): void {
  useEffect(() => {
    if (work === undefined) return;
    const stop = new AbortController();
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]") !== null) return;
      void work();
    };
    addEventListener("keydown", onKey, stop);
    return () => stop.abort();
  }, [work]);
}
