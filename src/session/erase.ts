import { errorText, PerdureError } from "../error.ts";
import { newId } from "../id.ts";
import { tryParseJson } from "../message/json.ts";
import type { AgentHost } from "../port.ts";
import { dropLostApprovals } from "../store/approval.ts";
import { deleteCell, listCells, writeCell } from "../store/cell.ts";
import { compactionPlaces, deleteCompaction } from "../store/compaction.ts";
import {
  bodiesAfter,
  bodiesOf,
  deleteMessages,
  deleteTraces,
  giveAwayMessages,
  hasOpenTurns,
  isNamedBesideMessages,
  messagesOfSessions,
  messagesOfSubject,
  newestMessage,
  sessionsOfSubject,
} from "../store/erase.ts";
import { deleteMessage, readMessageAt } from "../store/message.ts";
import { compactSearchIndex, countSearchRows, findOnPath } from "../store/search.ts";
import {
  currentSession,
  deleteSessionRow,
  listSessionLines,
  readSession,
  setCurrent,
  viewsOf,
} from "../store/session.ts";
import { deleteContext } from "./blocks/lifecycle.ts";
import { filesOf } from "./files.ts";
import { titleTriesKey } from "./titles.ts";

/** What to erase: a session, or all that belongs to a subject (a person, a tenant). */
export type EraseScope = { readonly session: string } | { readonly subject: string };

/** What erasing needs of the agent. */
export interface EraseDeps {
  readonly host: AgentHost;
  /** Ends the turns of these sessions, those that wait included; resolves when none of them runs. May be slow. */
  stop(sessions: readonly string[]): Promise<void>;
  /** The rows are gone, and these sessions with them: what is in memory is old, and clients are to be told. Must not throw. */
  erased(sessions: readonly string[]): void;
}

/** What was erased, without anything of its content. Stored for good. */
export interface EraseReceipt {
  readonly id: string;
  /** When the rows were deleted, in milliseconds since the epoch. */
  readonly at: number;
  /** A subject is known by its SHA-256 in hex only. */
  readonly scope: { readonly session: string } | { readonly subjectDigest: string };
  readonly sessions: number;
  readonly messages: number;
  readonly compactions: number;
  readonly searchRows: number;
  readonly streamChunks: number;
  readonly files: number;
  readonly blocks: number;
  readonly turns: number;
  readonly toolCalls: number;
  readonly submissions: number;
  /** Model calls whose details are gone; what they cost stays in the totals. */
  readonly usageCalls: number;
  /** Children that worked for it, and are deleted. */
  readonly runs: readonly string[];
  /** What was not erased, and why. */
  readonly kept: readonly { readonly what: string; readonly why: string }[];
  /** False while files and children are still being deleted. */
  readonly done: boolean;
}

/** What is left to do after the rows are gone, stored with them. */
interface Intent {
  readonly receipt: EraseReceipt;
  readonly files: readonly string[];
  readonly runs: readonly { readonly runId: string; readonly className: string }[];
}

const INTENT = "erase:";
const RECEIPT = "receipt:";
const MAX_TRIES = 5;
/** Rows that are looked at before others have their turn. */
const SLICE_ROWS = 16;
const SLICE_SEQS = 2_000;
const SLICE_STEPS = 5_000;

const NAMES = /[0-9a-f]{64}/g;
const CALLS = /"toolCallId":("(?:[^"\\]|\\.)*")/g;

const ALWAYS_KEPT = [
  {
    what: "the agent's state, its own tables, schedules, queue and fibers, and blocks that sessions share",
    why: "they belong to no session; the app that wrote them has to erase them",
  },
  { what: "sums of tokens and cost", why: "they are numbers without content" },
];

/**
 * Erases a session, or all sessions and messages of a subject: rows in one transaction, then files and children. What a
 * crash cuts off is done by {@link finishErase}. What other sessions show of an erased session stays and is listed.
 * @returns a receipt, which is stored too.
 * @throws PerdureError `bad_input`, `not_found` for a session that is not there, `bad_state` when its turns do not end.
 */
