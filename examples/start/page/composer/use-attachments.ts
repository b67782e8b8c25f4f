import { useCallback, useRef, useState } from "react";
import { type Draft, MAX_FILE_BYTES, readFile, sizeText } from "./read-file.ts";

/** Files that wait to be sent with the next message. */
export interface Attachments {
  readonly drafts: readonly Draft[];
  /** Why the last file was not taken. */
  readonly problem: string | undefined;
  readonly add: (files: Iterable<File>) => Promise<void>;
  readonly remove: (key: string) => void;
  readonly clear: () => void;
}

/** Keeps files for the next message; together they may have the size that one alone may have. */
export function useAttachments(): Attachments {
  const [drafts, setDrafts] = useState<readonly Draft[]>([]);
  const [problem, setProblem] = useState<string>();
  // Several files are read at a time, and each must know what the others have taken.
  const kept = useRef<readonly Draft[]>([]);
  const keep = useCallback((next: readonly Draft[], why?: string) => {
    kept.current = next;
    setDrafts(next);
    setProblem(why);
  }, []);
  const add = useCallback(
    async (files: Iterable<File>) => {
      // A list of a form or of a drop is emptied before the files are read.
      for (const file of Array.from(files)) {
        try {
          const draft = await readFile(file);
          if (fits(kept.current, draft)) keep([...kept.current, draft]);
          else keep(kept.current, `${file.name} does not fit: one message takes ${sizeText(MAX_FILE_BYTES)}.`);
        } catch (error) {
          keep(kept.current, error instanceof Error ? error.message : `${file.name} could not be read.`);
        }
      }
    },
    [keep],
  );
  const remove = useCallback((key: string) => keep(kept.current.filter((draft) => draft.key !== key)), [keep]);
  const clear = useCallback(() => keep([]), [keep]);
  return { drafts, problem, add, remove, clear };
}

function fits(drafts: readonly Draft[], next: Draft): boolean {
  return drafts.reduce((sum, { bytes }) => sum + bytes, next.bytes) <= MAX_FILE_BYTES;
}
