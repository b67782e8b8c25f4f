import type { Sql } from "../port.ts";
import { Table, tableOf } from "./table.ts";
import { readCell } from "./cell.ts";

/**
 * `perdure_delivery`: what has to reach a place at a messenger. The row exists from the commit that accepts the message or asks
 * the question; an answer's text is the stored answer, so only notices have a body.
 *
 *     open ─→ done            what was to be shown is shown
 *      │  ↖──── held          a question that waits for a person, or what waits for its answer: then `body` is what was said
 *      └──→ failed            the network refuses it for good, or the time is over; kept to be looked at
 *
 * An answer that goes on (somebody approved a call of it) opens its delivery again. `perdure_delivery_part`: one per message at
 * the network. `calling` is set while nobody knows whether a message was made: see docs/messengers.md.
 */
export const deliverySchema: readonly string[] = [
  `CREATE TABLE perdure_delivery (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    messenger TEXT NOT NULL,
    thread TEXT NOT NULL,
    place TEXT NOT NULL,
    session TEXT NOT NULL,
    turn_id TEXT,
    message_id TEXT,
    answer_id TEXT,
    tool_call_id TEXT,
    digest TEXT,
    secret TEXT,
    body TEXT,
    context TEXT,
    outcome TEXT,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    maybe_twice INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    ended_at INTEGER
  ) STRICT`,
  "CREATE INDEX perdure_delivery_open ON perdure_delivery (seq) WHERE state = 'open'",
  `CREATE TABLE perdure_delivery_part (
    delivery INTEGER NOT NULL,
    n INTEGER NOT NULL,
    start INTEGER NOT NULL,
    "end" INTEGER,
    provider_id TEXT,
    shown TEXT,
    calling INTEGER NOT NULL DEFAULT 0,
    key TEXT NOT NULL,
    called_at INTEGER NOT NULL,
    PRIMARY KEY (delivery, n)
  ) STRICT, WITHOUT ROWID`,
];

/**
 * JSON. `files` of a delivery: what to fetch of the message that it answers before its turn begins; null: nothing. `file` of a
 * part: it is a file of the answer, not text; `start` is its part in it.
 */
export const deliveryFileSchema: readonly string[] = [
  "ALTER TABLE perdure_delivery ADD COLUMN files TEXT",
  "ALTER TABLE perdure_delivery_part ADD COLUMN file TEXT",
  "CREATE INDEX perdure_delivery_files ON perdure_delivery (seq) WHERE files IS NOT NULL",
];

/** The channel of the agent's own clients. No messenger is called so. */
export const WEB = "web";

/** What is delivered: the answer of a turn, a question for approval, or a text of the app's own. */
export type DeliveryKind = "answer" | "question" | "notice";
/** Where a delivery is. */
export type DeliveryState = "open" | "held" | "done" | "failed";

