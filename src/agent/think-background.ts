import type { ModelMessage, ToolSet } from "ai";
import type { ContextReader } from "../context/view.ts";
import { PerdureError } from "../base/error.ts";
import type { UIMessage } from "../message/types.ts";
import { isOpen, readTurn } from "../store/turn.ts";
import type { Conversations } from "../turn/engine/conversations.ts";
import { BackgroundCalls } from "../turn/step/background.ts";
import { contextOf } from "../turn/step/step-run.ts";
import type { BackgroundAdmission } from "../turn/step/plan.ts";
import { leafOf } from "../wire/agent-path.ts";
import type { AgentParts } from "./parts.ts";
import { refusalOf, type RunBounds } from "./run/lineage.ts";

/** How many may go on at one time, where the class does not say. */
export const DEFAULT_MAX_BACKGROUND = 16;

/** What they ask of the agent. */
export interface BackgroundAgent extends RunBounds {
  readonly maxBackgroundCalls: number;
  withMedia(messages: readonly UIMessage[]): Promise<UIMessage[]>;
  assembleContext(context: {
    readonly messages: readonly UIMessage[];
    readonly tools: ToolSet;
  }): ModelMessage[] | Promise<ModelMessage[]>;
}

/** What they ask of its plan. */
interface BackgroundPlan {
  readonly context: { readonly reader: ContextReader };
  toolsOf(session: string): Promise<ToolSet>;
}

/** Makes the background of an agent, and has it carry on with what an earlier life left. */
export function openBackground(
  own: AgentParts<unknown>,
  agent: BackgroundAgent,
  plan: BackgroundPlan,
  chat: () => Conversations,
): BackgroundCalls {
  const { host } = own;
  const calls = new BackgroundCalls({
    work: own,
    desk: chat,
    max: () => checkedMax(agent.maxBackgroundCalls),
    tools: (session) => plan.toolsOf(session),
    async before(session, messageId, tools) {
      const { base } = contextOf(chat(), plan.context.reader, session, 0);
      const at = base.findIndex(({ id }) => id === messageId);
      return agent.assembleContext({ messages: await agent.withMedia(base.slice(0, Math.max(0, at))), tools });
    },
    admit: (turnId) => admit(own, agent, turnId),
    over(turnId) {
      const turn = readTurn(host, turnId);
      if (turn === undefined || !isOpen(turn)) own.runs.turnEnded(turnId);
    },
    changed: (session) => chat().output.sessions?.({ kind: "context", session }),
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
  agent: BackgroundAgent,
  turnId: string,
): Promise<BackgroundAdmission> {
  const chain = [leafOf(host.path).className];
  const lineage = turns?.lineageOf(turnId);
  const from = lineage ?? { root: host.path.length, key: turnId, at: host.clock.now(), chain };
  const refusal = await refusalOf(host, agent, from);
  if (refusal === undefined) return { lineage: JSON.stringify(from) };
  const refused =
    "Not started: as many agents and background calls were started for this as may be (`maxAgentToolRuns`). Go on " +
    "without, or answer with what is there.";
  return { refused: refusal.reason === "count" ? refused : refusal.error };
}

function checkedMax(max: number): number {
  if (max === Number.POSITIVE_INFINITY || (Number.isInteger(max) && max >= 0)) return max;
  throw new PerdureError(
    "bad_config",
    `\`maxBackgroundCalls\` must be a whole number, or Infinity, not ${String(max)}.`,
  );
}
