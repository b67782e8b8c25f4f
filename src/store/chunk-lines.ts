/*
 * A stream's chunks in a row, one per line. Most are deltas that differ from the one before only in the letters at their end,
 * `…,"delta":"word"}`. Of those only the letters are written, behind a sign that no JSON begins with: a tenth of the room.
 */
const SAME = "+";
const DELTA = '"delta":"';
const END = '"}';

/** Chunks as one text. They are JSON texts without line breaks. */
export function writeLines(chunks: readonly string[]): string {
  let head = "";
  return chunks
    .map((chunk) => {
      const letters = lettersOf(chunk, head);
      if (letters !== undefined) return SAME + letters;
      head = headOf(chunk);
      return chunk;
    })
    .join("\n");
}

/** What {@link writeLines} was given, to the letter. */
export function readLines(text: string): string[] {
  let head = "";
  return text.split("\n").map((line) => {
    if (line.startsWith(SAME)) return head + line.slice(SAME.length) + END;
    head = headOf(line);
    return line;
  });
}

/** A delta up to its letters; empty if it is none. */
function headOf(chunk: string): string {
  const at = chunk.indexOf(DELTA);
  return at === -1 ? "" : chunk.slice(0, at + DELTA.length);
}

/** The letters of a delta that begins with `head`; undefined when there is more to it than that. */
function lettersOf(chunk: string, head: string): string | undefined {
  if (head === "" || !chunk.startsWith(head)) return undefined;
  // A quote among the letters is rare, and not worth looking closer.
  return chunk.indexOf('"', head.length) === chunk.length - END.length && chunk.endsWith(END)
    ? chunk.slice(head.length, -END.length)
    : undefined;
}
