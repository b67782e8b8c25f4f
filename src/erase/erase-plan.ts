import { sha256 } from "../base/hash.ts";
import { PerdureError } from "../base/error.ts";
import type { AgentHost } from "../port.ts";
import { compactionPlaces } from "../store/compaction.ts";
import { bodiesOf, messagesOfSessions, messagesOfSubject, sessionsOfSubject } from "../store/erase.ts";
import { newestMessage } from "../store/message.ts";
import { findOnPath } from "../store/search.ts";
import { readSession, viewsOf } from "../store/session.ts";
import { FILE_NAMES } from "../media/file-references.ts";
import { heldMessageIdsOf } from "../store/delivery.ts";
import { type FilesHost, filesOf } from "../media/files.ts";

/** What erasing asks of a host: any agent's has it. */
export type EraseHost = FilesHost & Pick<AgentHost, "blank" | "breathe" | "path" | "remove" | "scrub" | "erased">;

/** What to erase: a session, or all that belongs to a subject (a person, a tenant). */
export type EraseScope = { readonly session: string } | { readonly subject: string };

/** What was erased, for the receipt. A subject is known by its SHA-256 in hex only. */
export type ErasedScope = { readonly session: string } | { readonly subjectDigest: string };

/** Rows, numbers and steps that are looked at before others have their turn. */
const SLICE_ROWS = 16;
const SLICE_SEQS = 2_000;
const SLICE_STEPS = 5_000;

const CALLS = /"toolCallId":("(?:[^"\\]|\\.)*")/g;

/** What is to go, found before anything is changed. */
export interface ErasePlan {
  readonly scope: ErasedScope;
  /** With their views. */
  readonly sessions: readonly string[];
  /** Messages of those sessions that nobody else shows. */
  readonly own: readonly number[];
  /** Messages of a subject in other sessions. */
  readonly single: readonly number[];
  readonly shared: readonly { readonly session: string; readonly count: number }[];
  /** Compactions that tell of a message of `single`. */
  readonly compactions: readonly number[];
  readonly messageIds: readonly string[];
  readonly toolCallIds: readonly string[];
  readonly files: readonly string[];
  readonly newest: number;
}

/** The sessions that go, with their views. @throws PerdureError `not_found` */
export function sessionsIn(host: EraseHost, scope: EraseScope): string[] {
  const owners = "session" in scope ? [ownerOf(host, scope.session)] : sessionsOfSubject(host, scope.subject);
  return owners.flatMap((id) => [id, ...viewsOf(host, id).map((view) => view.id)]);
}

/** Finds all that is to go. Long work lets others have their turn. @throws PerdureError `not_found` */
export async function planErase(host: EraseHost, scope: EraseScope): Promise<ErasePlan> {
  const newest = newestMessage(host);
  const sessions = sessionsIn(host, scope);
  const { own, shared } = messagesOfSessions(host, sessions);
  const ownSet = new Set(own);
  const single: number[] = [];
  if ("subject" in scope) {
    for (let after = 0; after < newest; after += SLICE_SEQS) {
      const found = messagesOfSubject(host, scope.subject, after, after + SLICE_SEQS);
      single.push(...found.filter((seq) => !ownSet.has(seq)));
      await host.breathe();
    }
  }
  const traces = await readTraces(host, [...own, ...single]);
  // What was said at a messenger and waits for its turn is in no message yet.
  const waiting = "subject" in scope ? heldMessageIdsOf(host, scope.subject) : [];
  return {
    ...{ sessions, own, single, shared, newest, ...traces, messageIds: [...traces.messageIds, ...waiting] },
    scope: "session" in scope ? { session: scope.session } : { subjectDigest: await sha256(scope.subject) },
    compactions: await compactionsOver(host, single),
  };
}

/** What other rows and files the bodies of messages name. */
async function readTraces(
  host: EraseHost,
  seqs: readonly number[],
): Promise<Pick<ErasePlan, "messageIds" | "toolCallIds" | "files">> {
  const messageIds: string[] = [];
  const toolCallIds = new Set<string>();
  const names = new Set<string>();
  for (let at = 0; at < seqs.length; at += SLICE_ROWS) {
    for (const { id, body } of bodiesOf(host, seqs.slice(at, at + SLICE_ROWS))) {
      messageIds.push(id);
      for (const [, quoted = '""'] of body.matchAll(CALLS)) toolCallIds.add(JSON.parse(quoted) as string);
      for (const [name] of body.matchAll(FILE_NAMES)) names.add(name);
    }
    await host.breathe();
  }
  const files = filesOf(host);
  const known = [...names].filter((name) => files.info(name) !== undefined);
  // Bytes whose message never came to refer to them may be of one of these.
  const lost = files.list().filter(({ pending }) => pending);
  return {
    messageIds,
    toolCallIds: [...toolCallIds],
    files: [...new Set([...known, ...lost.map(({ name }) => name)])],
  };
}

/** A summary tells of all that stands before the message that it ends with. */
async function compactionsOver(host: EraseHost, seqs: readonly number[]): Promise<number[]> {
  if (seqs.length === 0) return [];
  const over: number[] = [];
  for (const { seq, at } of compactionPlaces(host)) {
    let next: number | null = at;
    while (next !== null) {
      const piece = findOnPath(host, next, seqs, SLICE_STEPS);
      next = piece.found.length > 0 ? null : piece.next;
      if (piece.found.length > 0) over.push(seq);
      await host.breathe();
    }
  }
  return over;
}

function ownerOf(host: EraseHost, id: string): string {
  const row = host.blank ? undefined : readSession(host, id);
  if (row === undefined) throw new PerdureError("not_found", `There is no session "${id}" to erase.`);
  return row.viewOf ?? row.id;
}
