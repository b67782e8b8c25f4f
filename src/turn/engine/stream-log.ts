import type { AgentHost, WriteLevel } from "../../port.ts";
import { appendChunks, countChunks, readChunks } from "../../store/stream.ts";

/**
 * At most one commit per window, since each writes at least a page. The window grows with the stream: first words come at once,
 * and nobody reads fast enough to notice later ones.
 */
const WINDOW_PART = 16;
const MAX_WINDOW_MS = 100;
/** Flushed without waiting for the window: what a commit may hold, and what memory may. */
const MAX_PENDING = 512;
const MAX_PENDING_CHARS = 256 * 1024;

/** A chunk on its way out: its JSON, and its number unless it is not kept. */
export interface LoggedChunk {
  readonly body: string;
  readonly seq: number | undefined;
}

/** A stream's log: chunks are committed before they are handed on, and can be read again by number until the turn settles. */
export class StreamLog {
  readonly #host: AgentHost;
  readonly #turn: number;
  readonly #out: (chunks: readonly LoggedChunk[]) => void;
  #next: number;
  #pending: LoggedChunk[] = [];
  #chars = 0;
  #level: WriteLevel = "commit";
  #begun: number | undefined;
  #lastFlush = Number.NEGATIVE_INFINITY;
  #waiting: (() => void) | undefined;
  #also: (() => void)[] = [];
  /** Chunks of the flush under way that are not stored. */
  #unstored: readonly LoggedChunk[] = [];
  #closed = false;

  /** @param out gets each chunk once, in order, after its commit. Must not throw. */
  constructor(host: AgentHost, turn: number, out: (chunks: readonly LoggedChunk[]) => void) {
    this.#host = host;
    this.#turn = turn;
    this.#out = out;
    this.#next = countChunks(host, turn);
  }

  /** Everything committed so far, from number `from` on; inside {@link StreamLog.flush} what that commits as well. */
  read(from = 0): string[] {
    const stored = readChunks(this.#host, this.#turn, from);
    const rest = this.#unstored.filter(({ seq }) => seq !== undefined && seq >= from);
    return rest.length === 0 ? stored : [...stored, ...rest.map(({ body }) => body)];
  }

  get count(): number {
    return this.#next;
  }

  /** @returns whether much has piled up, so that the producer should let others have a turn. */
  append(body: string, options: { keep: boolean; level: WriteLevel }): boolean {
    if (this.#closed) return false;
    this.#pending.push({ body, seq: options.keep ? this.#next++ : undefined });
    this.#chars += body.length;
    if (options.level === "sync") this.#level = "sync";
    if (this.#pending.length >= MAX_PENDING || this.#chars >= MAX_PENDING_CHARS) {
      this.flush();
      return true;
    }
    this.#schedule();
    return false;
  }

  /** Runs `work` in the transaction of the next flush, which comes within a window. A failed one runs it again. */
  also(work: () => void): void {
    if (this.#closed) return;
    this.#also.push(work);
    this.#schedule();
  }

  /**
   * Commits what is pending, together with `also`, and hands it on.
   * @param isLast `also` deletes the log: what is pending is handed on and not stored
   */
  flush(level: WriteLevel = "commit", also?: () => void, isLast = false): void {
    this.#waiting?.();
    this.#waiting = undefined;
    const chunks = this.#pending;
    const works = this.#also;
    if (this.#closed || (chunks.length === 0 && works.length === 0 && also === undefined)) return;
    this.#unstored = isLast ? chunks : [];
    try {
      this.#host.tx(
        () => {
          if (!isLast) this.#store(chunks);
          for (const work of works) work();
          also?.();
        },
        level === "sync" ? level : this.#level,
      );
    } finally {
      this.#unstored = [];
    }
    this.#pending = [];
    this.#also = [];
    this.#chars = 0;
    this.#level = "commit";
    this.#lastFlush = this.#host.clock.now();
    this.#begun ??= this.#lastFlush;
    if (chunks.length > 0 || works.length > 0) this.#handOn(chunks, works);
  }

  /** No more chunks are taken; what is pending and was not flushed is forgotten. */
  close(): void {
    this.#closed = true;
    this.#waiting?.();
    this.#pending = [];
    this.#also = [];
  }

  #store(chunks: readonly LoggedChunk[]): void {
    const kept = chunks.filter((chunk) => chunk.seq !== undefined);
    const first = kept[0]?.seq;
    if (first === undefined) return;
    const bodies = kept.map((chunk) => chunk.body);
    appendChunks(this.#host, this.#turn, first, bodies);
  }

  /** Inside a larger transaction this waits for its end; if that is undone, the chunks are pending again. */
  #handOn(chunks: LoggedChunk[], works: (() => void)[]): void {
    this.#host.afterTx((committed) => {
      if (committed) return chunks.length > 0 ? this.#out(chunks) : undefined;
      this.#also = [...works, ...this.#also];
      this.#pending = [...chunks, ...this.#pending];
      for (const { body } of chunks) this.#chars += body.length;
      // What the level was is forgotten; the higher one is right for all.
      this.#level = "sync";
      if (!this.#closed) this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#waiting !== undefined) return;
    const window = Math.ceil((this.#lastFlush - (this.#begun ?? 0)) / WINDOW_PART);
    const wait = this.#lastFlush + Math.min(Math.max(window, 1), MAX_WINDOW_MS) - this.#host.clock.now();
    if (wait > 0) {
      this.#waiting = this.#host.clock.after(wait, () => this.#flushLater());
      return;
    }
    let cancelled = false;
    this.#waiting = () => {
      cancelled = true;
    };
    void this.#host.breathe().then(() => {
      if (!cancelled) this.#flushLater();
    });
  }

  /** Nobody waits for this one: a failing disk is met again, and reported, when the stream ends. */
  #flushLater(): void {
    this.#waiting = undefined;
    try {
      this.flush();
    } catch {
      this.#lastFlush = this.#host.clock.now();
    }
  }
}
