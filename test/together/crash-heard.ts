// What clients heard of runs, over several lives.
import type { Fact } from "perdure/testing";
import { expect } from "vitest";
import { ofType } from "../crash/drive.ts";
import type { RunFrame } from "./harness.ts";

/** A frame as it is known by its number: whether it came live or later makes no difference. */
function byNumber(frames: readonly RunFrame[]): Map<string, unknown> {
  const known = new Map<string, unknown>();
  for (const { sequence, event, parentToolCallId } of frames) {
    const key = `${event.runId} ${sequence}`;
    const frame = { event, parentToolCallId };
    if (known.has(key)) expect(known.get(key), `frame ${key}`).toEqual(frame);
    known.set(key, frame);
  }
  return known;
}

/** Under one number everybody always hears the same; who comes at the end hears all of it, without a gap, and its end. */
export function expectHeardKept(facts: readonly Fact[], told: readonly Fact[]): void {
  const last = told as readonly unknown[] as readonly RunFrame[];
  const heard = byNumber([...ofType(facts, "heard").map(({ frame }) => frame as RunFrame), ...last]);
  const again = byNumber(last);
  expect([...heard.keys()].filter((key) => !again.has(key))).toEqual([]);
  for (const [runId, frames] of Map.groupBy(last, ({ event }) => event.runId)) {
    expect(
      frames.map(({ sequence }) => sequence),
      runId,
    ).toEqual(frames.map((_, at) => at));
    expect(frames[0]?.event.kind).toBe("started");
    expect(frames.at(-1)?.event.kind).toBe("finished");
  }
}
