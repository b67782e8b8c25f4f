import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { Identity } from "../../base/identity.ts";
import { type MessageInput, toMessages } from "../../message/input.ts";
import { sameJson, tryParseJson } from "../../base/json.ts";
import type { UIMessage } from "../../message/types.ts";
import { MAX_ID_LENGTH, parseMessages } from "../../message/validate.ts";
import { type DeliverTo, deliverTurn } from "../../store/delivery.ts";
import {
  deleteSubmissionRow,
  deleteSubmissionRows,
  explainSubmission,
  insertSubmission,
  listSubmissionRows,
  readSubmission,
  submissionByKey,
  type SubmissionRow,
  type SubmissionStatus,
} from "../../store/submission.ts";
import { cancelTurn, isOpen, readTurn } from "../../store/turn.ts";
import { accept, givenIdentity } from "./accept.ts";
import type { Engine } from "../engine/engine.ts";

const DEFAULT_LIMIT = 100;

/** How to submit. */
export interface SubmitOptions {
  /** The caller's name for this piece of work: submitting it again is harmless. */
  readonly idempotencyKey?: string;
  /** The submission's own name. Default: a new one. */
  readonly submissionId?: string;
  /** JSON that is kept with the submission, for whoever looks at it later. */
  readonly metadata?: unknown;
  /** Its conversation. Default: that of the running turn, else the current one. */
  readonly session?: string;
  /** For whom it is. Stored with the turn and its messages. */
  readonly identity?: Identity;
  /** Where the answer is delivered. Default: to the place that the conversation belongs to, if it belongs to one. */
  readonly deliverTo?: DeliverTo;
}

/** Of submissions of the framework's own. */
interface Bounded {
  /** Something else bounds how many of these there are. */
  readonly isBounded?: boolean;
}

/** What submitting says. */
export interface SubmitResult {
  readonly submissionId: string;
  /** The id of the turn. */
  readonly requestId: string;
  readonly status: SubmissionStatus;
  /** False: it was accepted before, and nothing has happened now. */
  readonly accepted: boolean;
}

/** A submission and what became of it. Times are milliseconds since the epoch. */
export interface Submission {
  readonly submissionId: string;
  readonly requestId: string;
  readonly idempotencyKey: string | undefined;
  readonly status: SubmissionStatus;
  readonly messages: readonly UIMessage[];
  readonly metadata: unknown;
  /** Why it failed, or was cancelled. */
  readonly error: string | undefined;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  readonly settledAt: number | undefined;
}

/**
 * Accepts messages and the turn that answers them, in one commit or the caller's, and does not wait. The messages join the
 * conversation when the turn starts. The same key or id again means the first one, if roles and parts are the same; message ids
 * and metadata may differ, since retries make new ones.
 * @throws PerdureError `bad_input`, `too_large`, or `conflict` for a key or id of something else. Nothing has changed then.
 */
export function submitMessages(all: Engine, input: MessageInput, options: SubmitOptions & Bounded = {}): SubmitResult {
  const { host } = all;
  const messages = toMessages(input);
  if (messages.length === 0)
    throw new PerdureError("bad_input", "There is nothing to submit. Pass at least one message.");
  const idempotencyKey = checkId("idempotencyKey", options.idempotencyKey);
  const submissionId = checkId("submissionId", options.submissionId);
  const identity = givenIdentity(options);
  const known = findKnown(all, idempotencyKey, submissionId);
  if (known !== undefined) {
    if (!sameContent(messagesOf(known.messages), messages)) throw conflict(known, "other messages");
    return toResult(known, false);
  }
  const { session = all.session, metadata, isBounded, deliverTo } = options;
  const id = submissionId ?? newId("sub");
  const turn = accept(all, {
    ...{ session, identity, isBounded },
    input: { kind: "messages", messages, joins: "at-start" },
    also: (row) => {
      const { id: turnId, createdAt } = row;
      insertSubmission(host, {
        ...{ id, turnId, createdAt, idempotencyKey: idempotencyKey ?? null, messages: JSON.stringify(messages) },
        metadata: metadata === undefined ? null : (JSON.stringify(metadata) ?? null),
      });
      if (deliverTo !== undefined) deliverTurn(host, row, deliverTo);
    },
  });
  // It may have started already.
  const status = readSubmission(host, id)?.status ?? "pending";
  return { submissionId: id, requestId: turn.id, status, accepted: true };
}