export async function erase(deps: EraseDeps, scope: EraseScope): Promise<EraseReceipt> {
  const { host } = deps;
  checkScope(scope);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const plan = await makePlan(host, scope);
    await deps.stop(plan.sessions);
    const again = await makePlan(host, scope);
    const intent = host.tx(() => eraseRows(host, again));
    if (intent === undefined) continue;
    deps.erased(again.sessions);
    await host.durable();
    return finish(host, intent);
  }
  throw new PerdureError("bad_state", "The session was written to again and again while it was erased. Stop it first.");
}

/** Does the rest of what a crash cut off. To be called at every start. */
export async function finishErase(host: AgentHost): Promise<void> {
  if (host.blank) return;
  for (const { value } of listCells(host, INTENT)) {
    const intent = tryParseJson(value) as Intent | undefined;
    if (intent !== undefined) await finish(host, intent);
  }
}

/** What was erased so far, the newest first. */
export function listReceipts(host: AgentHost): EraseReceipt[] {
  if (host.blank) return [];
  const receipts = listCells(host, RECEIPT).map(({ value }) => JSON.parse(value) as EraseReceipt);
  return receipts.sort((a, b) => b.at - a.at);
}

/** What is to go, found before anything is changed. */
interface Plan {
  readonly scope: EraseReceipt["scope"];
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

async function makePlan(host: AgentHost, scope: EraseScope): Promise<Plan> {
  const newest = newestMessage(host);
  const owners = "session" in scope ? [ownerOf(host, scope.session)] : sessionsOfSubject(host, scope.subject);
  const sessions = owners.flatMap((id) => [id, ...viewsOf(host, id).map((view) => view.id)]);
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
  return {
    ...{ sessions, own, single, shared, newest, ...traces },
    scope: "session" in scope ? { session: scope.session } : { subjectDigest: await digestOf(scope.subject) },
    compactions: await compactionsOver(host, single),
  };
}

/** What other rows and files the bodies of messages name. */
async function readTraces(
  host: AgentHost,
  seqs: readonly number[],
): Promise<Pick<Plan, "messageIds" | "toolCallIds" | "files">> {
  const messageIds: string[] = [];
  const toolCallIds = new Set<string>();
  const names = new Set<string>();
  for (let at = 0; at < seqs.length; at += SLICE_ROWS) {
    for (const { id, body } of bodiesOf(host, seqs.slice(at, at + SLICE_ROWS))) {
      messageIds.push(id);
      for (const [, quoted = '""'] of body.matchAll(CALLS)) toolCallIds.add(JSON.parse(quoted) as string);
      for (const [name] of body.matchAll(NAMES)) names.add(name);
    }
    await host.breathe();
  }
  const files = filesOf(host);
  return {
    messageIds,
    toolCallIds: [...toolCallIds],
    files: [...names].filter((name) => files.info(name) !== undefined),
  };
}

/** A summary tells of all that stands before the message that it ends with. */
async function compactionsOver(host: AgentHost, seqs: readonly number[]): Promise<number[]> {
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

/** Deletes all rows, in the caller's transaction. @returns undefined when something was said or begun since the plan. */
function eraseRows(host: AgentHost, plan: Plan): Intent | undefined {
  const { sessions, own, single } = plan;
  if (newestMessage(host) !== plan.newest || hasOpenTurns(host, sessions)) return undefined;
  const searchRows = countSearchRows(host, [...own, ...single]);
  giveAwayMessages(host, sessions);
  deleteMessages(host, own);
  for (const seq of single) {
    const row = readMessageAt(host, seq);
    if (row !== undefined) deleteMessage(host, seq, row.parent);
  }
  for (const seq of plan.compactions) deleteCompaction(host, seq);
  const { runs, ...rows } = deleteTraces(host, plan);
  dropLostApprovals(host);
  const before = listCells(host, "block:").length;
  const wasCurrent = sessions.includes(currentSession(host));
  for (const session of sessions) {
    deleteContext(host, session);
    deleteCell(host, `media:${session}`);
    deleteCell(host, titleTriesKey(session));
    deleteSessionRow(host, session);
  }
  const next = wasCurrent ? listSessionLines(host, 1)[0]?.id : undefined;
  if (next !== undefined) setCurrent(host, next);
  const receipt: EraseReceipt = {
    ...{ id: newId("erase"), at: host.clock.now(), scope: plan.scope, sessions: sessions.length },
    messages: own.length + single.length,
    ...rows,
    compactions: rows.compactions + plan.compactions.length,
    ...{ searchRows, files: 0, blocks: before - listCells(host, "block:").length },
    runs: runs.map(({ runId }) => runId),
    kept: [...plan.shared.map(sharedNote), ...ALWAYS_KEPT],
    done: false,
  };
  const intent: Intent = { receipt, files: plan.files, runs };
  writeCell(host, INTENT + receipt.id, JSON.stringify(intent));
  writeCell(host, RECEIPT + receipt.id, JSON.stringify(receipt));
  return intent;
}

function sharedNote({ session, count }: { session: string; count: number }): EraseReceipt["kept"][number] {
  return {
    what: `${count} ${count === 1 ? "message" : "messages"}`,
    why: `the session "${session}" shows them too; erase it as well`,
  };
}

/** Deletes children and files, and what deleted rows left in the files of the database. Can be repeated. */
async function finish(host: AgentHost, intent: Intent): Promise<EraseReceipt> {
  const kept = [...intent.receipt.kept];
  const attempt = async (what: string, work: () => Promise<void>) => {
    try {
      await work();
    } catch (thrown) {
      if (PerdureError.is(thrown, "agent_gone")) throw thrown;
      kept.push({ what, why: `it could not be deleted: ${errorText(thrown)}` });
    }
  };
  for (const { runId, className } of intent.runs)
    await attempt(`the child ${runId}`, () => host.remove([...host.path, { className, name: runId }]));
  const files = filesOf(host);
  const unnamed = await unnamedFiles(host, intent.files);
  for (const name of intent.files) {
    if (!unnamed.has(name)) {
      kept.push({ what: `the file ${name}`, why: "other messages refer to it" });
      continue;
    }
    await attempt(`the file ${name}`, async () => {
      files.forget(name);
      await files.deleteBytes(name);
    });
  }
  if (intent.receipt.searchRows > 0) compactSearchIndex(host);
  const receipt: EraseReceipt = { ...intent.receipt, files: unnamed.size, kept, done: true };
  host.tx(() => {
    deleteCell(host, INTENT + receipt.id);
    writeCell(host, RECEIPT + receipt.id, JSON.stringify(receipt));
  });
  await host.durable();
  return scrub(host, receipt);
}

/** Last, so that nothing that was deleted before it is left; said in the receipt when it cannot be done. */
async function scrub(host: AgentHost, receipt: EraseReceipt): Promise<EraseReceipt> {
  let why = "this host keeps them by its own rules";
  try {
    if (host.scrub !== undefined) {
      await host.scrub();
      return receipt;
    }
  } catch (thrown) {
    if (PerdureError.is(thrown, "agent_gone")) throw thrown;
    why = `they could not be rewritten: ${errorText(thrown)}`;
  }
  const told = { ...receipt, kept: [...receipt.kept, { what: "old pages of the database file", why }] };
  host.tx(() => writeCell(host, RECEIPT + receipt.id, JSON.stringify(told)));
  return told;
}

/** Which of these files no row names any more. */
async function unnamedFiles(host: AgentHost, names: readonly string[]): Promise<Set<string>> {
  const left = new Set(names.filter((name) => !isNamedBesideMessages(host, name)));
  for (let after = 0; left.size > 0;) {
    const rows = bodiesAfter(host, after, SLICE_ROWS);
    for (const { body } of rows) for (const [name] of body.matchAll(NAMES)) left.delete(name);
    const last = rows.at(-1)?.seq;
    if (last === undefined) break;
    after = last;
    await host.breathe();
  }
  return left;
}

function ownerOf(host: AgentHost, id: string): string {
  const row = host.blank ? undefined : readSession(host, id);
  if (row === undefined) throw new PerdureError("not_found", `There is no session "${id}" to erase.`);
  return row.viewOf ?? row.id;
}

function checkScope(scope: EraseScope): void {
  const given: { session?: unknown; subject?: unknown } = scope;
  const values = [given.session, given.subject].filter((value) => value !== undefined);
  if (values.length === 1 && typeof values[0] === "string" && values[0] !== "") return;
  throw new PerdureError("bad_input", "Say what to erase: either { session: id } or { subject: name }.");
}

async function digestOf(subject: string): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subject)));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
