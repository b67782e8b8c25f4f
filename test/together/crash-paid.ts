// For crash tests of runs: what must be true of the books of the whole tree, whatever was cut, and whenever.
import type { LedgerEntry } from "perdure/chat";
import { expect } from "vitest";
import { type AgentLook, LAYERS, type TreeLook } from "./crash-types.ts";

/** The calls that an agent made itself. */
const own = ({ ledger }: AgentLook): readonly LedgerEntry[] => ledger.filter(({ purpose }) => purpose === "turn");

/**
 * Nothing is reserved, every call is on the books of all agents above with the same end and the same charge, and there
 * is no call that is not on the books of the first agent.
 */
export function expectPaid({ agents, calls }: Pick<TreeLook, "agents" | "calls">): void {
  for (const { id, totals } of agents) expect(totals.reservedTokens, `reserved by ${id}`).toBe(0);
  for (const agent of agents) {
    for (const above of agents.filter(({ id }) => agent.id.startsWith(`${id}/`))) {
      for (const call of own(agent)) {
        const booked = above.ledger.filter(({ id }) => id.endsWith(`/${call.id}`));
        expect(booked, `a call of ${agent.id} on the books of ${above.id}`).toMatchObject([
          { purpose: "agent-tool", status: call.status, tokens: call.tokens, estimated: call.estimated },
        ]);
      }
    }
  }
  const made = LAYERS.reduce((sum, layer) => sum + calls[layer], 0);
  expect(made, "calls").toBeLessThanOrEqual(agents[0]?.ledger.length ?? 0);
}
