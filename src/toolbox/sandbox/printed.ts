import { cutMiddle } from "../../message/cut-middle.ts";
import type { RunResult } from "./sandbox.ts";

const MANY_LINES = 1_000_000;

/** What a run printed to one of its two streams, without its middle where it is longer than `maxChars`. */
export function printedText(result: RunResult, level: "stdout" | "stderr", maxChars: number): string {
  const text = result.logs
    .filter((line) => line.level === level)
    .map((line) => line.text)
    .join("");
  const note = (chars: number, lines: number) => `[... ${chars} characters, ${lines} lines left out ...]`;
  return cutMiddle(text, MANY_LINES, maxChars, note);
}
