import { PerdureError } from "../base/error.ts";
import { NANO_DOLLARS } from "../ledger/prices.ts";
import { findRequest, type FoundRequest, showRequest, type ShownRequest } from "../model/read-request.ts";
import { firstDifference } from "../model/request-diff.ts";
import type { Sql } from "../port.ts";
import { requestBefore, type RequestRow, requestsOfTurn } from "../store/frame.ts";
import { callsOfTurn } from "../store/tool-call.ts";
import { newestTurns, readTurn, type TurnLine } from "../store/turn.ts";

/** A line of the list of turns. */
function describeTurn(turn: TurnLine): object {
  const { id, status, trigger, session, attempts, error, createdAt, startedAt, settledAt } = turn;
  return { id, status, trigger, session, attempts, error, createdAt, startedAt, settledAt };
}

/** The newest turns of an agent. */
export function listTurns(rows: Sql, limit: number): object[] {
  return newestTurns(rows, limit).map(describeTurn);
}

/** One turn: each model call with what it cost, each tool call with its times. @throws PerdureError `not_found` */
export function describeTurnWhole(rows: Sql, id: string): object {
  const turn = readTurn(rows, id);
  const calls = requestsOfTurn(rows, id);
  if (turn === undefined && calls.length === 0)
    throw new PerdureError("not_found", `There is no turn ${id}. \`perdure show\` lists the newest ones.`);
  const { status, trigger, session, attempts, error, createdAt, startedAt } = turn ?? {};
  return {
    ...{ id, status, trigger, session, attempts, error, createdAt, startedAt },
    calls: calls.map(describeCall),
    tools: callsOfTurn(rows, id).map((call) => ({
      ...{ call: call.toolCallId, tool: call.tool, step: call.step, status: call.status, attempts: call.attempts },
      ...{ askedAt: call.askedAt, decidedAt: call.decidedAt, approver: call.approver },
      ...{ startedAt: call.startedAt, settledAt: call.settledAt },
    })),
  };
}

function describeCall(row: RequestRow): object {
  const { id, step, attempt, purpose, model, status, tokens, input, output, cacheRead, cost } = row;
  return {
    ...{ id, step, attempt, purpose, model, status, tokens, input, output, cacheRead },
    ...{ usd: cost === null ? null : cost / NANO_DOLLARS, errorClass: row.errorClass },
    ...{ startedAt: row.startedAt, settledAt: row.settledAt, digest: row.requestDigest },
  };
}

/** What is stored of the request of a call, and which call of its session came before. @throws PerdureError `not_found` */
export function lookForRequest(rows: Sql, call: string): FoundRequest & { readonly before: string | null } {
  const found = findRequest(rows, call);
  if (found !== undefined) return { ...found, before: requestBefore(rows, found.row)?.id ?? null };
  throw new PerdureError("not_found", `There is no call ${call}. \`perdure request\` finds it by its turn and step.`);
}

/** A request, beside what the code of now would send if it is asked. */
export async function describeRequest(
  found: FoundRequest & { readonly before: string | null },
  now?: { readonly instructions: unknown; readonly tools: unknown },
): Promise<object> {
  const shown = await showRequest(found);
  return { ...(now === undefined ? shown : withCode(shown, now)), before: found.before };
}

/** The stored request is what was sent, but the code would say something else now. */
function withCode(shown: ShownRequest, now: { readonly instructions: unknown; readonly tools: unknown }): ShownRequest {
  if (shown.proof !== "exact") return shown;
  const differences = [
    firstDifference(shown.instructions, now.instructions, "instructions"),
    firstDifference(shown.tools, now.tools, "tools"),
  ].flatMap((one) => one?.path ?? []);
  return differences.length === 0 ? shown : { ...shown, proof: "code-changed", changed: differences };
}
