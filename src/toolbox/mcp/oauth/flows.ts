import type { Clock } from "../../../base/time.ts";
import { isRecord } from "../../../base/json.ts";
import type { Sql } from "../../../port.ts";
import { deleteCell, listCells, readCell, writeCell } from "../../../store/cell.ts";
import { flowPrefix } from "../client/server-record.ts";

/** How long a person may take to sign in. */
export const FLOW_MAX_AGE_MS = 10 * 60 * 1000;
/** Sign-ins at one server that may be open at one time; the oldest makes room. */
const MAX_FLOWS = 5;

/** A sign-in that was begun: a person was, or will be, sent to `authUrl`. */
export interface Flow {
  readonly serverId: string;
  /** The secret part of the `state` that comes back. */
  readonly nonce: string;
  readonly verifier: string;
  readonly authUrl: string;
  readonly startedAt: number;
}

/** The `state` of a new sign-in: unguessable, and says whose it is. */
export function newFlowState(serverId: string): string {
  return `${crypto.randomUUID().replaceAll("-", "")}${crypto.randomUUID().replaceAll("-", "")}.${serverId}`;
}

/** Splits what {@link newFlowState} made. */
export function readFlowState(state: string): { readonly nonce: string; readonly serverId: string } | undefined {
  const match = /^([0-9a-f]{64})\.([a-z0-9_-]{1,64})$/.exec(state);
  return match?.[1] === undefined || match[2] === undefined ? undefined : { nonce: match[1], serverId: match[2] };
}

/** Stores a sign-in, so that the way back is known also after a restart. */
export function saveFlow(db: Sql, flow: Flow): void {
  db.tx(() => {
    const open = listFlows(db, flow.serverId).toSorted((a, b) => a.startedAt - b.startedAt);
    for (const old of open.slice(0, Math.max(0, open.length - MAX_FLOWS + 1))) deleteCell(db, keyOf(old));
    writeCell(db, keyOf(flow), JSON.stringify(flow));
  });
}

/** The newest sign-in at a server that can still be ended. */
export function openFlow(db: Sql, clock: Clock, serverId: string): Flow | undefined {
  return listFlows(db, serverId)
    .filter((flow) => isFresh(flow, clock))
    .toSorted((a, b) => b.startedAt - a.startedAt)[0];
}

/** Takes a sign-in for good: who asks again gets nothing. @returns undefined for one that is not known, or is too old */
export function takeFlow(db: Sql, clock: Clock, serverId: string, nonce: string): Flow | undefined {
  return db.tx(() => {
    const key = keyOf({ serverId, nonce });
    const flow = read(readCell(db, key));
    deleteCell(db, key);
    return flow !== undefined && isFresh(flow, clock) ? flow : undefined;
  });
}

function listFlows(db: Sql, serverId: string): Flow[] {
  return listCells(db, flowPrefix(serverId)).flatMap(({ value }) => read(value) ?? []);
}

function isFresh({ startedAt }: Flow, clock: Clock): boolean {
  const age = clock.now() - startedAt;
  return age >= 0 && age <= FLOW_MAX_AGE_MS;
}

function keyOf({ serverId, nonce }: Pick<Flow, "serverId" | "nonce">): string {
  return flowPrefix(serverId) + nonce;
}

function read(text: string | undefined): Flow | undefined {
  const value: unknown = text === undefined ? undefined : JSON.parse(text);
  return isRecord(value) ? (value as unknown as Flow) : undefined;
}
