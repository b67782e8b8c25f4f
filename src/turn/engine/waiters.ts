import type { Clock } from "../../base/time.ts";
import type { TurnOutcome } from "../policy.ts";

/** How a turn ended, for who waited for it. */
export interface Outcome {
  readonly status: TurnOutcome;
  readonly error?: string;
  readonly output?: unknown;
}

/** Server code that waits for a turn to end, or for turns to be quiet. In memory: it dies with its callers. */
export class Waiters {
  readonly #turns = new Map<string, ((outcome: Outcome) => void)[]>();
  readonly #quiet = new Map<() => void, () => boolean>();

  /** Resolves when {@link Waiters.ended} is called for this turn. */
  forTurn(id: string): Promise<Outcome> {
    return new Promise((resolve) => {
      const waiting = this.#turns.get(id);
      if (waiting === undefined) this.#turns.set(id, [resolve]);
      else waiting.push(resolve);
    });
  }

  /** Resolves with true when {@link Waiters.look} finds that `isQuiet`, with false after `timeout` milliseconds. */
  forQuiet(clock: Clock, timeout: number | undefined, isQuiet: () => boolean): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (quiet: boolean) => {
        cancel?.();
        this.#quiet.delete(rest);
        resolve(quiet);
      };
      const rest = () => finish(true);
      const cancel = timeout === undefined ? undefined : clock.after(timeout, () => finish(false));
      this.#quiet.set(rest, isQuiet);
    });
  }

  ended(id: string, outcome: Outcome): void {
    const waiting = this.#turns.get(id) ?? [];
    this.#turns.delete(id);
    for (const resolve of waiting) resolve(outcome);
  }

  /** Looks whether it is quiet now where somebody waits for that. */
  look(): void {
    for (const [rest, isQuiet] of this.#quiet) if (isQuiet()) rest();
  }
}