/** A submission, or undefined when there is none of this id. */
export function inspectSubmission({ host }: Pick<Engine, "host">, submissionId: string): Submission | undefined {
  const row = readSubmission(host, submissionId);
  return row && toSubmission(row);
}

/** The newest submissions first, at most `limit` (100), of one or several statuses if given. */
export function listSubmissions(
  { host }: Pick<Engine, "host">,
  options: { readonly status?: SubmissionStatus | readonly SubmissionStatus[]; readonly limit?: number } = {},
): Submission[] {
  const { status = [], limit = DEFAULT_LIMIT } = options;
  if (!Number.isInteger(limit) || limit < 1)
    throw new PerdureError("bad_input", "`limit` must be a whole number above 0.");
  return listSubmissionRows(host, typeof status === "string" ? [status] : status, limit).map(toSubmission);
}

/** Stops a submission for good; `reason` is kept. Stored first, so it survives a crash. @returns false if unknown or ended. */
export function cancelSubmission(all: Engine, submissionId: string, reason?: string): boolean {
  const row = readSubmission(all.host, submissionId);
  const turn = row === undefined ? undefined : readTurn(all.host, row.turnId);
  if (turn === undefined || !isOpen(turn)) return false;
  all.commit(() => {
    if (reason !== undefined) explainSubmission(all.host, submissionId, reason);
    cancelTurn(all.host, turn.seq);
  });
  return all.cancel(turn.id);
}

/** Forgets an ended submission; its key and id may be used again. False when it is unknown or has not ended. */
export function deleteSubmission({ host }: Pick<Engine, "host">, submissionId: string): boolean {
  return deleteSubmissionRow(host, submissionId);
}

/** Forgets submissions that ended before `olderThan` (milliseconds since the epoch, or a date). @returns how many. */
export function deleteSubmissions(
  { host }: Pick<Engine, "host">,
  options: { readonly olderThan: number | Date },
): number {
  const olderThan = Number(options.olderThan);
  if (!Number.isFinite(olderThan)) throw new PerdureError("bad_input", "`olderThan` must be a time.");
  return deleteSubmissionRows(host, olderThan);
}

function findKnown(all: Engine, key: string | undefined, id: string | undefined): SubmissionRow | undefined {
  const byKey = key === undefined ? undefined : submissionByKey(all.host, key);
  const byId = id === undefined ? undefined : readSubmission(all.host, id);
  if (byKey !== undefined && id !== undefined && byKey.id !== id) throw conflict(byKey, "another submission id");
  if (byId !== undefined && key !== undefined && byId.idempotencyKey !== key) throw conflict(byId, "another key");
  return byKey ?? byId;
}

function conflict(known: SubmissionRow, what: string): PerdureError {
  return new PerdureError("conflict", `"${known.id}" was submitted before with ${what}. Use a new key or id.`);
}

function checkId(name: string, id: string | undefined): string | undefined {
  if (id === undefined || (id !== "" && id.length <= MAX_ID_LENGTH && id.isWellFormed())) return id;
  throw new PerdureError("bad_input", `\`${name}\` must be text of 1 to ${MAX_ID_LENGTH} characters.`);
}

function sameContent(a: readonly UIMessage[], b: readonly UIMessage[]): boolean {
  const content = ({ role, parts }: UIMessage) => ({ role, parts });
  // What was deleted since is not known any more: whatever comes under its key is taken for it.
  const known = b.map((one, i) => (a[i]?.parts.length === 0 ? { ...one, parts: [] } : one));
  return sameJson(a.map(content), known.map(content));
}

function messagesOf(json: string): UIMessage[] {
  return parseMessages(tryParseJson(json));
}

function toResult(row: SubmissionRow, accepted: boolean): SubmitResult {
  return { submissionId: row.id, requestId: row.turnId, status: row.status, accepted };
}

function toSubmission(row: SubmissionRow): Submission {
  return {
    submissionId: row.id,
    requestId: row.turnId,
    idempotencyKey: row.idempotencyKey ?? undefined,
    status: row.status,
    messages: messagesOf(row.edited ?? row.messages),
    metadata: row.metadata === null ? undefined : tryParseJson(row.metadata),
    error: row.error ?? undefined,
    createdAt: row.createdAt,
    startedAt: row.startedAt ?? undefined,
    settledAt: row.settledAt ?? undefined,
  };
}
