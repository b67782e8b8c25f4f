import { expect, test } from "vitest";
import { agentRunRow } from "../../../test/support/agent-run-row.ts";
import { detachedOf, toDetached, toEnd, toInfo, toResult } from "./run-views.ts";

test("a run for hooks: what is not known is not there", () => {
  expect(toInfo(agentRunRow())).toEqual({
    runId: "run-1",
    agentType: "Reader",
    status: "running",
    displayOrder: 3,
    startedAt: 1000,
  });
  const whole = agentRunRow({
    toolCallId: "c1",
    preview: '{"q":1}',
    display: '{"name":"R"}',
    displayOrder: 0,
    endedAt: 2000,
    detached: '{"notify":{"source":"cron"}}',
  });
  expect(toInfo(whole)).toEqual({
    runId: "run-1",
    agentType: "Reader",
    status: "running",
    displayOrder: 0,
    startedAt: 1000,
    parentToolCallId: "c1",
    inputPreview: { q: 1 },
    display: { name: "R" },
    completedAt: 2000,
    notifySource: "cron",
  });
});

test("ends: an error is not told of what completed, a reason only where there is one", () => {
  expect(toEnd(agentRunRow({ status: "completed", summary: "3", error: "stopped too late" }))).toEqual({
    status: "completed",
    summary: "3",
  });
  expect(toEnd(agentRunRow({ status: "error", error: "No." }))).toEqual({ status: "error", error: "No." });
  const lost = { status: "interrupted", error: "Gone.", reason: "inspect-failed" } as const;
  expect(toEnd(agentRunRow({ ...lost, childRunning: 1 }))).toEqual({ ...lost, childStillRunning: true });
  expect(toEnd(agentRunRow({ ...lost, childRunning: 0 }))).toEqual({ ...lost, childStillRunning: false });
});

test("results: the output is there if there was one, also if it was null", () => {
  const done = { status: "completed", summary: "" } as const;
  const head = { runId: "run-1", agentType: "Reader", ...done };
  expect(toResult(agentRunRow({ ...done, output: '{"n":[1]}' }))).toEqual({ ...head, output: { n: [1] } });
  expect(toResult(agentRunRow({ ...done, output: "null" }))).toEqual({ ...head, output: null });
  expect(toResult(agentRunRow(done))).toEqual(head);
});

test("detached runs", () => {
  expect(detachedOf(agentRunRow())).toBeUndefined();
  expect(detachedOf(agentRunRow({ detached: "{}" }))).toEqual({});
  expect(toDetached(agentRunRow())).toEqual({ runId: "run-1", agentType: "Reader", status: "running" });
  expect(toDetached(agentRunRow({ status: "error", error: "No." }))).toMatchObject({ status: "error", error: "No." });
});
