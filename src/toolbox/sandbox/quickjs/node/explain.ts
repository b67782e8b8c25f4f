import type { LaneOutcome } from "../message.ts";
import { CODE_FILE, SHAPE_LINES } from "./source.ts";

const LONGEST_MESSAGE = 8_000;
const FRAME = /(?:^|[\s(])([^\s():]+):(\d+):(\d+)/;

/** What the guest threw, as the model shall read it: with the place in the model's own code. */
export function explainThrown(json: string): LaneOutcome {
  const { name, message, stack } = readThrown(json);
  if (name === "InternalError" && message === "out of memory") {
    return {
      status: "limit",
      limit: "memory",
      message: `The code needs more memory than it may have${placeOf(stack)}.`,
    };
  }
  if (name === "RangeError" && message === "Maximum call stack size exceeded") {
    const what = "The code calls itself, or nests its data, too deeply";
    return { status: "limit", limit: "stack", message: `${what}${placeOf(stack)}.` };
  }
  return { status: "error", name: name.slice(0, 100), message: message.slice(0, LONGEST_MESSAGE) + placeOf(stack) };
}

function readThrown(json: string): { name: string; message: string; stack: string } {
  const read = JSON.parse(json) as Record<string, unknown>;
  const text = (value: unknown): string => (typeof value === "string" ? value : "");
  return { name: text(read.name) || "Error", message: text(read.message), stack: text(read.stack) };
}

function placeOf(stack: string): string {
  for (const line of stack.split("\n")) {
    const frame = FRAME.exec(line);
    if (frame === null || frame[1] === "bridge.js") continue;
    const [, file, at, column] = frame;
    if (file === CODE_FILE) return ` (line ${Number(at) - SHAPE_LINES}, column ${column})`;
    return ` (${file}, line ${at}, column ${column})`;
  }
  return "";
}
