import { useEffect, useState } from "react";

const SHOWN_MS = 1600;

/** Copies text; `copied` says so for a moment. Where the browser does not allow it, nothing happens. */
export function useCopy(): { readonly copied: boolean; readonly copy: (text: string) => void } {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (text: string) => {
    // Only there on secure pages and on the machine itself.
    const clipboard = navigator.clipboard as Clipboard | undefined;
    clipboard?.writeText(text).then(
      () => setCopied(true),
      () => {},
    );
  };
  return { copied, copy };
}
