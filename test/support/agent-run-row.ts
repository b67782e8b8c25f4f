import type { AgentRunRow } from "../../src/store/agent-run.ts";

/** A run as its parent stores it, just begun. */
export function agentRunRow(more: Partial<AgentRunRow> = {}): AgentRunRow {
  return {
    seq: 3,
    runId: "run-1",
    className: "Reader",
    status: "running",
    cancelled: 0,
    turnId: null,
    toolCallId: null,
    input: "null",
    preview: null,
    display: null,
    displayOrder: null,
    delivery: "full",
    detached: null,
    told: "[]",
    output: null,
    summary: null,
    error: null,
    reason: null,
    childRunning: null,
    chunks: 0,
    startedAt: 1000,
    endedAt: null,
    identity: null,
    lineage: null,
    session: null,
    ...more,
  };
}
