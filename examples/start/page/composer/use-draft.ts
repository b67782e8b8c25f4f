import { useState } from "react";
import { readSaved, save } from "../control/saved.ts";

/** The text that was not sent yet. Kept by this tab for each conversation, so that a refresh loses nothing. */
export function useDraft(conversation: string): [text: string, setText: (text: string) => void] {
  const key = `perdure:draft:${conversation}`;
  const [text, setText] = useState(() => readSaved(() => sessionStorage, key) ?? "");
  return [
    text,
    (next) => {
      setText(next);
      save(() => sessionStorage, key, next === "" ? undefined : next);
    },
  ];
}
