import type { Json, Outcome, RunResult } from "../../sandbox.ts";
import type { LaneOutcome } from "../message.ts";
import type { LaneRunEnd } from "./lane-run.ts";

/** A run as the caller reads it. @param snapshot of one that was parked */
export function toResult(end: LaneRunEnd, began: number, snapshot?: Uint8Array): RunResult {
  const stats = { ms: performance.now() - began, toolCalls: end.used.toolCalls };
  const calls = end.parked.toSorted((a, b) => a.call - b.call);
  const outcome: Outcome =
    end.outcome.status === "suspended" && snapshot !== undefined
      ? { status: "suspended", calls, snapshot }
      : outcomeOf(end.outcome);
  return { ...outcome, logs: end.logs, stats };
}

function outcomeOf(outcome: LaneOutcome): Outcome {
  switch (outcome.status) {
    case "ok":
      try {
        return { status: "ok", value: outcome.value === undefined ? undefined : (JSON.parse(outcome.value) as Json) };
      } catch {
        return { status: "crashed", message: "The lane returned what is no JSON." };
      }
    case "error":
      return { status: "error", error: { name: outcome.name, message: outcome.message } };
    case "untyped":
      return { status: "error", error: { name: "SyntaxError", message: outcome.message } };
    case "suspended":
      return { status: "crashed", message: "The lane parked a run that cannot be parked." };
    default:
      return outcome;
  }
}
