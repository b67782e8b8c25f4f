import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";
import { closeQuestion, openQuestion } from "./delivery.ts";
import { deleteLostToolSteps, deleteToolSteps } from "./tool-step.ts";

/**
 * `perdure_tool_call`: the tool calls that the engine runs, and the questions about them. A call that needs no question begins as
 * `started`, others as `asked`.
 *
 *       ┌──── parked ─────────┐
 *       ▼                     │
 *     asked ─→ approved ─→ started ─→ returned ─→ settled
 *       ├───→ denied          │ ↑ (attempts + 1: it runs again)
 *       └───→ expired         └─→ background ─→ settled
 *
 * `returned` has its result in the row, unseen: `afterToolCall` has yet to judge it. Calls that nobody judges go from `started`
 * to `settled`. A result that was changed stays in the row as it was. A call that parks asks about something inside it: `parked`
 * says about what, `state` is what it resumes from. Anything open can also be settled without having run: the turn was stopped,
 * the arguments changed. `denied` and `expired` are final. Every change names the states it may come from, so nothing happens
 * twice.
 */
export const toolCallSchema: readonly string[] = [
  `CREATE TABLE perdure_tool_call (
    seq INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    tool TEXT NOT NULL,
    input TEXT,
    digest TEXT NOT NULL,
    replay TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    asked_at INTEGER,
    expires_at INTEGER,
    decided_at INTEGER,
    approver TEXT,
    reason TEXT,
    started_at INTEGER,
    settled_at INTEGER,
    summary TEXT,
    UNIQUE (message_id, tool_call_id)
  ) STRICT`,
  "CREATE INDEX perdure_tool_call_asked ON perdure_tool_call (tool_call_id) WHERE asked_at IS NOT NULL",
  "CREATE INDEX perdure_tool_call_open ON perdure_tool_call (expires_at) WHERE status = 'asked'",
];

/** What a call that waits in the middle of its work left. Since migration 6. */
export const parkedCallSchema: readonly string[] = [
  "ALTER TABLE perdure_tool_call ADD COLUMN parked TEXT",
  "ALTER TABLE perdure_tool_call ADD COLUMN state BLOB",
];

/** Who decided, as JSON; null when the app did not say who that is. */
export const approverIdentitySchema: readonly string[] = ["ALTER TABLE perdure_tool_call ADD COLUMN identity TEXT"];

/** What a call returned, while it waits to be judged, and after that where it was changed. Since migration 8. */
export const callResultSchema: readonly string[] = ["ALTER TABLE perdure_tool_call ADD COLUMN result TEXT"];

/** Until migration 17, when questions were over had a table of its own, without the messages that asked them. */
export const approvalSchema: readonly string[] = [
  "CREATE TABLE perdure_approval (tool_call_id TEXT PRIMARY KEY, expires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID",
];

/** Since migration 17: each open question with a deadline has a row of its call. The table that had them stays, empty, until migration 22. */
export const deadlineSchema: readonly string[] = [
  `INSERT INTO perdure_tool_call (message_id, tool_call_id, turn_id, step, tool, digest, replay, status, attempts,
     asked_at, expires_at)
   SELECT m.id, a.tool_call_id, '', 0,
     coalesce(part.value ->> '$.toolName', substr(part.value ->> '$.type', length('tool-') + 1), ''),
     '', 'never', 'asked', 0, m.created_at, a.expires_at
   FROM perdure_approval AS a
     JOIN perdure_message AS m ON m.role = 'assistant' AND instr(m.body, json_quote(a.tool_call_id)) > 0,
     json_each(CASE WHEN json_valid(m.body) THEN m.body ELSE '{}' END, '$.parts') AS part
   WHERE part.type = 'object' AND part.value ->> '$.toolCallId' = a.tool_call_id
     AND part.value ->> '$.state' = 'approval-requested'
   ON CONFLICT (message_id, tool_call_id) DO NOTHING`,
  "DELETE FROM perdure_approval",
];

/** Nobody needs it any more. */
export const approvalGoneSchema: readonly string[] = ["DROP TABLE perdure_approval"];

/** Where a call is. `asked` waits for a person, `returned` for `afterToolCall`. */
export type ToolCallStatus =
  | "asked"
  | "approved"
  | "denied"
  | "expired"
  | "started"
  /** It goes on without its turn (`background-call.ts`). */
  | "background"
  | "returned"
  | "settled";

