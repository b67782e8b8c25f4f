import { PerdureError } from "../../base/error.ts";
import type { TurnRow } from "../../store/turn.ts";

/**
 * What becomes of a message that is sent while a turn is running or waiting.
 *
 * - `queue`: it gets its own turn, after the others.
 * - `latest`: turns that wait are passed over; their messages stay and are answered together with this one.
 * - `merge`: like `latest`, and the messages that waited become one.
 * - `drop`: it is refused, and nothing is stored.
 * - `debounce`: like `latest`, after a pause in which nothing more was sent.
 * - `steer`: the turn that runs takes it in before its next step. If there is no such step it gets its own turn, after
 *   the others. An `AIChatAgent` runs its steps itself, so there it is always the latter: the same as `queue`.
 */
export type MessageConcurrency =
  | "queue"
  | "latest"
  | "merge"
  | "drop"
  | "debounce"
  | "steer"
  | { readonly strategy: "debounce"; readonly debounceMs?: number };

const DEFAULT_DEBOUNCE_MS = 750;

/** How one message is taken in. */
export type Admission =
  | { readonly kind: "refuse" }
  | {
      readonly kind: "accept";
      /** Turns that are passed over. */
      readonly skip: readonly TurnRow[];
      readonly notBefore: number;
      /** Their messages become part of the new one. */
      readonly merge: boolean;
      /** The turn that runs may take it in. */
      readonly steer: boolean;
    };

/** Decides by the turns that are open. Only new messages overlap; a regenerate always queues. Pure. */
export function admitMessage(policy: MessageConcurrency, open: readonly TurnRow[], now: number): Admission {
  const strategy = typeof policy === "string" ? policy : policy.strategy;
  const overlaps = open.some((turn) => turn.status !== "held");
  const waiting = open.filter((turn) => turn.status === "accepted" && turn.trigger === "submit");
  const accepted = { kind: "accept", skip: [], notBefore: now, merge: false, steer: false } as const;
  if (!overlaps || strategy === "queue") return accepted;
  switch (strategy) {
    case "drop":
      return { kind: "refuse" };
    case "latest":
      return { ...accepted, skip: waiting };
    case "merge":
      return { ...accepted, skip: waiting, merge: true };
    case "debounce":
      return { ...accepted, skip: waiting, notBefore: now + debounceMs(policy) };
    case "steer":
      return { ...accepted, steer: open.some((turn) => turn.status === "running") };
    default:
      throw new PerdureError(
        "bad_config",
        `messageConcurrency is ${JSON.stringify(policy)}; it must be queue, latest, merge, drop, debounce or steer.`,
      );
  }
}

function debounceMs(policy: MessageConcurrency): number {
  const ms = typeof policy === "string" ? undefined : policy.debounceMs;
  return ms !== undefined && Number.isFinite(ms) && ms >= 0 ? ms : DEFAULT_DEBOUNCE_MS;
}
