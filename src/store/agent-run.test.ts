import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import {
  type AgentRunEnd,
  cancelAgentRun,
  deleteAgentRun,
  endAgentRun,
  insertAgentRun,
  listAgentRuns,
  type NewAgentRun,
  openAgentRuns,
  readAgentRun,
  reopenAgentRun,
  tellAgentRun,
} from "./agent-run.ts";

const run = (runId: string, more: Partial<NewAgentRun> = {}): NewAgentRun => ({
  runId,
  className: "Reader",
  turnId: null,
  toolCallId: null,
  input: "null",
  preview: null,
  display: null,
  displayOrder: null,
  delivery: "full",
  detached: null,
  startedAt: 1000,
  ...more,
});
const end: AgentRunEnd = {
  status: "completed",
  output: '"x"',
  summary: "x",
  error: null,
  reason: null,
  childRunning: null,
  chunks: 4,
  endedAt: 2000,
};

test("a run from its beginning to its end", async () => {
  const { host } = await probeHost();
  insertAgentRun(host, run("a", { turnId: "t", toolCallId: "c", display: "{}", displayOrder: 5, detached: "{}" }));
  insertAgentRun(host, run("b"));
  expect(readAgentRun(host, "a")).toMatchObject({
    ...run("a", { turnId: "t", toolCallId: "c", display: "{}", displayOrder: 5, detached: "{}" }),
    status: "running",
    cancelled: 0,
    told: "[]",
    chunks: 0,
    endedAt: null,
  });
  expect(readAgentRun(host, "c")).toBeUndefined();
  endAgentRun(host, "a", end);
  expect(readAgentRun(host, "a")).toMatchObject(end);
  expect(openAgentRuns(host).map(({ runId }) => runId)).toEqual(["b"]);
  expect(listAgentRuns(host).map(({ runId, seq }) => [runId, seq])).toEqual([
    ["a", 1],
    ["b", 2],
  ]);
  tellAgentRun(host, "a", '["half"]');
  expect(readAgentRun(host, "a")?.told).toBe('["half"]');
  deleteAgentRun(host, "b");
  insertAgentRun(host, run("c"));
  // Numbers are not used again: clients sort by them.
  expect(readAgentRun(host, "c")?.seq).toBe(3);
  expect(() => insertAgentRun(host, run("c"))).toThrow();
});

test("the first reason of a stop counts, and only while the run is under way", async () => {
  const { host } = await probeHost();
  insertAgentRun(host, run("a"));
  cancelAgentRun(host, "a", null);
  cancelAgentRun(host, "a", "Enough.");
  cancelAgentRun(host, "a", "Really.");
  expect(readAgentRun(host, "a")).toMatchObject({ cancelled: 1, error: "Enough.", status: "running" });
  insertAgentRun(host, run("b"));
  endAgentRun(host, "b", end);
  cancelAgentRun(host, "b", "Too late.");
  expect(readAgentRun(host, "b")).toMatchObject({ cancelled: 0, error: null });
});

test("a run that was given up is under way again", async () => {
  const { host } = await probeHost();
  insertAgentRun(host, run("a"));
  endAgentRun(host, "a", { ...end, status: "interrupted", output: null, reason: "inspect-failed", childRunning: 1 });
  expect(openAgentRuns(host)).toEqual([]);
  reopenAgentRun(host, "a", "t2");
  const fresh = { error: null, reason: null, childRunning: null, endedAt: null };
  expect(openAgentRuns(host)).toMatchObject([{ runId: "a", status: "running", turnId: "t2", ...fresh }]);
});
