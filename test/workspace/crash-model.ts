// What the crash matrix of the workspace does, and what must be there after each step.

export const INLINE_LIMIT = 20_000;
export const MAX_POINTS = 4;

/** A path is a slash and the length of the file: in its row, in chunks, or outside of the database. */
export type Op = readonly [op: "write" | "rm" | "rename" | "mark" | "restore", a: string, b: string];

const SMALL = "/100";
const LONG = "/9000";
const LARGE = "/50000";

export const OPS: readonly Op[] = [
  ["write", SMALL, "a"],
  ["write", LONG, "b"],
  ["write", LARGE, "c"],
  ["mark", "m1", ""],
  ["write", SMALL, "d"],
  ["write", LARGE, "e"],
  ["rm", LONG, ""],
  ["mark", "m2", ""],
  ["write", LARGE, "f"],
  ["write", LARGE, "g"],
  ["restore", "m1", ""],
  ["rename", LARGE, "/50000x"],
  ["mark", "m3", ""],
  ["rm", "/50000x", ""],
  ["mark", "m4", ""],
  ["mark", "m5", ""],
];

/** What the agent says about its files. */
export interface Result {
  readonly files: Readonly<Record<string, string>>;
  readonly points: readonly string[];
  readonly counted: readonly unknown[];
  readonly real: readonly unknown[];
  readonly large: number;
  readonly doubts: number;
}

/** The files after the first `count` steps. */
export function filesAfter(count: number): Record<string, string> {
  let files: Record<string, string> = {};
  const points = new Map<string, Record<string, string>>();
  for (const [op, a, b] of OPS.slice(0, count)) {
    const { [a]: old, ...rest } = files;
    if (op === "write") files = { ...files, [a]: `${b} ${a.slice(1)}` };
    if (op === "rm") files = rest;
    if (op === "rename") files = { ...rest, [b]: old ?? "" };
    if (op === "mark") points.set(a, files);
    if (op === "restore") files = points.get(a) ?? {};
  }
  return files;
}
