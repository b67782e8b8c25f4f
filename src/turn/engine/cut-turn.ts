import { batchState } from "../../message/tool-answer.ts";
import { type ToolPart, toolName } from "../../message/types.ts";
import { openTurns, type TurnRow } from "../../store/turn.ts";
import type { ClientTool } from "../../wire/frames.ts";
import { ActiveTurn } from "./active-turn.ts";
import type { Desk } from "./desk.ts";
import { isApproved, repairsOf } from "./repair-last.ts";
import { tryParseJson } from "../../message/json.ts";

/** A turn that was cut and waits to be carried on, such as for room on the disk: its answer as its log has it. */
export function cutTurn({ host, transcripts, output, origins, running }: Desk): ActiveTurn | undefined {
  const row = running === undefined ? openTurns(host).find(({ status }) => status === "running") : undefined;
  return row && new ActiveTurn(host, transcripts.of(row.session), output, row, origins.get(row.id));
}

/**
 * Whether the cut came while somebody else was to act: an approval was asked for, or the step was over and calls
 * are left, which are then the client's to run, or a later turn's if they were approved. A call in a step that was not over
 * was running here.
 */
export function waitsForAnswer({ builder, leftAt, message }: ActiveTurn): boolean {
  const stepOver = leftAt === "finish-step";
  if (stepOver && builder.parts.slice(builder.inherited).some(isApproved)) return true;
  if (batchState(message).waiting === 0) return false;
  return stepOver || message.parts.some((part) => "state" in part && part.state === "approval-requested");
}

/** Ends what was running here when the stream was cut; what waits for somebody else stays open. */
export function closeCut(desk: Desk, active: ActiveTurn): void {
  active.close({ ...repairsOf(desk), keepPending: true, isCut: (call) => ranHere(active, call) });
}

/**
 * Whether a call was running here when the stream was cut, while somebody was asked about another one: nobody will tell
 * its end. Those of tools that the client brought are the client's to run.
 */
function ranHere({ leftAt, row }: ActiveTurn, call: ToolPart): boolean {
  if (leftAt === "finish-step" || call.state !== "input-available") return false;
  return !clientToolsOf(row)?.some((one) => one?.name === toolName(call));
}

function clientToolsOf({ clientTools }: TurnRow): ClientTool[] | undefined {
  const tools = clientTools === null ? undefined : tryParseJson(clientTools);
  return Array.isArray(tools) ? (tools as ClientTool[]) : undefined;
}
