import type { TurnStatus } from "../../store/turn.ts";

/**
 * What becomes of a run when one of its turns is looked at. A run is one or more turns of the child: a turn that stops
 * to ask a person is followed by another that goes on with the same answer, and both are the run.
 *
 *     running ── its last turn is open, or its answer waits for a person ──→ wait
 *             ── the last turn ended ─────────────────────────────────────→ completed | error | aborted
 */
export type RunMove =
  | { readonly kind: "wait" }
  | { readonly kind: "end"; readonly status: "completed" | "error" | "aborted"; readonly error?: string };

/** What is known of the last turn of a run. */
interface LastTurn {
  /** Undefined when the turn is forgotten: the conversation was cleared. */
  readonly status: TurnStatus | undefined;
  readonly error: string | null;
  /** Whether the answer waits for a tool of the client or an approval. */
  readonly asks: boolean;
}

/** Decides what becomes of a run that has not ended. Pure. */
export function nextRunMove({ status, error, asks }: LastTurn): RunMove {
  switch (status) {
    case "held":
    case "accepted":
    case "running":
      return { kind: "wait" };
    case "completed":
      return asks ? { kind: "wait" } : { kind: "end", status };
    case "error":
      return { kind: "end", status, error: error ?? "The child's turn failed." };
    case "aborted":
      return { kind: "end", status, error: "The child's turn was stopped." };
    case "skipped":
      return { kind: "end", status: "aborted", error: "The child passed the message over." };
    case undefined:
      return { kind: "end", status: "aborted", error: "The child's conversation was cleared." };
  }
}