/** One call. `input` is JSON; times are milliseconds since the epoch. */
export interface ToolCallRow {
  readonly seq: number;
  readonly messageId: string;
  readonly toolCallId: string;
  readonly turnId: string;
  /** The step of the turn that asked for it. */
  readonly step: number;
  readonly tool: string;
  /** Null once it is settled and nobody was asked: the message has it. */
  readonly input: string | null;
  /** What an approval is bound to. Empty: another engine asked, and runs it ({@link noteQuestion}). */
  readonly digest: string;
  /** As the tool says; `safe` from its first step on (`tool-step.ts`). */
  readonly replay: "never" | "safe";
  readonly status: ToolCallStatus;
  /** How often it was started. */
  readonly attempts: number;
  readonly askedAt: number | null;
  readonly expiresAt: number | null;
  readonly decidedAt: number | null;
  readonly approver: string | null;
  /** The approver's identity, as JSON. */
  readonly identity: string | null;
  readonly reason: string | null;
  readonly startedAt: number | null;
  readonly settledAt: number | null;
  /** What a person is told that it would do. */
  readonly summary: string | null;
  /** JSON: what it has parked for, if it ever has. */
  readonly parked: string | null;
}

/** What a new row needs. */
type NewToolCall = Pick<
  ToolCallRow,
  "messageId" | "toolCallId" | "turnId" | "step" | "tool" | "input" | "digest" | "replay"
>;

/** A question to a person. */
interface NewQuestion extends NewToolCall {
  readonly askedAt: number;
  readonly expiresAt: number | null;
  readonly summary: string | null;
}

/** The last word on a question. */
interface Decision {
  readonly status: "approved" | "denied" | "expired";
  readonly decidedAt: number;
  readonly approver: string | null;
  readonly identity: string | null;
  readonly reason: string | null;
}

const calls = tableOf<ToolCallRow>()(
  "perdure_tool_call",
  "seq messageId toolCallId turnId step tool input digest replay status attempts askedAt expiresAt decidedAt approver",
  "reason startedAt settledAt summary parked identity",
);

export function readToolCall(db: Sql, messageId: string, toolCallId: string): ToolCallRow | undefined {
  return calls.one(db, "message_id = ? AND tool_call_id = ?", messageId, toolCallId);
}

/** The calls of a message, in the order in which they came. */
export function toolCallsOf(db: Sql, messageId: string): ToolCallRow[] {
  return calls.select(db, "WHERE message_id = ? ORDER BY seq", messageId);
}

/** The calls of a turn, in the order in which they came. Of a turn that went on with another, only those that it ran. */
export function callsOfTurn(db: Sql, turnId: string): ToolCallRow[] {
  return calls.select(db, "WHERE turn_id = ? ORDER BY seq", turnId);
}

/** The calls of this id of which a person was asked, newest first: some providers number calls anew in each answer. */
export function questionsOf(db: Sql, toolCallId: string): ToolCallRow[] {
  return calls.select(db, "WHERE tool_call_id = ? AND asked_at IS NOT NULL ORDER BY seq DESC", toolCallId);
}

/** Open questions of the step loop, oldest first. */
export function openQuestions(db: Sql): ToolCallRow[] {
  return calls.select(db, "WHERE status = 'asked' AND digest <> '' ORDER BY seq");
}

/** Open questions whose time is over, in the order in which it ended. */
export function overdueQuestions(db: Sql, now: number): ToolCallRow[] {
  return calls.select(db, "WHERE status = 'asked' AND expires_at <= ? ORDER BY expires_at, seq", now);
}

/** When the next open question's time is over. */
export function nextQuestionExpiry(db: Sql): number | null {
  const query = "SELECT min(expires_at) AS at FROM perdure_tool_call WHERE status = 'asked'";
  return db.sql<{ at: number | null }>(query)[0]?.at ?? null;
}

/** Questions that have their last word, the newest question first. */
export function decidedQuestions(db: Sql, limit: number): ToolCallRow[] {
  return calls.select(
    db,
    "WHERE decided_at IS NOT NULL AND status <> 'asked' ORDER BY seq DESC LIMIT (SELECT ?)",
    limit,
  );
}

/** @throws PerdureError `sql_failed` when the call has a row already. */
export function insertQuestion(db: Sql, call: NewQuestion): void {
  calls.insert(db, { ...call, status: "asked", attempts: 0 });
  openQuestion(db, call);
}

/** A call that runs without a question. @throws PerdureError `sql_failed` when it has a row already. */
export function insertStarted(db: Sql, call: NewToolCall, now: number): void {
  calls.insert(db, { ...call, status: "started", attempts: 1, startedAt: now });
}

