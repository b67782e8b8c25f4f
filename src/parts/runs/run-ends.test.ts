import { expect, test } from "vitest";
import type { AgentRunStatus } from "../../store/agent-run.ts";
import { endOf, nextStatus } from "./run-ends.ts";
import type { AgentToolRunInspection, AgentToolTerminalStatus } from "./types.ts";

const ends: readonly AgentToolTerminalStatus[] = ["completed", "error", "aborted", "interrupted"];

test("a run that is under way ends as it is told", () => {
  for (const end of ends) expect(nextStatus("running", end)).toBe(end);
});

test("nothing follows an end, but that a run that was given up has completed after all", () => {
  const final: readonly AgentRunStatus[] = ["completed", "error", "aborted"];
  for (const status of final) for (const end of ends) expect(nextStatus(status, end)).toBe(status);
  expect(ends.map((end) => nextStatus("interrupted", end))).toEqual([
    "completed",
    "interrupted",
    "interrupted",
    "interrupted",
  ]);
});

test("what a child says of its run: under way, its end, or the limit of an agent above", () => {
  const run = { runId: "r", chunks: 0, startedAt: 0, milestones: [] };
  const table: [AgentToolRunInspection["status"], AgentToolRunInspection["reason"], ReturnType<typeof endOf>][] = [
    ["running", undefined, undefined],
    ["running", "budget-exceeded", undefined],
    ["completed", undefined, "completed"],
    ["completed", "budget-exceeded", "completed"],
    ["error", undefined, "error"],
    ["error", "budget-exceeded", "interrupted"],
    ["aborted", undefined, "aborted"],
    ["aborted", "no-progress", "interrupted"],
  ];
  for (const [status, reason, end] of table) {
    expect(endOf({ ...run, status, ...(reason !== undefined && { reason }) })).toBe(end);
  }
});
