import type { AgentHost } from "../../port.ts";
import type { CallResult, EndedCall } from "../../ledger/charge.ts";
import type { OverBudgetAbove, PaidCall, ReservedAbove } from "../../ledger/ledger.ts";
import { type AgentRunRow, readAgentRun } from "../../store/agent-run.ts";
import { ownerIdOf } from "../../store/session.ts";
import type { UsageRow } from "../../store/usage.ts";
import { leafOf } from "../../wire/agent-path.ts";
import { parentPath } from "../children.ts";
import { detachedOf } from "./run-views.ts";
import type { OwnTurns } from "./own-turns.ts";

/*
 * Who pays for a run
 *
 * A model call made for a run is booked in the agent's own ledger and in those of all agents above it, along the chain of who
 * asked. It is reserved from the top down, so that what is booked below is booked above, and settled from the bottom up, so that
 * what is known above is stored below. The rows of a call are named by the runs between: `run/run/call`. A row above stays open
 * through every life there: whoever made the call tells its end, after a crash too, and the end of the run closes what is left.
 */

/** What an agent is told about the calls of a run that it asked for. */
export type CallNote =
  | { readonly kind: "reserve"; readonly call: PaidCall; readonly detached?: boolean }
  | { readonly kind: "settle"; readonly id: string; readonly result: CallResult }
  | { readonly kind: "release"; readonly id: string }
  /** These calls of the run `of` have ended so; others of it that are open were cut. */
  | { readonly kind: "close"; readonly of: string; readonly ended: readonly EndedCall[] };

/** What it answers. */
export type Booked = ReservedAbove | OverBudgetAbove;

/** The agent that keeps the books. */
interface Bookkeeper {
  readonly host: AgentHost;
  readonly turns: OwnTurns | undefined;
}

type CallOf = Pick<UsageRow, "id" | "turnId">;

const DONE: Booked = { ok: true, limited: false };
const SEPARATOR = "/";

/** Books what a child did for a run, here and above; may be repeated. @throws what the ledgers and the agents above throw */
export async function bookCall(books: Bookkeeper, runId: string, note: CallNote): Promise<Booked> {
  const run = books.host.blank ? undefined : readAgentRun(books.host, runId);
  const within = (id: string) => prefixOf(runId) + id;
  switch (note.kind) {
    case "reserve":
      return reserve(books, run, { ...note, call: { ...note.call, id: within(note.call.id) } });
    case "close": {
      const of = within(note.of);
      closeCalls(books, of, note.ended);
      return tell(books, run, { ...note, of });
    }
    case "settle":
    case "release": {
      const id = within(note.id);
      books.host.tx(() => {
        if (note.kind === "settle") books.turns?.ledger?.settle(id, note.result);
        else books.turns?.ledger?.release(id);
      }, "commit");
      return tell(books, run, { ...note, id });
    }
  }
}

/** A run has ended, in the transaction that stores it: calls of it whose end nobody told were cut. */
export function closeCallsOf(books: Bookkeeper, run: AgentRunRow): void {
  const of = prefixOf(run.runId);
  // All below that was waited for is over too, whether each agent on the way heard of it or not.
  const isOver = (call: CallOf) => call.turnId !== null || isOwn(of, call);
  if ((books.turns?.ledger?.closeCalls(of, isOver) ?? 0) === 0) return;
  books.host.afterTx((committed) => {
    // Who cannot be reached now closes them when it starts again, once the run that this agent works for is over.
    if (committed) void tell(books, run, { kind: "close", of, ended: [] }).catch(() => {});
  });
}

/** Whether the end of an open call is still to be told by another agent: it belongs to a run that goes on. */
export function isToldLater(host: AgentHost, { id, purpose }: Pick<UsageRow, "id" | "purpose">): boolean {
  if (purpose !== "agent-tool") return false;
  return readAgentRun(host, decodeURIComponent(id.slice(0, id.indexOf(SEPARATOR))))?.status === "running";
}

async function reserve(
  books: Bookkeeper,
  run: AgentRunRow | undefined,
  note: Extract<CallNote, { kind: "reserve" }>,
): Promise<Booked> {
  const { call } = note;
  // What nobody waits for may go on long after the turn that began it.
  const detached = note.detached === true || (run !== undefined && run.detached !== null);
  const above = await tell(books, run, { ...note, detached });
  const ledger = books.turns?.ledger;
  if (!above.ok || ledger === undefined) return above;
  const turn = detached || run === undefined || run.turnId === null ? undefined : { id: run.turnId };
  const session = run && sessionOf(books, run);
  const book = () => (ledger.knows(call.id) ? DONE : ledger.reserve({ ...call, turn, session, purpose: "agent-tool" }));
  const undo = () => tell(books, run, { kind: "release", id: call.id }).catch(() => {});
  try {
    const own = books.host.tx(book, "commit");
    if (own.ok) return { ok: true, limited: above.limited || ledger.limited };
    await undo();
    const { className, name } = leafOf(books.host.path);
    return { ...own, agent: `${className} "${name}"` };
  } catch (thrown) {
    await undo();
    throw thrown;
  }
}

/** The session that asked for the run, whichever has a turn now. Undefined where nothing is known of it. */
function sessionOf({ host, turns }: Bookkeeper, run: AgentRunRow): string | undefined {
  const asked = detachedOf(run)?.session ?? (run.turnId === null ? undefined : turns?.sessionOf(run.turnId));
  return asked === undefined ? undefined : ownerIdOf(host, asked);
}

/** Passes a note on to the agent that asked for the turn which asked for this run. */
async function tell({ host, turns }: Bookkeeper, run: AgentRunRow | undefined, note: CallNote): Promise<Booked> {
  const path = parentPath(host.path);
  if (path === undefined || run === undefined || run.turnId === null) return DONE;
  const above = turns?.runOf(run.turnId);
  return above === undefined ? DONE : ((await host.call(path, "bookAgentToolCall", [above, note])) as Booked);
}

function closeCalls({ host, turns }: Bookkeeper, of: string, ended: readonly EndedCall[]): void {
  const ledger = turns?.ledger;
  if (ledger === undefined) return;
  host.tx(() => {
    for (const { id, result } of ended) ledger.settle(of + id, result);
    ledger.closeCalls(of, (call) => isOwn(of, call));
  });
}

/** Whether the run itself made the call, and not one below it. */
function isOwn(of: string, { id }: CallOf): boolean {
  return !id.slice(of.length).includes(SEPARATOR);
}

function prefixOf(runId: string): string {
  return encodeURIComponent(runId) + SEPARATOR;
}
