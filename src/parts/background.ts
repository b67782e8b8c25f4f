import { isOpen, readTurn } from "../store/turn.ts";
import { BackgroundCalls } from "../turn/step/background.ts";
import type { BackgroundAdmission, StepParts } from "../turn/step/parts.ts";
import { leafOf } from "../wire/agent-path.ts";
import type { AgentParts } from "./agent-parts.ts";
import { refusalOf, type RunBounds } from "./runs/lineage.ts";

/** How many may go on at one time, where the class does not say. */
export const DEFAULT_MAX_BACKGROUND = 16;

/** Makes the background of an agent, and has it carry on with what an earlier life left. */
export function openBackground(own: AgentParts<unknown>, parts: StepParts & { policy: RunBounds }): BackgroundCalls {
  const { host } = own;
  const calls = new BackgroundCalls(parts, {
    work: own,
    admit: (turnId) => admit(own, parts.policy, turnId),
    over(turnId) {
      const turn = readTurn(host, turnId);
      if (turn === undefined || !isOpen(turn)) own.runs.turnEnded(turnId);
    },
  });
  own.features.push({
    work: calls,
    started: () => calls.started(),
    halt: (reason) => calls.halt(reason),
  });
  return calls;
}

/**
 * A call counts among the runs that come of one another: what its end sets going comes of the same turn, so that no circle
 * of results and new calls goes on for ever.
 */
async function admit(
  { host, turns }: AgentParts<unknown>,
  bounds: RunBounds,
  turnId: string,
): Promise<BackgroundAdmission> {
  const chain = [leafOf(host.path).className];
  const lineage = turns?.lineageOf(turnId);
  const from = lineage ?? { root: host.path.length, key: turnId, at: host.clock.now(), chain };
  const refusal = await refusalOf(host, bounds, from);
  if (refusal === undefined) return { lineage: JSON.stringify(from) };
  const refused =
    "Not started: as many agents and background calls were started for this as may be (`maxAgentToolRuns`). Go on " +
    "without, or answer with what is there.";
  return { refused: refusal.reason === "count" ? refused : refusal.error };
}
