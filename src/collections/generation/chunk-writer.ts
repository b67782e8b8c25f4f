import { PerdureError } from "../../base/error.ts";
import type { ChunkContract } from "../contract.ts";
import type { RowCondition, RowProducer } from "../log/row-log.ts";
import type { Rows } from "../rows.ts";
import { pause } from "../timer.ts";

/** Conditions of a write, or how to find them at the moment of each write. May throw: then nothing is written. */
export type Conditions = readonly RowCondition[] | (() => readonly RowCondition[]);

/** How chunks are gathered into writes. */
export interface ChunkBatch {
  /** The most chunks that go into one write. Default 256. */
  readonly maxChunks?: number;
  /** Wait this long before each write that is not full: fewer writes, and readers see text that much later. Default 0. */
  readonly waitMs?: number;
}

/** What the writer of one answer's chunks needs. */
export interface ChunkWriterOptions<TRow extends ChunkContract> {
  readonly rows: Rows<TRow>;
  readonly keyOf: (row: TRow) => string;
  readonly when: Conditions | undefined;
  readonly producer: RowProducer | undefined;
  readonly batch: ChunkBatch | undefined;
}

const MAX_CHUNKS = 256;
/** How many chunks may wait before the model is made to wait too. */
const MAX_WAITING = 4 * MAX_CHUNKS;

/**
 * Writes the chunks of one answer, in order: one write at a time, and what came during a write goes into the next.
 * A failed write is final: nothing is written behind it, so there is never a gap.
 */
export class ChunkWriter<TRow extends ChunkContract> {
  /** How many are stored. */
  written = 0;
  private readonly options: ChunkWriterOptions<TRow>;
  private waiting: TRow[] = [];
  private last: TRow | undefined;
  private draining: Promise<void> | undefined;
  private failed: { readonly error: unknown } | undefined;

  constructor(options: ChunkWriterOptions<TRow>) {
    this.options = options;
  }

  /** Takes a chunk. Resolves at once, unless too many wait. Throws what a write before has failed with. */
  async add(row: TRow): Promise<void> {
    this.check();
    this.waiting.push(row);
    this.draining ??= this.drain();
    while (this.waiting.length >= MAX_WAITING && this.failed === undefined) await this.draining;
    this.check();
  }

  /** Resolves when all chunks are stored. Throws what a write has failed with. */
  async flush(): Promise<void> {
    while (this.draining !== undefined) await this.draining;
    this.check();
  }

  /** Marks the last stored chunk as the end of a complete answer, where no chunk that came later could say it. */
  async finish(): Promise<void> {
    await this.flush();
    const { last } = this;
    if (last === undefined || last.isFinal === true) return;
    const { rows, keyOf } = this.options;
    const write = () => rows.update(keyOf(last), (draft) => void (draft.isFinal = true), this.fence());
    await this.insist(write);
  }

  private check(): void {
    if (this.failed !== undefined) throw this.failed.error;
  }

  private async drain(): Promise<void> {
    try {
      const { maxChunks = MAX_CHUNKS, waitMs = 0 } = this.options.batch ?? {};
      while (this.waiting.length > 0) {
        // A moment later in any case, so that chunks that come in one go are one write.
        await (waitMs > 0 && this.waiting.length < maxChunks ? pause(waitMs) : Promise.resolve());
        const batch = this.waiting.splice(0, maxChunks);
        await this.insist(() => this.options.rows.insertAll(batch, this.fence()));
        this.written += batch.length;
        this.last = batch.at(-1);
      }
    } catch (error) {
      this.failed = { error };
      this.waiting = [];
    } finally {
      this.draining = undefined;
    }
  }

  /** Writes; once more if it was refused and what it depends on has moved in between, for as long as it moves. */
  private async insist(write: () => Promise<boolean>): Promise<void> {
    for (let before = this.stamp(); !(await write());) {
      const now = this.stamp();
      if (now === before) throw refused();
      before = now;
    }
  }

  private fence(): { when?: readonly RowCondition[]; producer?: RowProducer } {
    const { when, producer } = this.options;
    const conditions = typeof when === "function" ? when() : when;
    return {
      ...(conditions === undefined ? {} : { when: conditions }),
      ...(producer === undefined ? {} : { producer }),
    };
  }

  private stamp(): string {
    return JSON.stringify(this.fence().when ?? []);
  }
}

function refused(): PerdureError {
  return new PerdureError(
    "fenced",
    "A chunk was refused: another writer has this answer. Stop this one; a new try needs a generationId of its own.",
  );
}
