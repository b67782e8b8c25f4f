import type { CallResult } from "./charge.ts";
import type { NewCall, OverBudget } from "./ledger.ts";

/** A model call, as the agents above book it. */
export type PaidCall = Pick<NewCall, "id" | "step" | "attempt" | "model" | "modelIndex" | "estimate" | "price">;

/** The call may be made, as far as the agents above are concerned. */
export interface ReservedAbove {
  readonly ok: true;
  /** Whether a budget above counts on the estimate: then the answer must not be longer than it says. */
  readonly limited: boolean;
}

/** A budget of an agent above does not allow the call. Nothing is booked there. */
export interface OverBudgetAbove extends OverBudget {
  /** Whose budget it is, for a person to read. */
  readonly agent: string;
}

/**
 * The agents that asked for a turn, up to the root: what it uses counts in their ledgers too. A call is reserved with
 * them before it is made, and settled after; both can be asked again and count once.
 */
export interface Payers {
  /** @throws what the call to them throws; PerdureError `bad_config` of a ledger above. Then nothing need be undone. */
  reserve(call: PaidCall, signal: AbortSignal): Promise<ReservedAbove | OverBudgetAbove>;
  /** Never throws: a call whose end they do not hear is charged in full, when the run ends at the latest. */
  settle(id: string, result: CallResult): Promise<void>;
  /** The call is not made. Never throws. */
  release(id: string): Promise<void>;
  /** Notes, in the transaction under way, that the turn ends because one of them has no room for it. */
  overBudget(): void;
}
