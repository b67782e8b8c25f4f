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
 * A turn is a row from the moment it is accepted. `accepted` waits for its place: turns of an agent run one at a
 * time, in the order of their rows unless they are moved. Until it starts its input can be changed, moved or
 * withdrawn (`inbox.ts`); or the running turn takes it in, and then it has completed without a run (`steer.ts`). `held` is a continuation that waits for answers to tool calls; it gives
 * way to others and starts when the last answer is there. `running` has been started at least once: found in a
 * new life it was cut off, and is carried on from its stream log under the same id, so that clients simply
 * resume. The four ends are final.
 *
 * A cancel is a mark on the row, not a state: it is stored before anything is done about it, and whoever looks
 * at the row next, in this life or another one, ends the turn.
 */

/** What is known beside the rows. */
export interface TurnFacts {
  readonly now: number;
  /** A turn is running in this life. */
  readonly active: boolean;
  /** No new work is begun. */
  readonly stopped: boolean;
  /** Whether a continuation may start, must wait for more answers, or has nothing left to continue. */
  holds(turn: TurnRow): "ready" | "waiting" | "moot";
}

/** What to do next. */
export type TurnMove =
  | { readonly kind: "run"; readonly turn: TurnRow }
  /** It was cut off by the end of a life. */
  | { readonly kind: "resume"; readonly turn: TurnRow }
  | { readonly kind: "settle"; readonly turn: TurnRow; readonly status: "aborted" | "skipped" }
  /** Nothing before `until`, or before something changes. */
  | { readonly kind: "wait"; readonly until: number | null };

/** Decides by the open turns, in their order. Pure. */
export function nextTurnMove(open: readonly TurnRow[], facts: TurnFacts): TurnMove {
  // Whoever stopped a turn that waits hears of it at once, whatever else is going on. One that was running still has
  // an answer to keep, so it ends where its log is read.
  const unwanted = open.find((turn) => turn.cancelled === 1 && turn.status !== "running");
  if (unwanted !== undefined) return { kind: "settle", turn: unwanted, status: "aborted" };
  if (facts.active || facts.stopped) return { kind: "wait", until: null };
  // One that was begun goes first, wherever it stands: what waits was sent into a conversation with its answer.
  const cut = open.find((turn) => turn.status === "running");
  if (cut !== undefined) return { kind: "resume", turn: cut };
  let until: number | null = null;
  for (const turn of open) {
    if (turn.status === "held" || turn.continuation === 1) {
      const holds = facts.holds(turn);
      if (holds === "moot") return { kind: "settle", turn, status: "skipped" };
      if (holds === "waiting") continue;
    }
    if (turn.notBefore <= facts.now) return { kind: "run", turn };
    until = until === null ? turn.notBefore : Math.min(until, turn.notBefore);
    if (turn.status === "accepted") return { kind: "wait", until };
  }
  return { kind: "wait", until };
}

/** How a turn ended that is not open; one that is forgotten was passed over, as far as anybody can say. */
export function endOf(turn: Pick<TurnRow, "status"> | undefined): "completed" | "error" | "aborted" | "skipped" {
  const status = turn?.status;
  return status === "completed" || status === "error" || status === "aborted" ? status : "skipped";
}
