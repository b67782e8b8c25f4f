import type { TurnRow } from "../../store/turn.ts";

/*
 * The life of a turn
 *
 *                ┌─────────────────────┐
 *   held ──► accepted ──► running ──► completed
 *     │          │           │   ├──► error
 *     │          │           │   └──► aborted
 *     └──────────┴───────────┘
 *        skipped / aborted
 *
 * A turn is a row from the moment it is accepted. `accepted` waits for its place: turns of a session run one at a time, in
 * the order of their rows unless they are moved; those of different sessions run side by side, up to a number. Until it
 * starts its input can be changed, moved or withdrawn (`inbox.ts`); or the running turn takes it in, and then it has
 * completed without a run (`steer.ts`). `held` is a continuation that waits for answers to tool calls; it gives way to others
 * and starts when the last answer is there. `running` has been started at least once: found in a new life it was cut off, and
 * is carried on from its stream log under the same id, so that clients simply resume. The four ends are final.
 *
 * A cancel is a mark on the row, not a state: it is stored before anything is done about it, and whoever looks
 * at the row next, in this life or another one, ends the turn.
 *
 * What happens to one that starts can be read in `conversation.ts`, and what it is while it runs in `turn.ts`.
 */

/** After so many attempts a turn that was cut may be what ended those lives. */
const SUSPECT_ATTEMPTS = 3;

/** What is known beside the rows. */
export interface MoveFacts {
  readonly now: number;
  /** No new work is begun. */
  readonly stopped: boolean;
  /** The sessions that have a turn running in this life. */
  readonly running: ReadonlySet<string>;
  /** How many turns may run at once. */
  readonly width: number;
  /** Ids of turns that run with no other beside them: see {@link suspects}. */
  readonly alone: ReadonlySet<string>;
  /** Whether a continuation may start, must wait for more answers, or has nothing left to continue. */
  holds(turn: TurnRow): "ready" | "waiting" | "moot";
}

/** What to do next. */
interface NextMoves {
  /** These end without a run. What else there is to do may change with it: ask again. */
  readonly settle: readonly { readonly turn: TurnRow; readonly status: "aborted" | "skipped" }[];
  /** These may start, or go on after they were cut off, in this order. */
  readonly start: readonly TurnRow[];
  /** Nothing else before this time, or before something changes. */
  readonly until: number | null;
}

/** Decides by the open turns, in their order. Pure. */
export function nextMoves(open: readonly TurnRow[], facts: MoveFacts): NextMoves {
  // Whoever stopped a turn that waits hears of it at once, whatever else is going on. One that was running still has
  // an answer to keep, so it ends where its log is read.
  const unwanted = open.filter((turn) => turn.cancelled === 1 && turn.status !== "running");
  if (unwanted.length > 0)
    return { settle: unwanted.map((turn) => ({ turn, status: "aborted" })), start: [], until: null };
  if (facts.stopped) return { settle: [], start: [], until: null };
  const moves = [...Map.groupBy(open, ({ session }) => session)]
    .filter(([session]) => !facts.running.has(session))
    .map(([, turns]) => nextIn(turns, facts));
  const settle = moves.flatMap(({ moot }) => (moot === undefined ? [] : [{ turn: moot, status: "skipped" as const }]));
  const times = moves.flatMap((move) => move.until ?? []);
  const until = times.length === 0 ? null : Math.min(...times);
  const ready = new Set(moves.flatMap(({ start }) => start ?? []));
  // One that was begun goes first, wherever it stands: it has waited before.
  const ordered = open.filter((turn) => ready.has(turn)).sort((a, b) => Number(isCut(b)) - Number(isCut(a)));
  return { settle, start: fitting(open, ordered, facts), until };
}

/** Turns of an earlier life that may have killed it: each goes on alone, or it would use up the attempts of its neighbours. */
export function suspects(open: readonly TurnRow[]): Set<string> {
  return new Set(open.filter((turn) => isCut(turn) && turn.attempts >= SUSPECT_ATTEMPTS).map(({ id }) => id));
}

/** What to do next in one session, in which nothing runs. */
function nextIn(turns: readonly TurnRow[], facts: MoveFacts) {
  // What waits was sent into a conversation with the answer that was begun.
  const cut = turns.find(isCut);
  if (cut !== undefined) return { start: cut };
  let until: number | undefined;
  for (const turn of turns) {
    if (turn.status === "held" || turn.continuation === 1) {
      const holds = facts.holds(turn);
      if (holds === "moot") return { moot: turn };
      if (holds === "waiting") continue;
    }
    if (turn.notBefore <= facts.now) return { start: turn };
    until = until === undefined ? turn.notBefore : Math.min(until, turn.notBefore);
    if (turn.status === "accepted") return { until };
  }
  return { until };
}

/** Those that may run beside what runs. */
function fitting(open: readonly TurnRow[], ready: readonly TurnRow[], { alone, running, width }: MoveFacts): TurnRow[] {
  const isAlone = ({ id }: TurnRow) => alone.has(id);
  if (open.some((turn) => isAlone(turn) && running.has(turn.session))) return [];
  const suspected = ready.filter(isAlone).sort((a, b) => b.attempts - a.attempts);
  if (suspected.length > 0) return running.size === 0 && width > 0 ? suspected.slice(0, 1) : [];
  return ready.slice(0, Math.max(0, width - running.size));
}

function isCut({ status }: TurnRow): boolean {
  return status === "running";
}

/** How a turn ended that is not open; one that is forgotten was passed over, as far as anybody can say. */
export function endOf(turn: Pick<TurnRow, "status"> | undefined): "completed" | "error" | "aborted" | "skipped" {
  const status = turn?.status;
  return status === "completed" || status === "error" || status === "aborted" ? status : "skipped";
}
