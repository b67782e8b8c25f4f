import { expect, test } from "vitest";
import { agentRunRow } from "../../../test/support/agent-run-row.ts";
import type { AgentRunRow } from "../../store/agent-run.ts";
import { chunkFrame, endFrame, isProgress, milestoneFrame, startedFrame } from "./run-events.ts";

const read = (frame: string) => JSON.parse(frame) as Record<string, unknown>;
const PROGRESS = '{"type":"data-agent-progress","id":"x","transient":true,"data":{}}';

test("the start of a run", () => {
  expect(read(startedFrame(agentRunRow()))).toEqual({
    type: "agent-tool-event",
    sequence: 0,
    event: { kind: "started", runId: "run-1", agentType: "Reader", order: 3 },
  });
  const whole = agentRunRow({ toolCallId: "c1", preview: '"tea"', display: '{"icon":"i"}', displayOrder: 0 });
  expect(read(startedFrame(whole, true))).toEqual({
    type: "agent-tool-event",
    parentToolCallId: "c1",
    sequence: 0,
    replay: true,
    event: {
      kind: "started",
      runId: "run-1",
      agentType: "Reader",
      inputPreview: "tea",
      order: 0,
      display: { icon: "i" },
    },
  });
});

test("a stored chunk has the next number after its own; others have the number of the next stored one", () => {
  const run = agentRunRow();
  const body = '{"type":"text-start","id":"t"}';
  expect(read(chunkFrame(run, { sequence: 4, body }, 9))).toMatchObject({
    sequence: 5,
    event: { kind: "chunk", runId: "run-1", body },
  });
  const unstored = read(chunkFrame(run, { sequence: undefined, body }, 9));
  expect(unstored).toMatchObject({ sequence: 10, event: { body, unstoredId: expect.any(String) as unknown } });
  expect(read(chunkFrame(run, { sequence: undefined, body }, 9)).event).not.toEqual(unstored.event);
  expect(read(chunkFrame(run, { sequence: undefined, body: PROGRESS }, 9))).toEqual({
    type: "agent-tool-event",
    sequence: 10,
    event: { kind: "chunk", runId: "run-1", body: PROGRESS },
  });
});

test("a milestone is a chunk that uses up no number", () => {
  const frame = read(milestoneFrame(agentRunRow(), { name: "half", sequence: 1, at: 5, data: { n: 1 }, chunks: 2 }, 2));
  const { body } = frame.event as { body: string };
  expect(frame.sequence).toBe(3);
  expect(JSON.parse(body)).toEqual({
    type: "data-agent-milestone",
    data: { name: "half", sequence: 1, at: 5, data: { n: 1 } },
  });
});

const ends: [what: string, row: Partial<AgentRunRow>, event: Record<string, unknown>][] = [
  ["completed", { status: "completed", summary: "3" }, { kind: "finished", summary: "3" }],
  ["completed without a summary", { status: "completed" }, { kind: "finished", summary: "" }],
  ["error", { status: "error", error: "No." }, { kind: "error", error: "No." }],
  ["aborted", { status: "aborted", error: "Enough." }, { kind: "aborted", reason: "Enough." }],
  ["aborted without a reason", { status: "aborted" }, { kind: "aborted" }],
  [
    "interrupted",
    { status: "interrupted", error: "Quiet.", reason: "no-progress", childRunning: 0 },
    { kind: "interrupted", error: "Quiet.", reason: "no-progress", childStillRunning: false },
  ],
];

for (const [what, row, event] of ends) {
  test(`an end has the number after the last chunk: ${what}`, () => {
    expect(read(endFrame(agentRunRow({ ...row, chunks: 7 })))).toEqual({
      type: "agent-tool-event",
      sequence: 8,
      event: { runId: "run-1", ...event },
    });
  });
}

test("what is progress, and what only speaks of it", () => {
  expect(isProgress(PROGRESS)).toBe(true);
  expect(isProgress('{"type":"text-delta","id":"t","delta":"data-agent-progress"}')).toBe(false);
});
