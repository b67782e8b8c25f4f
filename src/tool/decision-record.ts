import { type Identity, readIdentity, storeIdentity } from "../base/identity.ts";
import type { Sql } from "../port.ts";
import { insertDecided, newestApproved, readToolCall, type ToolCallRow } from "../store/tool-call.ts";
import type { CallApproval } from "./define.ts";

/** What a person has decided about a call. */
export interface RecordedDecision {
  readonly messageId: string;
  readonly toolCallId: string;
  readonly tool: string;
  readonly approved: boolean;
  /** Nobody has answered in time. */
  readonly expired: boolean;
  readonly approver?: string;
  readonly identity?: Identity;
  readonly reason?: string;
}

/** Takes down a decision about a call that another engine runs. */
export function noteDecision(db: Sql, decision: RecordedDecision, decidedAt: number): void {
  const { messageId, toolCallId, tool, approved, expired, approver = null, identity, reason = null } = decision;
  const status = expired ? "expired" : approved ? "approved" : "denied";
  const by = { approver, identity: storeIdentity(identity), reason };
  insertDecided(db, { messageId, toolCallId, tool }, { status, decidedAt, ...by });
}

/** Who has said yes to a call; undefined when nobody has, or nobody had to. */
export function approvalOf(db: Sql, messageId: string, toolCallId: string): CallApproval | undefined {
  const row = readToolCall(db, messageId, toolCallId);
  return row === undefined || row.status === "denied" || row.status === "expired" ? undefined : toApproval(row);
}

/** The same for the newest call of this id. */
export function newestApproval(db: Sql, toolCallId: string): CallApproval | undefined {
  const row = newestApproved(db, toolCallId);
  return row && toApproval(row);
}

function toApproval({ decidedAt, approver, identity }: ToolCallRow): CallApproval | undefined {
  if (decidedAt === null) return undefined;
  const by = approver === null ? {} : { by: approver };
  return { ...by, ...(identity !== null && { identity: readIdentity(identity) }), at: decidedAt };
}
