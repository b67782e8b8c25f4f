import { useEffect, useRef, useState } from "react";

/** Takes files that are dropped anywhere on the page. @returns whether some are being held over it. */
export function useFileDrop(take: (files: FileList) => void): boolean {
  const [isOver, setIsOver] = useState(false);
  const latest = useRef(take);
  useEffect(() => {
    latest.current = take;
  });
  useEffect(() => {
    const stop = new AbortController();
    const listen = (type: "dragover" | "dragleave" | "drop", work: (event: DragEvent) => void) =>
      addEventListener(type, (event) => event.dataTransfer?.types.includes("Files") === true && work(event), stop);
    listen("dragover", (event) => {
      event.preventDefault();
      setIsOver(true);
    });
    listen("dragleave", (event) => {
      // Leaving the window, not just going from one element to the next.
      if (event.relatedTarget === null) setIsOver(false);
    });
    listen("drop", (event) => {
      event.preventDefault();
      setIsOver(false);
      if (event.dataTransfer !== null) latest.current(event.dataTransfer.files);
    });
    return () => stop.abort();
  }, []);
  return isOver;
}
