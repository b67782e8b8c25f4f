import type { AgentHost, AgentPath } from "../../port.ts";
import { deleteCellsBefore, readCell, writeCell } from "../../store/cell.ts";
import { isRecord, tryParseJson } from "../../base/json.ts";
import { leafOf } from "../../wire/agent-path.ts";
import { askAbove } from "./ask-above.ts";
import { checkBound } from "../../base/known-options.ts";

/*
 * What bounds the runs that come of one another
 *
 * A turn that no run was taken for is the root of a tree of runs. Each run stores where it comes from, at the asking agent and in
 * the child, so depth and circles are seen on the spot, in every life. The number is counted by the agent at the root, above all
 * others.
 */

/** Where a run comes from. */
export interface Lineage {
  /** How many steps the address of the agent at the root has: the first so many of every agent's below it. */
  readonly root: number;
  /** What it began with there: a turn, or a run that no turn asked for. */
  readonly key: string;
  /** When, in milliseconds since the epoch. */
  readonly at: number;
  /** The classes from the root down, with that of the agent that the run is for. */
  readonly chain: readonly string[];
}

/** The bounds of an agent. */
export interface RunBounds {
  readonly maxAgentToolDepth: number;
  readonly maxAgentToolRuns: number;
}

/** Why a run may not be started. */
export interface RunRefusal {
  readonly reason: "depth" | "count";
  /** For the model. */
  readonly error: string;
}

/** What the agent at the root says to one more run. */
export type Counted = { readonly ok: true } | { readonly ok: false; readonly limit: number };

const DAY_MS = 24 * 60 * 60 * 1000;
/** Runs that come of something older are counted anew. */
const KEPT_DAYS = 60;
const CELLS = "runs:";
/** So many digits of a day's number sort as the numbers do. */
const DAY_DIGITS = 8;

/** The lineage of a run of `className` that code of lineage `from` asks for; without one, a tree begins here. */
export function lineageOf(host: AgentHost, from: Lineage | undefined, className: string, key: string): Lineage {
  const start = from ?? { root: host.path.length, key, at: host.clock.now(), chain: [leafOf(host.path).className] };
  return { ...start, chain: [...start.chain, className] };
}

/** What is stored, read back; undefined for a run that was stored without. */
export function readLineage(json: string | null | undefined): Lineage | undefined {
  const value = json === null || json === undefined ? undefined : tryParseJson(json);
  if (!isRecord(value) || !Array.isArray(value.chain)) return undefined;
  return value as unknown as Lineage;
}

/** Whether the agent is the root of a tree, which counts its runs. */
export function isRoot(host: AgentHost, { root }: Lineage): boolean {
  return root >= host.path.length;
}

/** Counts one more run of a tree whose root this is, unless it is too many or too deep. Undefined: it may begin. */
export function refusalHere(host: AgentHost, bounds: RunBounds, lineage: Lineage): RunRefusal | undefined {
  return depthRefusal(bounds, lineage) ?? tooMany(countRun(host, bounds, lineage));
}

/** The same, where the root is an agent above: it is called. */
export async function refusalAbove(
  host: AgentHost,
  bounds: RunBounds,
  lineage: Lineage,
): Promise<RunRefusal | undefined> {
  const refusal = depthRefusal(bounds, lineage);
  if (refusal !== undefined) return refusal;
  const { key, at, root } = lineage;
  const [first, ...rest] = host.path;
  const above: AgentPath = [first, ...rest.slice(0, root - 1)];
  return tooMany((await askAbove(host, above, "countAgentToolRun", [{ key, at }])) as Counted);
}

function depthRefusal(bounds: RunBounds, { chain }: Lineage): RunRefusal | undefined {
  const depth = checkBound("maxAgentToolDepth", bounds.maxAgentToolDepth);
  return chain.length - 1 > depth ? { reason: "depth", error: tooDeep(chain, depth) } : undefined;
}

/** At the root: one more run of the tree that began with `key`. */
export function countRun(host: AgentHost, bounds: RunBounds, { key, at }: Pick<Lineage, "key" | "at">): Counted {
  const limit = checkBound("maxAgentToolRuns", bounds.maxAgentToolRuns);
  const oldest = CELLS + dayOf(host.clock.now() - KEPT_DAYS * DAY_MS);
  return countUp(host, CELLS, CELLS + dayOf(at) + key, oldest, limit) ? { ok: true } : { ok: false, limit };
}

/** Counts one more in a cell, unless there are `limit`. The first of a cell deletes those `before`. @returns whether it did */
export function countUp(host: AgentHost, cells: string, cell: string, before: string, limit: number): boolean {
  return host.tx(() => {
    const counted = Number(readCell(host, cell) ?? 0);
    if (counted >= limit) return false;
    if (counted === 0) deleteCellsBefore(host, cells, before);
    writeCell(host, cell, String(counted + 1));
    return true;
  });
}

function dayOf(at: number): string {
  return `${String(Math.max(0, Math.floor(at / DAY_MS))).padStart(DAY_DIGITS, "0")}:`;
}

function tooMany(counted: Counted): RunRefusal | undefined {
  if (counted.ok) return undefined;
  const error =
    `Not started: ${counted.limit} agents have already been started for this, which is the limit ` +
    "(`maxAgentToolRuns`). Continue without it, or answer with what you have.";
  return { reason: "count", error };
}

function tooDeep(chain: readonly string[], depth: number): string {
  const circle = circleIn(chain);
  const says =
    circle === undefined
      ? ""
      : circle.length === 1
        ? ` ${circle[0]} starts itself.`
        : ` They go in a circle: ${circle.join(" ↔ ")}.`;
  return (
    `Not started: agents may start agents ${depth} deep (\`maxAgentToolDepth\`), and this is deeper: ${chain.join(" → ")}.` +
    `${says} Do the work yourself, or answer with what you have.`
  );
}

/** The classes between two that are the same, if any are. */
function circleIn(chain: readonly string[]): readonly string[] | undefined {
  const last = chain.length - 1;
  const before = chain.lastIndexOf(chain[last] ?? "", last - 1);
  return before === -1 ? undefined : chain.slice(before, last);
}
