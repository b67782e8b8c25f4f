import { errorText, PerdureError } from "../base/error.ts";
import { newId } from "../base/id.ts";
import { tryParseJson } from "../base/json.ts";
import { sha256 } from "../base/hash.ts";
import { deleteCell, listCells, writeCell } from "../store/cell.ts";
import { deleteCompaction } from "../store/compaction.ts";
import { deleteMessages, deleteTraces, forgetWhoAsked, hasOpenTurns, subjectsIn } from "../store/erase.ts";
import { deleteMessage, giveAwayMessages, newestMessage, readMessageAt } from "../store/message.ts";
import { compactSearchIndex, countSearchRows } from "../store/search.ts";
import { currentSession, deleteSessionRow, listSessionLines, setCurrent } from "../store/session.ts";
import { openTurns, settleTurn } from "../store/turn.ts";
import { deleteContext } from "../memory/lifecycle.ts";
import {
  type ErasedScope,
  type EraseHost,
  type ErasePlan,
  type EraseScope,
  planErase,
  sessionsIn,
} from "./erase-plan.ts";
import { unnamedFiles } from "../media/file-references.ts";
import { filesOf } from "../media/files.ts";
import { titleTriesKey } from "../session/titles.ts";

/** What erasing needs of the agent. */
export interface EraseDeps {
  readonly host: EraseHost;
  /** Ends the turns of these sessions, waiting ones included; resolves when none of them runs. May be slow. */
  stop(sessions: readonly string[]): Promise<void>;
  /** The rows are gone, and these sessions with them: what is in memory is old, and clients are to be told. Must not throw. */
  erased(sessions: readonly string[]): void;
}

/** What was erased, without anything of its content. Stored for good. */
export interface EraseReceipt {
  readonly id: string;
  /** When the rows were deleted, in milliseconds since the epoch. */
  readonly at: number;
  readonly scope: ErasedScope;
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
  /** What actions returned. */
  readonly actions: number;
  /** What was delivered at messengers, or had to be. What stands there already stays there. */
  readonly deliveries: number;
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
const OLD_PAGES = "old pages of the database file";
const MAX_TRIES = 5;

const ALWAYS_KEPT = [
  {
    what: "the agent's state, its files, its own tables, schedules, queue and fibers, and blocks that sessions share",
    why: "they belong to no session; the app that wrote them has to erase them",
  },
  { what: "sums of tokens and cost", why: "they are numbers without content" },
];

/**
 * Erases a session, or all sessions and messages of a subject: rows in one transaction, then files and children. {@link
 * finishErase} completes what a crash cut off. What other sessions show stays and is listed. @returns a receipt, which is stored
 * too.
 * @throws PerdureError `bad_input`, `not_found` for a session that is not there, `bad_state` when its turns do not end.
 */
export async function erase(deps: EraseDeps, scope: EraseScope): Promise<EraseReceipt> {
  const { host } = deps;
  checkScope(scope);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    await deps.stop(sessionsIn(host, scope));
    const plan = await planErase(host, scope);
    const intent = host.tx(() => eraseRows(host, plan));
    if (intent === undefined) continue;
    deps.erased(plan.sessions);
    await host.durable();
    return finish(host, intent);
  }
  throw new PerdureError("bad_state", "The session kept changing while it was erased. Stop it first.");
}

/** Does the rest of what a crash cut off. To be called at every start. */
export async function finishErase(host: EraseHost): Promise<void> {
  if (host.blank) return;
  for (const { value } of listCells(host, INTENT)) {
    const intent = tryParseJson(value) as Intent | undefined;
    if (intent !== undefined) await finish(host, intent);
  }
}

/** What the host remembers of it: no name. */
async function scopeDigest(scope: ErasedScope): Promise<string> {
  return "session" in scope ? `session:${await sha256(scope.session)}` : `subject:${scope.subjectDigest}`;
}

/**
 * Erases in rows of before what was erased since. Nobody else works on them; turns that are under way there end. Where nothing of
 * it is left, nothing is done. @param scope as {@link AgentHost.erased} was told
 */
export async function eraseAgain(host: EraseHost, scope: string): Promise<void> {
  const [kind, digest] = scope.split(":");
  const names =
    kind === "session" ? listSessionLines(host, Number.MAX_SAFE_INTEGER).map(({ id }) => id) : subjectsIn(host);
  for (const name of names) {
    if ((await sha256(name)) !== digest) continue;
    const stop = (sessions: readonly string[]) => {
      const open = openTurns(host).filter(({ session }) => sessions.includes(session));
      const now = host.clock.now();
      host.tx(() => open.forEach(({ seq }) => settleTurn(host, seq, "aborted", null, now)));
      return Promise.resolve();
    };
    await erase({ host, stop, erased: () => undefined }, kind === "session" ? { session: name } : { subject: name });
  }
}

/** What was erased so far, the newest first. */
export function listReceipts(host: EraseHost): EraseReceipt[] {
  if (host.blank) return [];
  const receipts = listCells(host, RECEIPT).map(({ value }) => JSON.parse(value) as EraseReceipt);
  return receipts.sort((a, b) => b.at - a.at);
}

/** Deletes all rows, in the caller's transaction. @returns undefined when something was said or begun since the plan. */
function eraseRows(host: EraseHost, plan: ErasePlan): Intent | undefined {
  const { sessions, own, single } = plan;
  if (newestMessage(host) !== plan.newest || hasOpenTurns(host, sessions)) return undefined;
  const searchRows = countSearchRows(host, [...own, ...single]);
  giveAwayMessages(host, sessions);
  deleteMessages(host, own);
  for (const seq of single) {
    const row = readMessageAt(host, seq);
    if (row === undefined) continue;
    forgetWhoAsked(host, seq);
    deleteMessage(host, seq, row.parent);
  }
  for (const seq of plan.compactions) deleteCompaction(host, seq);
  const { runs, ...rows } = deleteTraces(host, plan);
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
async function finish(host: EraseHost, intent: Intent): Promise<EraseReceipt> {
  await host.erased?.(await scopeDigest(intent.receipt.scope));
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
  const { sessions, messages } = intent.receipt;
  if (host.scrub === undefined) kept.push({ what: OLD_PAGES, why: "this host keeps them by its own rules" });
  else if (sessions + messages > 0) await attempt(OLD_PAGES, () => host.scrub?.() ?? Promise.resolve());
  const receipt: EraseReceipt = { ...intent.receipt, files: unnamed.size, kept, done: true };
  // Last: what is cut off before this is done again.
  host.tx(() => {
    deleteCell(host, INTENT + receipt.id);
    writeCell(host, RECEIPT + receipt.id, JSON.stringify(receipt));
  });
  await host.durable();
  return receipt;
}

function checkScope(scope: EraseScope): void {
  const given: { session?: unknown; subject?: unknown } = scope;
  const values = [given.session, given.subject].filter((value) => value !== undefined);
  if (values.length === 1 && typeof values[0] === "string" && values[0] !== "") return;
  throw new PerdureError("bad_input", "Say what to erase: either { session: id } or { subject: name }.");
}
