import { PerdureError } from "../base/error.ts";
import { isRecord, tryParseJson } from "../base/json.ts";
import type { AgentHost } from "../port.ts";
import { readTurn } from "../store/turn.ts";
import { agentId } from "../wire/agent-path.ts";
import { type Cause, causeCarried, currentAgent } from "./current.ts";
import { askAbove } from "./runs/ask-above.ts";
import { checkBound } from "../base/known-options.ts";
import { countUp } from "./runs/lineage.ts";

/*
 * What bounds the turns that come of one another
 *
 * A turn asked for by a person, or by app code outside all turns, comes of nothing. One asked for by a tool or hook of another
 * turn comes of that one, also by way of a schedule, the queue, a fiber or another agent: each stores what it comes of. Depth is
 * seen on the spot; the number is counted by the agent where it began.
 */

/** The bounds of an agent. */
export interface TurnBounds {
  readonly maxOwnTurnDepth: number;
  readonly maxOwnTurnsPerHour: number;
}

const HOUR_MS = 60 * 60 * 1000;
const CELLS = "turns:";
/** So many digits of an hour's number sort as the numbers do. */
const HOUR_DIGITS = 8;

/** What the code that runs now comes of, for what it asks for; undefined when it comes of no turn. @param host of its agent */
export function causeNow(host: AgentHost | undefined): Cause | undefined {
  const { turn } = currentAgent();
  return host === undefined || turn === undefined ? causeCarried() : causeOfTurn(host, turn);
}

/** What comes of a turn. */
export function causeOfTurn(host: AgentHost, turn: string): Cause {
  const at = host.clock.now();
  const own = host.blank ? undefined : readCause(readTurn(host, turn)?.cause);
  if (own === undefined) return { root: host.path, key: turn, depth: 1, at };
  return { ...own, depth: own.depth + 1, at };
}

/** What is stored, read back. */
export function readCause(json: string | null | undefined): Cause | undefined {
  const value = json === null || json === undefined ? undefined : tryParseJson(json);
  return isRecord(value) && Array.isArray(value.root) ? (value as unknown as Cause) : undefined;
}

/** The cause of a new turn, as it is stored. Counts the turn if `counted`. @throws PerdureError `limit`: too deep, or too many */
export function admitTurn(host: AgentHost, bounds: TurnBounds, counted: boolean): string | null {
  const cause = causeNow(host);
  if (cause === undefined) return null;
  // What waited for so long is no loop that runs away.
  const depth = host.clock.now() - cause.at > HOUR_MS ? 1 : cause.depth;
  if (counted) {
    const most = checkBound("maxOwnTurnDepth", bounds.maxOwnTurnDepth);
    if (depth > most) throw refused(host, cause, "depth", tooDeep(most));
    if (isHere(host, cause)) tooMany(host, cause, countTurn(host, bounds, cause.key));
  }
  return JSON.stringify({ ...cause, depth });
}

/** Before a turn is asked for: counts it with the agent where it all began, if that is another. @throws as {@link admitTurn} */
export function countElsewhere(host: AgentHost): Promise<void> | undefined {
  const cause = causeNow(host);
  if (cause === undefined || isHere(host, cause)) return undefined;
  return askAbove(host, cause.root, "countOwnTurn", [cause.key]).then((over) =>
    tooMany(host, cause, over as number | undefined),
  );
}

/** Where it began: one more turn that comes of the turn `key`. @returns the bound, when it is one too many */
export function countTurn(host: AgentHost, bounds: TurnBounds, key: string): number | undefined {
  const limit = checkBound("maxOwnTurnsPerHour", bounds.maxOwnTurnsPerHour);
  const hour = CELLS + String(Math.max(0, Math.floor(host.clock.now() / HOUR_MS))).padStart(HOUR_DIGITS, "0");
  return countUp(host, CELLS, `${hour}:${key}`, hour, limit) ? undefined : limit;
}

function isHere(host: AgentHost, { root }: Cause): boolean {
  return agentId(root) === host.id;
}

function tooMany(host: AgentHost, cause: Cause, limit: number | undefined): void {
  if (limit === undefined) return;
  const error =
    `Not started: one turn has already led to ${limit} turns within an hour, which is the limit (\`maxOwnTurnsPerHour\`). ` +
    "Continue without it, or answer with what you have.";
  throw refused(host, cause, "count", error);
}

function tooDeep(most: number): string {
  return (
    `Not started: each of the last ${most} turns was started by the one before it, which is the limit ` +
    "(`maxOwnTurnDepth`). Answer with what you have, or wait for somebody to ask."
  );
}

function refused(host: AgentHost, { root, key, depth }: Cause, reason: "depth" | "count", error: string): PerdureError {
  host.emit("turn:refused", { reason, depth, agent: agentId(root), requestId: key });
  return new PerdureError("limit", error);
}
