import { pause } from "../../timer.ts";

const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 5_000;

/** The waits between tries, longer each time until one succeeds. */
export class Backoff {
  private failures = 0;

  /** Whether the last try succeeded, so that a failure is news. */
  get fresh(): boolean {
    return this.failures === 0;
  }

  succeeded(): void {
    this.failures = 0;
  }

  /** Resolves after the next wait, or as soon as the signal is aborted. */
  async wait(signal: AbortSignal, atLeastMs = 0): Promise<void> {
    const full = Math.min(FIRST_DELAY_MS * 2 ** this.failures++, MAX_DELAY_MS);
    // Some of it by chance, so that all who lost a server do not come back at once.
    const delay = Math.max(atLeastMs, full * (0.5 + Math.random() / 2));
    await pause(delay, signal);
  }
}