/** One delivery. JSON columns are texts; times are milliseconds since the epoch. */
export interface DeliveryRow {
  readonly seq: number;
  readonly kind: DeliveryKind;
  readonly messenger: string;
  readonly thread: string;
  /** JSON: where exactly, as the channel reads it. */
  readonly place: string;
  readonly session: string;
  /** The turn whose end it tells; null for notices. */
  readonly turnId: string | null;
  /** Of an answer: the message that it answers. Of a question: the answer with the call. */
  readonly messageId: string | null;
  readonly answerId: string | null;
  readonly toolCallId: string | null;
  /** Of a question: the digest of what is asked about. */
  readonly digest: string | null;
  /** Of a question: what its buttons must say. */
  readonly secret: string | null;
  readonly body: string | null;
  /** JSON: who said what where, for `getMessengerContext()`. */
  readonly context: string | null;
  /** JSON: what is still to be fetched. */
  readonly files: string | null;
  /** How the turn ended, `interrupted` where it is carried on no more; null while it has not. */
  readonly outcome: string | null;
  readonly state: DeliveryState;
  /** Calls in a row that failed. */
  readonly attempts: number;
  /** No call before this time. */
  readonly nextAt: number;
  /** Why the last call failed, or what ended it. */
  readonly error: string | null;
  readonly maybeTwice: 0 | 1;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** One message at the network. `start` and `end` are places in the text of the delivery. */
export interface PartRow {
  readonly n: number;
  readonly start: number;
  /** Null: it may still grow. */
  readonly end: number | null;
  readonly providerId: string | null;
  /** A fingerprint of what was last surely shown. */
  readonly shown: string | null;
  /** A create was begun, and its outcome is not known. */
  readonly calling: 0 | 1;
  /** What the create is known by, where the network can be asked. */
  readonly key: string;
  readonly calledAt: number;
  /** JSON: the file that it is; null: it is text. */
  readonly file: string | null;
}

/** What is needed to open one. */
type NewDelivery = Pick<DeliveryRow, "kind" | "messenger" | "thread" | "place" | "session" | "createdAt"> &
  Partial<
    Pick<DeliveryRow, "turnId" | "messageId" | "toolCallId" | "digest" | "secret" | "body" | "context" | "files">
  >;

const deliveries = tableOf<DeliveryRow>()(
  "perdure_delivery",
  "seq kind messenger thread place session turnId messageId answerId toolCallId digest secret body context files outcome state",
  "attempts nextAt error maybeTwice createdAt endedAt",
);

/** Deliveries that have something to do, or whose turn has not ended, in their order. */
export function openDeliveries(db: Sql, limit: number): DeliveryRow[] {
  return deliveries.select(db, "WHERE state = 'open' ORDER BY seq LIMIT (SELECT ?)", limit);
}

/** Those of one place. */
export function openDeliveriesAt(db: Sql, messenger: string, thread: string): DeliveryRow[] {
  return deliveries.select(db, "WHERE state = 'open' AND messenger = ? AND thread = ? ORDER BY seq", messenger, thread);
}

export function readDelivery(db: Sql, seq: number): DeliveryRow | undefined {
  return deliveries.one(db, "seq = ?", seq);
}

/** Of this turn: what its answer, or that which it goes on with, is delivered as. */
export function deliveryOfTurn(db: Sql, turnId: string): DeliveryRow | undefined {
  return deliveries.select(db, "WHERE turn_id = ? AND kind = 'answer' ORDER BY seq DESC LIMIT 1", turnId)[0];
}

/** Deliveries of answers whose turn has not ended. */
export function unsettledDeliveries(db: Sql, messenger: string, thread: string): DeliveryRow[] {
  const where = "WHERE state <> 'failed' AND kind = 'answer' AND outcome IS NULL AND messenger = ? AND thread = ?";
  return deliveries.select(db, `${where} ORDER BY seq`, messenger, thread);
}

/** The newest first. */
export function listDeliveryRows(db: Sql, states: readonly DeliveryState[], limit: number): DeliveryRow[] {
  const where = states.length === 0 ? "" : `WHERE state IN (${states.map(() => "?").join(", ")})`;
  return deliveries.select(db, `${where} ORDER BY seq DESC LIMIT (SELECT ?)`, ...states, limit);
}

/** The earliest time at which one that waits may go on; null: none waits. */
export function nextDelivery(db: Sql): number | null {
  const query = "SELECT min(next_at) AS at FROM perdure_delivery WHERE state = 'open' AND next_at > 0";
  return db.sql<{ at: number | null }>(query)[0]?.at ?? null;
}

export function hasOpenDelivery(db: Sql): boolean {
  return deliveries.has(db, "state = 'open'");
}

/** Whether anything was ever to be delivered that is not forgotten. */
export function hasAnyDelivery(db: Sql): boolean {
  return deliveries.has(db, "true");
}

/** @returns its number */
export function insertDelivery(db: Sql, row: NewDelivery, state: DeliveryState = "open"): number {
  return deliveries.add(db, { ...row, state }).seq;
}

// What happens to turns and questions, in the commits that it happens in

/** The cell that says where a conversation belongs to: what the agent says in it by itself goes there. */
export const boundKey = (session: string): string => `messenger:session:${session}`;

/** A turn was accepted that nobody outside asked for: in a conversation that belongs to a place, its end is told there. */
export function openBoundDelivery(db: Sql, turn: { id: string; session: string; createdAt: number }): void {
  const bound = readCell(db, boundKey(turn.session));
  if (bound === undefined) return;
  const { messenger, thread, place } = JSON.parse(bound) as { messenger: string; thread: string; place: unknown };
  const { id: turnId, session, createdAt } = turn;
  insertDelivery(db, {
    ...{ kind: "answer", messenger, thread, place: JSON.stringify(place), session, turnId, createdAt },
    context: JSON.stringify({ messenger, thread, kind: "code" }),
  });
}

/** Where the answer to something that nobody at a messenger asked for goes. */
export interface DeliverTo {
  /** The messenger, by the name that the app gave it. */
  readonly channel: string;
  readonly thread: string;
  /** Two people, or one and the agent. Default true. */
  readonly dm?: boolean;
}

/** The answer of a turn goes there, and not to the place that its conversation belongs to. */
export function deliverTurn(
  db: Sql,
  turn: { id: string; session: string; createdAt: number },
  { channel: messenger, thread, dm = true }: DeliverTo,
): void {
  const { id: turnId, session, createdAt } = turn;
  placeDelivery(db, {
    ...{ kind: "answer", messenger, thread, place: JSON.stringify({ thread, dm }), session, turnId, createdAt },
    context: JSON.stringify({ messenger, thread, kind: "code" }),
  });
}

/** The delivery of a turn, opened now or given its place: whoever asks says where. */
export function placeDelivery(db: Sql, row: NewDelivery & { readonly turnId: string }): void {
  deliveries.delete(db, "turn_id = ? AND kind = 'answer'", row.turnId);
  insertDelivery(db, row);
}

/** The answer of a turn has a name. One that goes on with an answer delivers it where that was delivered. */
export function nameDelivery(db: Sql, turn: number, answerId: string): void {
  db.sql(
    `UPDATE perdure_delivery SET answer_id = ?, outcome = NULL, ended_at = NULL, turn_id = turn.id,
       state = CASE state WHEN 'failed' THEN state ELSE 'open' END
     FROM (SELECT id FROM perdure_turn WHERE seq = ?) AS turn
     WHERE kind = 'answer' AND (perdure_delivery.turn_id = turn.id OR answer_id = ?)`,
    answerId,
    turn,
    answerId,
  );
}

/** A turn has ended. */
export function settleDelivery(db: Sql, turnId: string, outcome: string): void {
  db.sql(
    `UPDATE perdure_delivery SET outcome = ?, state = CASE state WHEN 'failed' THEN state ELSE 'open' END
     WHERE turn_id = ? AND kind = 'answer'`,
    outcome,
    turnId,
  );
}

/** The conversation is forgotten: what was to be told of it has no words any more. */
export function dropDeliveries(db: Sql, session: string, now: number): void {
  db.sql(
    `UPDATE perdure_delivery SET state = 'done', outcome = coalesce(outcome, 'aborted'), ended_at = ?,
       error = 'The conversation was cleared.'
     WHERE session = ? AND state IN ('open', 'held') AND kind <> 'notice'`,
    now,
    session,
  );
}

/** A person is asked about a call: in the place that the turn's answer goes to, if it goes to one. */
export function openQuestion(
  db: Sql,
  call: { messageId: string; toolCallId: string; turnId: string; digest: string; askedAt: number },
): void {
  const answer = deliveryOfTurn(db, call.turnId);
  if (answer === undefined) return;
  const { messenger, thread, place, session, context } = answer;
  insertDelivery(db, {
    ...{ kind: "question", messenger, thread, place, session, context, secret: secretOf() },
    ...{ messageId: call.messageId, toolCallId: call.toolCallId, turnId: call.turnId, digest: call.digest },
    createdAt: call.askedAt,
  });
}

/** Questions of a place that nobody has answered. */
export function openQuestionsAt(db: Sql, messenger: string, thread: string): DeliveryRow[] {
  const where = "WHERE kind = 'question' AND outcome IS NULL AND messenger = ? AND thread = ?";
  return deliveries.select(db, where, messenger, thread);
}

/** A question has its last word: whoever shows it shows that. */
export function closeQuestion(db: Sql, messageId: string, toolCallId: string): void {
  const where = `kind = 'question' AND message_id = ? AND tool_call_id = ? AND outcome IS NULL AND state IN ('open', 'held')`;
  deliveries.update(db, { state: "open", outcome: "decided" }, where, messageId, toolCallId);
}

const SECRET_BYTES = 12;

function secretOf(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(SECRET_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// What waits before it has a turn

/** What was said while a question of somebody else is open, in its order: `body` is what came. */
export function heldMessages(db: Sql): DeliveryRow[] {
  return deliveries.select(db, "WHERE state = 'held' AND kind = 'answer' AND body IS NOT NULL ORDER BY seq");
}

export function hasHeldMessage(db: Sql): boolean {
  return deliveries.has(db, "state = 'held' AND kind = 'answer' AND body IS NOT NULL");
}

/** It says something else now. */
export function editHeldMessage(db: Sql, seq: number, body: string): void {
  deliveries.update(db, { body }, "seq = ?", seq);
}

/** It has its turn now, or was taken back. */
export function dropHeldMessage(db: Sql, seq: number): void {
  db.sql("DELETE FROM perdure_delivery WHERE seq = ? AND state = 'held' AND body IS NOT NULL", seq);
}

/** For `erase()`: what those of a subject that wait are known by. */
export function heldMessageIdsOf(db: Sql, subject: string): string[] {
  const rows = heldMessages(db).filter(({ context }) => context?.includes(JSON.stringify(subject)) === true);
  return rows.flatMap(({ messageId }) => messageId ?? []);
}

// What is to be fetched

/** Those whose turn waits for files. */
export function deliveriesWithFiles(db: Sql): DeliveryRow[] {
  return deliveries.select(db, "WHERE files IS NOT NULL ORDER BY seq");
}

export function setDeliveryFiles(db: Sql, seq: number, files: string | null, context?: string): void {
  deliveries.update(db, { files, ...(context !== undefined && { context }) }, "seq = ?", seq);
}

// What is known of the messages at the network

const parts = new Table<PartRow>(
  "perdure_delivery_part",
  ["n", "start", "end", "providerId", "shown", "calling", "key", "calledAt", "file"],
  { end: '"end"' },
);

export function partsOf(db: Sql, delivery: number): PartRow[] {
  return parts.select(db, "WHERE delivery = ? ORDER BY n", delivery);
}

/** A create is about to be called. */
export function intendPart(
  db: Sql,
  delivery: number,
  part: Pick<PartRow, "n" | "start" | "key" | "file"> & { readonly at: number },
): void {
  const { n, start, key, at: calledAt, file } = part;
  const again = "calling = 1, provider_id = NULL, shown = NULL, key = excluded.key, called_at = excluded.called_at";
  const row = { n, start, key, calledAt, file, calling: 1, ...{ delivery } } as const;
  parts.insert(db, row, `ON CONFLICT (delivery, n) DO UPDATE SET ${again}`);
}

/** What is known of the file that a part is. A part that has no row yet has one then. */
export function notePartFile(
  db: Sql,
  delivery: number,
  part: Pick<PartRow, "n" | "start"> & { readonly at: number; readonly file: string; readonly sent: boolean },
): void {
  const { n, start, at: calledAt, file, sent } = part;
  const row = { n, start, calledAt, file, key: "", providerId: sent ? "" : null, ...{ delivery } };
  const again = "file = excluded.file, provider_id = excluded.provider_id, calling = 0";
  parts.insert(db, row, `ON CONFLICT (delivery, n) DO UPDATE SET ${again}`);
}

/** The create did surely not happen. */
export function clearIntent(db: Sql, delivery: number, n: number): void {
  parts.update(db, { calling: 0 }, "delivery = ? AND n = ?", delivery, n);
}

/** What was shown in a message, whose name is known now if it was not. */
export function showPart(
  db: Sql,
  delivery: number,
  n: number,
  { providerId, shown, end }: { providerId: string; shown: string; end: number | null },
): void {
  db.sql(
    `UPDATE perdure_delivery_part SET provider_id = ?, shown = ?, "end" = coalesce("end", ?), calling = 0
     WHERE delivery = ? AND n = ?`,
    ...[providerId, shown, end, delivery, n],
  );
}

/** Somebody has deleted the message: what stands in it has to be said anew. */
export function losePart(db: Sql, delivery: number, n: number): void {
  parts.update(db, { providerId: null, shown: null, calling: 0 }, "delivery = ? AND n = ?", delivery, n);
}

/** A message ends here; what comes later stands in another one. */
export function closePart(db: Sql, delivery: number, n: number, end: number): void {
  parts.update(db, { end }, `delivery = ? AND n = ? AND "end" IS NULL`, delivery, n);
}

// What became of a delivery

/** A call has worked: failures in a row are forgotten. */
export function clearFailures(db: Sql, seq: number): void {
  deliveries.update(db, { attempts: 0, nextAt: 0, error: null }, "seq = ? AND attempts > 0", seq);
}

/** A call has failed, and is made again at `nextAt`. */
export function postponeDelivery(db: Sql, seq: number, nextAt: number, error: string): void {
  db.sql(
    "UPDATE perdure_delivery SET attempts = attempts + 1, next_at = ?, error = ? WHERE seq = ?",
    ...[nextAt, error, seq],
  );
}

export function endDelivery(
  db: Sql,
  seq: number,
  state: Exclude<DeliveryState, "open">,
  now: number,
  error: string | null,
): void {
  deliveries.update(db, { state, nextAt: 0, error, endedAt: now }, "seq = ?", seq);
}

export function markMaybeTwice(db: Sql, seq: number): void {
  deliveries.update(db, { maybeTwice: 1 }, "seq = ?", seq);
}

/** A failed delivery is tried again from where it was. @returns whether it had failed */
export function reopenDelivery(db: Sql, seq: number, now: number): boolean {
  const open = { state: "open", attempts: 0, nextAt: 0, error: null, endedAt: null, createdAt: now } as const;
  return deliveries.updated(db, open, "seq = ? AND state = 'failed'", seq);
}

/** Forgets a delivery that has ended. @returns whether there was one */
export function deleteDelivery(db: Sql, seq: number): boolean {
  const gone = deliveries.deleted(db, "seq = ? AND state IN ('done', 'failed')", seq) > 0;
  if (gone) deleteLostParts(db);
  return gone;
}

/** Forgets those that ended, but the newest of each kind of end. */
export function trimDeliveries(db: Sql, keepDone: number, keepFailed: number): void {
  const trim = (state: DeliveryState, keep: number) => {
    const last = "SELECT seq FROM perdure_delivery WHERE state = ? ORDER BY seq DESC LIMIT 1 OFFSET (SELECT ?)";
    return deliveries.deleted(db, `state = ? AND seq <= (${last})`, state, state, keep);
  };
  if (trim("done", keepDone) + trim("failed", keepFailed) > 0) deleteLostParts(db);
}

/** For `erase()`: all that is known of sessions, of messages and of turns. @returns how many */
export function eraseDeliveries(db: Sql, sessions: string, messageIds: string, turnIds: string): number {
  const inList = "IN (SELECT value FROM json_each(?))";
  const where = `session ${inList} OR message_id ${inList} OR answer_id ${inList} OR turn_id ${inList}`;
  const gone = deliveries.deleted(db, where, sessions, messageIds, messageIds, turnIds);
  if (gone > 0) deleteLostParts(db);
  return gone;
}

function deleteLostParts(db: Sql): void {
  parts.delete(db, "delivery NOT IN (SELECT seq FROM perdure_delivery)");
}
