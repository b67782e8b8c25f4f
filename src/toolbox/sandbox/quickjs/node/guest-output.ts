import type { LogLine } from "../../sandbox.ts";

/** What a line costs beside its text: otherwise empty lines would be free. */
const LINE_BYTES = 16;
const AT_ONCE = 100;
const BATCH_LINES = 64;
const BATCH_BYTES = 16_384;

/** Collects what a guest prints, counts it, and hands it on in batches. */
export class GuestOutput {
  readonly #send: (lines: readonly LogLine[]) => void;
  readonly #most: number;
  #used: number;
  #lines: LogLine[] = [];
  #bytes = 0;
  #sent = 0;

  constructor(used: number, most: number, send: (lines: readonly LogLine[]) => void) {
    this.#used = used;
    this.#most = most;
    this.#send = send;
  }

  /** What may still be said, in bytes. */
  get left(): number {
    return this.#most - this.#used;
  }

  /** False when it is too much; then it is not said. */
  add(level: LogLine["level"], text: string): boolean {
    const bytes = Buffer.byteLength(text) + LINE_BYTES;
    if (bytes > this.left) return false;
    this.#used += bytes;
    this.#bytes += bytes;
    this.#lines.push({ level, text });
    // The first lines go at once: a lane that is killed takes with it what it has not sent.
    if (this.#sent < AT_ONCE || this.#lines.length >= BATCH_LINES || this.#bytes >= BATCH_BYTES) this.flush();
    return true;
  }

  flush(): void {
    if (this.#lines.length === 0) return;
    this.#sent += this.#lines.length;
    this.#send(this.#lines);
    this.#lines = [];
    this.#bytes = 0;
  }
}
