import { posixError } from "../sandbox/posix-error.ts";

/** Longer texts are not compared. */
const MAX_DIFF_LINES = 10_000;
/** Texts that differ in more lines than this, between what they have in common at both ends, are shown as replaced. */
const MAX_EDITS = 1_000;
const CONTEXT = 3;

type Edit = readonly [kind: " " | "-" | "+", line: string];

/**
 * A unified diff with three lines of context; empty when nothing changes. Not jsdiff: on texts that differ too much it gives
 * nothing, and without that bound it may take forever.
 * @throws PerdureError `EFBIG` when one of them has more than 10,000 lines
 */
export function unifiedDiff(before: string, after: string, names: { readonly a: string; readonly b: string }): string {
  if (before === after) return "";
  const a = linesOf(before, names.a);
  const b = linesOf(after, names.b);
  const edits = editsBetween(a, b);
  const hunks = hunksOf(edits);
  return [`--- ${names.a}`, `+++ ${names.b}`, ...hunks].join("\n") + "\n";
}

function linesOf(text: string, name: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines.length - 1 > MAX_DIFF_LINES)
    throw posixError("EFBIG", `${name} has more than ${MAX_DIFF_LINES} lines, too many to compare.`);
  // The end of the last line belongs to it, as diffs are written.
  if (lines.at(-1) === "") lines.pop();
  else lines[lines.length - 1] += "\n\\ No newline at end of file";
  return lines;
}

function editsBetween(a: readonly string[], b: readonly string[]): Edit[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const middleA = a.slice(head, a.length - tail);
  const middleB = b.slice(head, b.length - tail);
  const middle = shortestEdits(middleA, middleB) ?? [
    ...middleA.map((line): Edit => ["-", line]),
    ...middleB.map((line): Edit => ["+", line]),
  ];
  const same = (line: string): Edit => [" ", line];
  return [...a.slice(0, head).map(same), ...middle, ...a.slice(a.length - tail).map(same)];
}

/**
 * The fewest lines to remove and add. `reach[k]` is how far into `a` diagonal k gets with so many edits. Undefined beyond
 * {@link MAX_EDITS}: the work grows with their square.
 */
function shortestEdits(a: readonly string[], b: readonly string[]): Edit[] | undefined {
  const most = Math.min(a.length + b.length, MAX_EDITS);
  const at = (k: number) => k + most + 1;
  const reach = new Int32Array(2 * most + 3);
  const trace: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits++) {
    trace.push(reach.slice(at(-edits) - 1, at(edits) + 2));
    for (let k = -edits; k <= edits; k += 2) {
      const isDown = k === -edits || (k !== edits && (reach[at(k - 1)] ?? 0) < (reach[at(k + 1)] ?? 0));
      let x = isDown ? (reach[at(k + 1)] ?? 0) : (reach[at(k - 1)] ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach[at(k)] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, trace);
    }
  }
  return undefined;
}

function walkBack(a: readonly string[], b: readonly string[], trace: readonly Int32Array[]): Edit[] {
  const edits: Edit[] = [];
  let x = a.length;
  let y = b.length;
  for (let count = trace.length - 1; count >= 0; count--) {
    const reach = (k: number) => trace[count]?.[k + count + 1] ?? 0;
    const k = x - y;
    const isDown = k === -count || (k !== count && reach(k - 1) < reach(k + 1));
    const from = count === 0 ? 0 : isDown ? reach(k + 1) : reach(k - 1);
    const start = count === 0 ? 0 : isDown ? from : from + 1;
    for (; x > start; x--, y--) edits.push([" ", a[x - 1] ?? ""]);
    if (count === 0) break;
    if (isDown) edits.push(["+", b[--y] ?? ""]);
    else edits.push(["-", a[--x] ?? ""]);
  }
  return edits.reverse();
}

function hunksOf(edits: readonly Edit[]): string[] {
  const lines: string[] = [];
  let lineA = 1;
  let lineB = 1;
  for (let at = 0; at < edits.length;) {
    const next = edits.findIndex(([kind], index) => index >= at && kind !== " ");
    if (next === -1) break;
    const start = Math.max(at, next - CONTEXT);
    lineA += start - at;
    lineB += start - at;
    let end = next;
    for (let index = next; index < edits.length && index <= end + 2 * CONTEXT; index++)
      if (edits[index]?.[0] !== " ") end = index;
    end = Math.min(edits.length, end + CONTEXT + 1);
    const hunk = edits.slice(start, end);
    const inA = hunk.filter(([kind]) => kind !== "+").length;
    const inB = hunk.filter(([kind]) => kind !== "-").length;
    lines.push(`@@ -${place(lineA, inA)} +${place(lineB, inB)} @@`, ...hunk.map(([kind, line]) => kind + line));
    lineA += inA;
    lineB += inB;
    at = end;
  }
  return lines;
}

function place(line: number, count: number): string {
  return count === 1 ? String(line) : `${count === 0 ? line - 1 : line},${count}`;
}
