/** The files that are searched: a thousand, of forty lines each; one in fifty holds what is looked for. */
export const FILES = 1_000;
export const WANTED = "error code 4[0-9]+";
export const HITS = FILES / 50;

const LINES = 40;
const FOLDERS = 20;

/** The path and the text of file `n`. */
export function sampleFile(n: number): { path: string; text: string } {
  const lines = Array.from({ length: LINES }, (_, at) => `line ${at} of file ${n}: nothing but plain words, and more`);
  if (n % 50 === 0) lines[LINES / 2] = `line ${LINES / 2}: an error code 42 was seen`;
  return { path: `/folder-${n % FOLDERS}/file-${n}.txt`, text: `${lines.join("\n")}\n` };
}
