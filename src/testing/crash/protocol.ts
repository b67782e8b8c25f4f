import { isRecord, tryParseJson } from "../../base/json.ts";

/** Something that happened, as a program or its driver reports it. JSON. */
export interface Fact {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** What the harness tells the program. */
export const ENV = {
  /** Set in every program that the harness started. */
  program: "PERDURE_PROGRAM",
  /** The folder that the program keeps its data in. */
  dir: "PERDURE_DIR",
  /** The commit after which the program kills itself. */
  killAt: "PERDURE_KILL_AT",
} as const;

/** One line of stdout that is meant for the harness. */
export type Line = { readonly kind: "fact"; readonly fact: Fact } | { readonly kind: "commit"; readonly count: number };

/** No text that a program prints for people begins like this. */
const PREFIX = "\u001eperdure ";

export function encodeLine(line: Line): string {
  return `${PREFIX}${JSON.stringify(line)}\n`;
}

/** The line, or `undefined` for output that is not ours. */
export function parseLine(text: string): Line | undefined {
  if (!text.startsWith(PREFIX)) return undefined;
  const value = tryParseJson(text.slice(PREFIX.length));
  if (!isRecord(value)) return undefined;
  if (value.kind === "commit" && typeof value.count === "number") return { kind: "commit", count: value.count };
  if (value.kind === "fact" && isFact(value.fact)) return { kind: "fact", fact: value.fact };
  return undefined;
}

function isFact(value: unknown): value is Fact {
  return isRecord(value) && typeof value.type === "string";
}
