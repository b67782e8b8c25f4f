import { type Identity, storeIdentity, writeIdentity } from "../../base/identity.ts";
import { causeOfCaller } from "../circle.ts";
import { currentAgent, runAs, withCause } from "../current.ts";
import { type OwnAgent, parts } from "../part.ts";
import type { RunBounds } from "./lineage.ts";
import type { AgentToolLifecycleResult, AgentToolProgressSnapshot, AgentToolRunInfo } from "./types.ts";

/** What the runs of an agent ask of its class. */
export interface RunPolicy extends RunBounds {
  readonly [parts]: OwnAgent;
  readonly maxConcurrentAgentTools: number;
  readonly detachedMaxBudgetMs: number;
  readonly detachedNoProgressBudgetMs: number;
  onAgentToolStart(run: AgentToolRunInfo): unknown;
  onAgentToolFinish(run: AgentToolRunInfo, result: AgentToolLifecycleResult): unknown;
  onProgress(run: AgentToolRunInfo, progress: AgentToolProgressSnapshot): unknown;
}

/** The turn that the calling code runs in. Also one that is over: a call of it may go on in the background. */
export function callingTurn(own: OwnAgent): string | undefined {
  const { agent, turn } = currentAgent();
  return agent?.[parts] === own ? turn : undefined;
}

/** For whom the calling code runs, as it is stored; or whom it names. @throws PerdureError `bad_input` for what is no identity */
export function callingIdentity(own: OwnAgent, given: Identity | undefined): string | null {
  if (given !== undefined) return writeIdentity(given, "a run");
  const { agent, identity } = currentAgent();
  return storeIdentity(agent?.[parts] === own ? identity : undefined);
}

/** Runs a hook that only watches, as the agent and for no connection. What it throws is reported. */
export function watch(agent: RunPolicy, hook: () => unknown): void {
  const current = { agent, connection: undefined, request: undefined, ...withCause(causeOfCaller()) };
  void (async () => runAs(agent[parts].host.context, current, hook))().catch((thrown: unknown) =>
    failedRun(agent[parts], thrown),
  );
}

/** Something about a run failed that no caller waits for. */
export function failedRun(own: OwnAgent, error: unknown): void {
  void own.failed(error, { stage: "agent tool run" });
}