/** Answers an open question. @returns whether it was open. */
export function decideQuestion(db: Sql, seq: number, decision: Decision): boolean {
  const rows = db.sql<Pick<ToolCallRow, "messageId" | "toolCallId">>(
    `UPDATE perdure_tool_call SET status = ?, decided_at = ?, approver = ?, identity = ?, reason = ?,
       state = CASE WHEN ? = 'approved' THEN state END
     WHERE seq = ? AND status = 'asked' RETURNING message_id AS messageId, tool_call_id AS toolCallId`,
    decision.status,
    decision.decidedAt,
    decision.approver,
    decision.identity,
    decision.reason,
    decision.status,
    seq,
  );
  for (const { messageId, toolCallId } of rows) closeQuestion(db, messageId, toolCallId);
  return rows.length > 0;
}

/** A question that another engine asks is open for a time. One of the step loop stays as it is, and so does its time. */
export function noteQuestion(
  db: Sql,
  call: Pick<ToolCallRow, "messageId" | "toolCallId" | "turnId" | "tool">,
  askedAt: number,
  expiresAt: number,
): void {
  db.sql(
    `INSERT INTO perdure_tool_call (message_id, tool_call_id, turn_id, step, tool, digest, replay, status, attempts,
       asked_at, expires_at)
     VALUES (?, ?, ?, 0, ?, '', 'never', 'asked', 0, ?, ?)
     ON CONFLICT (message_id, tool_call_id) DO UPDATE SET status = 'asked', asked_at = excluded.asked_at,
       expires_at = excluded.expires_at, decided_at = NULL, approver = NULL, identity = NULL, reason = NULL, settled_at = NULL
     WHERE digest = '' AND status <> 'asked'`,
    ...[call.messageId, call.toolCallId, call.turnId, call.tool, askedAt, expiresAt],
  );
}

/** Notes what was decided about a call that another engine runs, also where nothing says when that was asked. */
export function insertDecided(
  db: Sql,
  call: Pick<ToolCallRow, "messageId" | "toolCallId" | "tool">,
  { status, decidedAt, approver, identity, reason }: Decision,
): void {
  db.sql(
    `INSERT INTO perdure_tool_call (message_id, tool_call_id, turn_id, step, tool, digest, replay, status, attempts,
       asked_at, decided_at, approver, identity, reason, settled_at)
     VALUES (?, ?, '', 0, ?, '', 'never', ?, 0, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (message_id, tool_call_id) DO UPDATE SET status = excluded.status, decided_at = excluded.decided_at,
       approver = excluded.approver, identity = excluded.identity, reason = excluded.reason, settled_at = excluded.settled_at
     WHERE status = 'asked'`,
    ...[call.messageId, call.toolCallId, call.tool, status === "approved" ? "settled" : status],
    ...[decidedAt, decidedAt, approver, identity, reason, decidedAt],
  );
}

/** The newest yes to a call of this id. */
export function newestApproved(db: Sql, toolCallId: string): ToolCallRow | undefined {
  return questionsOf(db, toolCallId).find(
    ({ status, decidedAt }) => decidedAt !== null && !["denied", "expired", "asked"].includes(status),
  );
}

/** A call that waits for a person in the middle of its work. */
interface ParkedRow {
  readonly askedAt: number;
  readonly expiresAt: number | null;
  readonly summary: string | null;
  readonly parked: string;
  readonly state: Uint8Array;
}

/** Turns a call that runs into a question. An earlier decision stays to be seen until the next. @returns whether it ran. */
export function parkToolCall(db: Sql, seq: number, row: ParkedRow): boolean {
  const rows = db.sql<Pick<ToolCallRow, "messageId" | "toolCallId" | "turnId">>(
    `UPDATE perdure_tool_call SET status = 'asked', asked_at = ?, expires_at = ?, summary = ?, parked = ?, state = ?
     WHERE seq = ? AND status = 'started'
     RETURNING message_id AS messageId, tool_call_id AS toolCallId, turn_id AS turnId`,
    row.askedAt,
    row.expiresAt,
    row.summary,
    row.parked,
    row.state,
    seq,
  );
  const { digest } = JSON.parse(row.parked) as { digest: string };
  for (const call of rows) openQuestion(db, { ...call, digest, askedAt: row.askedAt });
  return rows.length > 0;
}

/** What a parked call goes on from. */
export function readParkedState(db: Sql, seq: number): Uint8Array | undefined {
  const [row] = db.sql<{ state: Uint8Array | null }>("SELECT state FROM perdure_tool_call WHERE seq = ?", seq);
  return row?.state ?? undefined;
}

