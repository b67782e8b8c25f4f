import { PerdureError } from "../base/error.ts";
import type { AgentHost } from "../port.ts";
import { causeNow } from "./cause.ts";
import { type Cause, currentAgent, turnNow } from "./current.ts";
import { parts, type WaitingTurn } from "./part.ts";

/*
 * Agents that wait for each other: an agent whose turn waits for another's is noted along the call, and with the turn there. If
 * the call comes back to the first agent, its turn would wait for itself.
 */

/** The turns that wait for what is called now, the first one first; undefined when there are none. */
export function waitingNow(): readonly WaitingTurn[] | undefined {
  const { agent, waiting } = currentAgent();
  const turn = agent && turnNow(agent[parts].host);
  if (agent === undefined || turn === undefined) return waiting;
  return [...(waiting ?? []), { agent: agent[parts].host.id, turn: turn.id }];
}

/** What the caller's code comes of, for what is called now. */
export function causeOfCaller(): Cause | undefined {
  return causeNow(currentAgent().agent?.[parts].host);
}

/** A turn is about to begin: those who wait for what runs now wait for it. */
export function noteWaiting(turn: string): void {
  const { agent, waiting } = currentAgent();
  if (waiting !== undefined) agent?.[parts].waiting.set(turn, waiting);
}

/** Refuses a turn that would wait for one that waits for the caller. @throws PerdureError `bad_state` that names the circle */
export function refuseCircle(host: AgentHost, runs: (turn: string) => boolean, method: string): void {
  const { waiting = [] } = currentAgent();
  const from = waiting.findIndex(({ agent, turn }) => agent === host.id && runs(turn));
  if (from === -1) return;
  const agents = [...waiting.slice(from).map(({ agent }) => agent), host.id];
  host.emit("agent:circle", { agents });
  throw new PerdureError(
    "bad_state",
    `${method}() of ${host.id} was called while its turn waits for the caller: ${agents.join(" → ")}. They would wait for ` +
      "each other forever. Answer with what you have, or use submitMessages(), which does not wait.",
  );
}
