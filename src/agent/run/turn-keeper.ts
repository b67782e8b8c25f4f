import type { Agent } from "../agent.ts";
import { storeIdentity, writeIdentity } from "../../base/identity.ts";
import type { Ledger } from "../../ledger/ledger.ts";
import { causeOfCaller } from "../circle.ts";
import { getCurrentAgent, runAs, withCause } from "../context.ts";
import { parts } from "../feature.ts";
import { closeCallsOf } from "./book-calls.ts";
import type { Lineage } from "./lineage.ts";
import type { RunConversation, RunHooks } from "./run-hooks.ts";

/** What an agent that holds a conversation adds to the runs that it asks for. */
export interface TurnKeeper {
  /** Whether a turn was cut because it stalled, and is about to be carried on. */
  isStalled(turnId: string): boolean;
  /** Whether a turn is under way, not stopped, and what it is for is wanted by the agents above. */
  isWanted(turnId: string): Promise<boolean>;
  /** Whether calls of a turn go on without it. */
  goesOn(turnId: string): boolean;
  readonly conversation: RunConversation;
  /** The run of the agent above that a turn was taken for, if it was. */
  runOf(turnId: string): string | undefined;
  /** Which runs a turn comes of, or code outside of turns. */
  lineageOf(turnId: string | undefined): Lineage | undefined;
  /** The session of a turn; without one, that of the turn that runs, or of all who name none. */
  sessionOf(turnId: string | undefined): string | undefined;
  /** Where model calls are booked, also those that children make for the agent. */
  readonly ledger?: Ledger | undefined;
}

/** The hooks of an agent, as its runs call them: as the agent, for no connection. Read when they are needed. */
export function runHooksOf(agent: Agent<object>): RunHooks {
  const failed = (error: unknown) => void agent[parts].failed(error, { stage: "agent tool run" });
  return {
    get maxConcurrentAgentTools() {
      return agent.maxConcurrentAgentTools;
    },
    get maxAgentToolDepth() {
      return agent.maxAgentToolDepth;
    },
    get maxAgentToolRuns() {
      return agent.maxAgentToolRuns;
    },
    get detachedMaxBudgetMs() {
      return agent.detachedMaxBudgetMs;
    },
    get detachedNoProgressBudgetMs() {
      return agent.detachedNoProgressBudgetMs;
    },
    onAgentToolStart: (run) => agent.onAgentToolStart(run),
    onAgentToolFinish: (run, result) => agent.onAgentToolFinish(run, result),
    onProgress: (run, progress) => agent.onProgress(run, progress),
    method: (name) => agent[parts].method(name),
    // Also of a turn that is over: a call of it may go on in the background.
    turn: () => {
      const current = getCurrentAgent();
      return current.agent === agent ? current.turn : undefined;
    },
    identity: (given) => {
      if (given !== undefined) return writeIdentity(given, "a run");
      const current = getCurrentAgent();
      return storeIdentity(current.agent === agent ? current.identity : undefined);
    },
    lineage: () => {
      const current = getCurrentAgent();
      return agent[parts].turns?.lineageOf(current.agent === agent ? current.turn : undefined);
    },
    session: () => {
      const current = getCurrentAgent();
      return agent[parts].turns?.sessionOf(current.agent === agent ? current.turn : undefined);
    },
    // Without turns nobody can have stopped one.
    turnStalled: (turnId) => agent[parts].turns?.isStalled(turnId) ?? false,
    turnWanted: (turnId) => agent[parts].turns?.isWanted(turnId) ?? true,
    conversation: () => agent[parts].turns?.conversation,
    closeCalls: (run) => closeCallsOf({ host: agent[parts].host, keeper: agent[parts].turns }, run),
    watch: (hook) => {
      const current = { agent, connection: undefined, request: undefined, ...withCause(causeOfCaller()) };
      void (async () => runAs(agent[parts].host.context, current, hook))().catch(failed);
    },
    failed,
  };
}
