import type { ResponseFrame } from "./chat-frames.ts";
import type { TurnEnd } from "./chat-types.ts";
import type { LiveTurn } from "./live-turn.ts";

/** How a turn ended, by its last frame. A server that does not say it has told of an error before, or of none. */
export function endOf({ id, outcome, messageIds, replay, error }: ResponseFrame, turn: LiveTurn): TurnEnd {
  const text = error ?? turn.error;
  const known = outcome === "recovering" ? undefined : outcome;
  const how = known ?? (text === undefined ? "completed" : "error");
  return {
    requestId: id,
    outcome: how,
    replay,
    ...(messageIds !== undefined && { messageIds }),
    ...(how === "error" && { error: text ?? "" }),
  };
}

/** The ids that were added last. */
export class RecentIds {
  readonly #limit: number;
  readonly #ids = new Set<string>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  add(id: string): void {
    this.#ids.add(id);
    const [oldest] = this.#ids;
    if (this.#ids.size > this.#limit && oldest !== undefined) this.#ids.delete(oldest);
  }
}
