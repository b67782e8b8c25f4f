/**
 * What is to become of work that a process has left behind, by its state. The same table for people and for
 * {@link recoverOrphanedOperations}.
 */
export interface Classification {
  /** `maybe`: by policy, and by how often it was tried. */
  readonly resumable: "yes" | "maybe" | "no";
  /**
   * - `pick-up`: nothing to do, whoever works on such rows takes it up.
   * - `leave`: somebody works on it.
   * - `await-tools`: it goes on when its tool calls have their results.
   * - `retry-or-fail`: back to `pending` with one more attempt, or `failed`.
   * - `show-partial`: what was stored of it can be shown; it cannot go on from there.
   * - `none`: it is over.
   */
  readonly action: "pick-up" | "leave" | "await-tools" | "retry-or-fail" | "show-partial" | "none";
}

const OVER: Classification = { resumable: "no", action: "none" };

/** Where an answer can go from here. `orphaned`: nobody works on it. `chunks`: how many of them are stored. */
export function classifyGeneration(
  row: { readonly status: string },
  known: { readonly orphaned?: boolean; readonly chunks?: number } = {},
): Classification {
  switch (row.status) {
    case "pending":
      return { resumable: "yes", action: "pick-up" };
    case "generating":
      return known.orphaned === true
        ? { resumable: "maybe", action: "retry-or-fail" }
        : { resumable: "no", action: "leave" };
    case "suspended":
      return { resumable: "yes", action: "await-tools" };
    case "failed":
    case "cancelled":
      return (known.chunks ?? 0) > 0 ? { resumable: "no", action: "show-partial" } : OVER;
    default:
      return OVER;
  }
}

/** Where a tool call can go from here. `orphaned`: nobody works on it. */
export function classifyToolCall(
  row: { readonly status: string },
  known: { readonly orphaned?: boolean } = {},
): Classification {
  switch (row.status) {
    case "pending":
      return { resumable: "yes", action: "pick-up" };
    case "executing":
      return known.orphaned === true
        ? { resumable: "maybe", action: "retry-or-fail" }
        : { resumable: "no", action: "leave" };
    default:
      return OVER;
  }
}
