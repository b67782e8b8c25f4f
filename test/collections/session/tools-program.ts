// The process that executes tools. Each execution leaves a line in a file before it does anything.
import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { inArray } from "@tanstack/db";
import {
  agentCollections,
  createApprovals,
  createClaims,
  createToolExecutionEffect,
  rowsOf,
} from "perdure/collections";
import { report } from "../../../src/testing/crash/child.ts";
import { LEASE_MS, openCountedLog } from "./counted-log.ts";
import { lookUp, print } from "./desk.ts";

const owner = process.env.OWNER ?? "tools";
const workMs = Number(process.env.WORK_MS ?? 0);
const { toolCalls, approvals, claims } = agentCollections(openCountedLog());
const rows = rowsOf(toolCalls);

async function execute(name: string, id: string): Promise<void> {
  const line = { name, id, owner, status: rows.get(id)?.status, approved: decisions.status(id) };
  appendFileSync(process.env.EXECUTIONS ?? "", `${JSON.stringify(line)}\n`);
  report({ type: "executing", name, id });
  await setTimeout(workMs);
  report({ type: "worked", name, id });
}

const decisions = createApprovals({ events: approvals });
const effect = createToolExecutionEffect({
  query: (q) => q.from({ call: toolCalls }).where(({ call }) => inArray(call.status, ["pending", "executing"])),
  collection: toolCalls,
  claims: createClaims({
    collection: claims,
    owner,
    leaseMs: LEASE_MS,
    onLost: (claim, { code }) => report({ type: "lost", id: claim.id, code }),
  }),
  approvals: decisions,
  tools: [lookUp, print],
  implementations: {
    lookUp: async (_word, { idempotencyKey }) => {
      await execute("lookUp", idempotencyKey);
      return { meaning: `wet feet, says ${owner}` };
    },
    print: async (_text, { idempotencyKey }) => {
      await execute("print", idempotencyKey);
      return { copies: 7 };
    },
  },
  onProblem: (error) => report({ type: "problem", message: error.message }),
});
await effect.ready;
report({ type: "ready" });
