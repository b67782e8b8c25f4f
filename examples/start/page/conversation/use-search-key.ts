import { useEffect } from "react";

/** Calls `open` on Ctrl+K or ⌘K, unless a dialog is open. */
export function useSearchKey(open: (() => void) | undefined): void {
  useEffect(() => {
    if (open === undefined) return;
    const stop = new AbortController();
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || event.altKey || event.shiftKey || event.ctrlKey === event.metaKey) return;
      if (document.querySelector("dialog[open]") !== null) return;
      event.preventDefault();
      open();
    };
    addEventListener("keydown", onKey, stop);
    return () => stop.abort();
  }, [open]);
}
