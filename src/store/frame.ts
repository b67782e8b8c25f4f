import type { Sql } from "../port.ts";
import { tableOf } from "./table.ts";

/**
 * `perdure_frame`: what requests to models had beside the stored conversation, each text once, named by its content: `tools` and
 * `settings` as JSON, `instructions`, `message` for what the model was shown otherwise than it is stored, and `frame`, which names
 * the three of a request. Messages belong to a session, the rest to the agent (`session` is empty).
 */
export const frameSchema: readonly string[] = [
  `CREATE TABLE perdure_frame (
    hash TEXT NOT NULL,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (hash, session)
  ) STRICT, WITHOUT ROWID`,
];

/** What a call was sent: its frame, and how its messages are found (`model/request-book.ts`). Since migration 23. */
export const callRequestSchema: readonly string[] = [
  "ALTER TABLE perdure_usage ADD COLUMN frame TEXT",
  "ALTER TABLE perdure_usage ADD COLUMN request TEXT",
];

/** One text. */
export interface FrameRow {
  readonly hash: string;
  readonly session: string;
  readonly kind: "frame" | "instructions" | "tools" | "settings" | "message";
  readonly body: string;
}

const frames = tableOf<FrameRow>()("perdure_frame", "hash session kind body");

/** Adds a text, if it is not there. */
export function addFrame(db: Sql, row: FrameRow): void {
  frames.insert(db, row, "ON CONFLICT DO NOTHING");
}

/** A text by its name. @param session of which it is, or whose it may be */
export function readFrame(db: Sql, hash: string, session = ""): FrameRow | undefined {
  return frames.one(db, "hash = ? AND session = ?", hash, session);
}

/** Forgets what models were shown of sessions otherwise than it is stored; without a list, of all. */
export function deleteMessageFrames(db: Sql, sessions?: readonly string[]): void {
  if (sessions === undefined) return frames.delete(db, "session <> ''");
  frames.delete(db, "session IN (SELECT value FROM json_each(?))", JSON.stringify(sessions));
}

/** Forgets texts that no call is known to have been sent any more. Costs a look at all calls. */
export function deleteLostFrames(db: Sql): void {
  const used = "SELECT DISTINCT frame FROM perdure_usage WHERE frame IS NOT NULL";
  frames.delete(db, `kind = 'frame' AND hash NOT IN (${used})`);
  const named =
    "SELECT part.value FROM perdure_frame AS whole, json_each(whole.body) AS part WHERE whole.kind = 'frame'";
  frames.delete(db, `session = '' AND kind <> 'frame' AND hash NOT IN (${named})`);
}

/** A call of a model, as far as it says what was sent. */
export interface RequestRow {
  readonly seq: number;
  readonly id: string;
  readonly session: string;
  readonly turnId: string | null;
  readonly turnSeq: number | null;
  readonly step: number;
  readonly attempt: number;
  readonly purpose: string;
  readonly model: string;
  readonly status: string;
  readonly tokens: number;
  readonly input: number | null;
  readonly output: number | null;
  readonly cacheRead: number | null;
  readonly cost: number | null;
  readonly errorClass: string | null;
  readonly startedAt: number;
  readonly settledAt: number | null;
  readonly requestDigest: string | null;
  readonly frame: string | null;
  readonly request: string | null;
}

const requests = tableOf<RequestRow>()(
  "perdure_usage",
  "seq id session turnId turnSeq step attempt purpose model status tokens input output cacheRead cost errorClass",
  "startedAt settledAt requestDigest frame request",
);

export function readRequest(db: Sql, id: string): RequestRow | undefined {
  return requests.one(db, "id = ?", id);
}

export function readRequestAt(db: Sql, seq: number): RequestRow | undefined {
  return requests.one(db, "seq = ?", seq);
}

/** The calls of a turn, whatever they were for, oldest first. */
export function requestsOfTurn(db: Sql, turnId: string): RequestRow[] {
  return requests.select(db, "WHERE turn_id = ? ORDER BY seq", turnId);
}

/** The call for a turn of the same session that came before. */
export function requestBefore(db: Sql, { session, seq }: Pick<RequestRow, "session" | "seq">): RequestRow | undefined {
  return requests.one(db, "session = ? AND purpose = 'turn' AND seq < ? ORDER BY seq DESC LIMIT 1", session, seq);
}

/** What a call was sent, once that is known. */
export type SentFacts = Pick<RequestRow, "requestDigest" | "frame" | "request">;

/** Says what a call under way is sent. */
export function writeRequest(db: Sql, id: string, sent: SentFacts): void {
  requests.update(db, sent, "id = ?", id);
}
