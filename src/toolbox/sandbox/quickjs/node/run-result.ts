import type { Json, OpenCall, Outcome, RunResult } from "../../sandbox.ts";
import type { LaneOutcome } from "../message.ts";
import type { LaneRunEnd } from "./lane-run.ts";

/** A run as the caller reads it. `sealImage` is asked for a run that is parked. */
export async function toResult(
  end: LaneRunEnd,
  began: number,
  sealImage: (image: NonNullable<LaneRunEnd["image"]>) => Promise<Uint8Array>,
): Promise<RunResult> {
  const stats = { ms: performance.now() - began, toolCalls: end.used.toolCalls };
  const outcome =
    end.outcome.status === "suspended" && end.image !== undefined
      ? { status: "suspended" as const, calls: sorted(end.parked), snapshot: await sealImage(end.image) }
      : outcomeOf(end.outcome);
  return { ...outcome, logs: end.logs, stats };
}

function sorted(calls: readonly OpenCall[]): OpenCall[] {
  return [...calls].sort((a, b) => a.call - b.call);
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