/** Begins an attempt, in the turn and step that it belongs to now. */
export function restartToolCall(db: Sql, seq: number, turnId: string, step: number, now: number): void {
  db.sql(
    `UPDATE perdure_tool_call SET status = 'started', attempts = attempts + 1, turn_id = ?, step = ?,
       started_at = coalesce(started_at, ?)
     WHERE seq = ? AND status IN ('approved', 'started')`,
    turnId,
    step,
    now,
    seq,
  );
}

/** A call has returned. @param result JSON. @returns whether it ran, or was about to */
export function returnToolCall(db: Sql, messageId: string, toolCallId: string, result: string): boolean {
  const where = "message_id = ? AND tool_call_id = ? AND status IN ('approved', 'started')";
  return calls.updated(db, { status: "returned", ...{ result, state: null } }, where, messageId, toolCallId);
}

/** A call that has a result without having run. @throws PerdureError `sql_failed` when it has a row already. */
export function insertReturned(db: Sql, call: NewToolCall, result: string): void {
  calls.insert(db, { ...call, status: "returned", attempts: 0, ...{ result } });
}

/** What a call returned, as JSON. */
export function readReturned(db: Sql, messageId: string, toolCallId: string): string | undefined {
  const query = "SELECT result FROM perdure_tool_call WHERE message_id = ? AND tool_call_id = ?";
  return db.sql<{ result: string | null }>(query, messageId, toolCallId)[0]?.result ?? undefined;
}

/** The result that is kept of a call of this id, the newest first where ids repeat. JSON. */
export function keptResult(db: Sql, toolCallId: string, messageId: string | undefined): string | undefined {
  const [row] = db.sql<{ result: string }>(
    `SELECT result FROM perdure_tool_call WHERE tool_call_id = ? AND result IS NOT NULL AND settled_at IS NOT NULL
     AND (? IS NULL OR message_id = ?) ORDER BY seq DESC LIMIT 1`,
    toolCallId,
    messageId ?? null,
    messageId ?? null,
  );
  return row?.result;
}

/**
 * The call has its result. A question's final answer stays; an unanswered one has none, whatever an earlier one was told.
 * @param keep what it returned stays: something else was shown.
 * @returns what is known of it; undefined when it had a result before, or has no row.
 */
export function settleToolCall(
  db: Sql,
  messageId: string,
  toolCallId: string,
  now: number,
  keep: boolean,
): Pick<ToolCallRow, "turnId" | "tool" | "startedAt"> | undefined {
  const rows = db.sql<Pick<ToolCallRow, "turnId" | "tool" | "startedAt">>(
    `UPDATE perdure_tool_call SET settled_at = ?, state = NULL, result = CASE WHEN ? THEN result END,
       status = CASE WHEN status IN ('denied', 'expired') THEN status ELSE 'settled' END,
       input = CASE WHEN decided_at IS NULL OR status = 'asked' THEN NULL ELSE input END,
       decided_at = CASE WHEN status <> 'asked' THEN decided_at END,
       approver = CASE WHEN status <> 'asked' THEN approver END,
       identity = CASE WHEN status <> 'asked' THEN identity END,
       reason = CASE WHEN status <> 'asked' THEN reason END
     WHERE message_id = ? AND tool_call_id = ? AND settled_at IS NULL AND status <> 'background'
     RETURNING turn_id AS turnId, tool, started_at AS startedAt`,
    now,
    keep ? 1 : 0,
    messageId,
    toolCallId,
  );
  if (rows.length > 0) deleteToolSteps(db, messageId, toolCallId);
  closeQuestion(db, messageId, toolCallId);
  return rows[0];
}

/** What goes on in the background stays: it is not of its message alone. */
export function deleteToolCallsOf(db: Sql, messageId: string): void {
  calls.delete(db, "message_id = ? AND status <> 'background'", messageId);
  deleteLostToolSteps(db);
}

/** Forgets calls that have their last word, but the newest `keep`. */
export function trimToolCalls(db: Sql, keep: number): void {
  const isOver = "status IN ('denied', 'expired', 'settled')";
  calls.delete(db, `${isOver} AND seq <= (SELECT max(seq) FROM perdure_tool_call) - ?`, keep);
}

/** Forgets the calls of messages that are gone, but for what goes on in the background. */
export function deleteLostToolCalls(db: Sql): void {
  calls.delete(db, "status <> 'background' AND message_id NOT IN (SELECT id FROM perdure_message)");
  deleteLostToolSteps(db);
}
