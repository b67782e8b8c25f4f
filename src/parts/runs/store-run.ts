import {
  type AgentRunRow,
  countOpenAgentRuns,
  endAgentRun,
  insertAgentRun,
  readAgentRun,
} from "../../store/agent-run.ts";
import { writeJson } from "../../wire/json.ts";
import type { OwnAgent } from "../part.ts";
import type { Lineage, RunRefusal } from "./lineage.ts";
import { failed } from "./run-ends.ts";
import { callingIdentity, callingTurn } from "./run-policy.ts";
import type { DetachedAgentToolConfig, RunAgentToolOptions } from "./types.ts";

/** A run that is about to be stored. */
interface NewRun {
  readonly runId: string;
  readonly className: string;
  readonly options: RunAgentToolOptions;
  readonly detached: DetachedAgentToolConfig<Record<string, unknown>> | undefined;
  readonly lineage: Lineage;
  readonly refusal: RunRefusal | undefined;
}

/** Stores a run with the child that it is for; one that may not begin is stored as ended. */
export function storeRun(
  own: OwnAgent,
  limit: number,
  { runId, className, options, detached, lineage, refusal }: NewRun,
): AgentRunRow {
  const { input, parentToolCallId, display, displayOrder, eventDelivery = "full" } = options;
  const json = writeJson(input ?? null, "The input of the run");
  const { host, children } = own;
  const turn = callingTurn(own);
  const session = own.turns?.sessionOf(turn);
  return host.tx(() => {
    const tooMany = Number.isFinite(limit) && countOpenAgentRuns(host) >= limit;
    insertAgentRun(host, {
      ...{ runId, className, input: json, delivery: eventDelivery, startedAt: host.clock.now() },
      ...{ turnId: turn ?? null, identity: callingIdentity(own, options.identity) },
      session: (turn === undefined ? undefined : session) ?? null,
      toolCallId: parentToolCallId ?? null,
      preview: writeJson(options.inputPreview ?? input ?? null, "The preview of the run"),
      display: display === undefined ? null : writeJson(display, "The display of the run"),
      displayOrder: displayOrder ?? null,
      detached: detached === undefined ? null : JSON.stringify({ ...detached, session }),
      lineage: JSON.stringify(lineage),
    });
    if (refusal !== undefined) endAgentRun(host, runId, failed(refusal.error, host));
    else if (tooMany) endAgentRun(host, runId, failed(`maxConcurrentAgentTools (${limit}) exceeded`, host));
    else children.admit({ className, name: runId });
    return readAgentRun(host, runId) as AgentRunRow;
  });
}
