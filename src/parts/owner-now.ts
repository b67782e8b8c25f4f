import { newId } from "../base/id.ts";
import type { Owner } from "../base/owner.ts";
import { readCell, writeCell } from "../store/cell.ts";
import { currentAgent } from "./current.ts";
import { parts } from "./part.ts";

/** Deleted with the agent, so that the next one of its address is not taken for it. */
const CELL = "owner";

/** The agent whose code runs, and the conversation that it runs for. */
export function ownerNow(): Owner | undefined {
  const { agent, turn } = currentAgent();
  if (agent === undefined) return undefined;
  const { host } = agent[parts];
  const session = host.blank ? undefined : agent[parts].turns?.sessionOf(turn);
  return {
    // Stored when something is kept for the agent, not when it is only looked at.
    get agent() {
      let mark = host.blank ? undefined : readCell(host, CELL);
      if (mark === undefined) writeCell(host, CELL, (mark = newId("owner")));
      return JSON.stringify([host.id, mark]);
    },
    session,
  };
}
