import { PerdureError, errorText } from "../../../base/error.ts";
import { newId } from "../../../base/id.ts";
import { fenced } from "../local-log.ts";
import type { RowProducer } from "../../../wire/row-frames.ts";
import { Backoff, Trouble, type StreamHttp } from "./stream-http.ts";

/** One name under which writes are sent, each with the next number. */
interface Lane {
  readonly id: string;
  readonly epoch: number;
  seq: number;
  /** Set for good when somebody else has the name. */
  fenced?: PerdureError;
}

/** What is known of one producer. */
interface Known {
  /** The latest epoch that the stream is known to have: those before it are shut out for good. */
  latest: number;
  /** By epoch; none before `latest`. */
  readonly lanes: Map<number, Lane>;
}

/**
 * The lanes of named writers. A lane's number exists nowhere else: starting over at 0 would look like a second writer of the same
 * epoch. So a lane is kept until a later epoch of its producer is in the stream; then the epoch is enough, since all it could
 * send would be refused.
 */
export class ProducerLanes {
  readonly #producers = new Map<string, Known>();

  /** How many lanes are kept. */
  get size(): number {
    let size = 0;
    for (const { lanes } of this.#producers.values()) size += lanes.size;
    return size;
  }

  of({ id, epoch }: RowProducer): Lane {
    const known = this.#producers.get(id);
    if (known !== undefined && epoch < known.latest) {
      return { id, epoch, seq: 0, fenced: fenced(id, epoch, known.latest) };
    }
    return known?.lanes.get(epoch) ?? { id, epoch, seq: 0 };
  }

  /** The stream has this epoch of the producer: of this lane, or of another writer with the same id. */
  keep(lane: Lane, latest: number): void {
    let known = this.#producers.get(lane.id);
    if (known === undefined) this.#producers.set(lane.id, (known = { latest, lanes: new Map() }));
    known.latest = Math.max(known.latest, latest);
    known.lanes.set(lane.epoch, lane);
    for (const epoch of known.lanes.keys()) if (epoch < known.latest) known.lanes.delete(epoch);
  }
}

/** How much of what waits is sent at once. */
const MAX_BATCH_CHARS = 256 * 1024;

/** A write on its way. */
export interface Outgoing {
  readonly txid: string;
  /** Its events, as JSON. */
  readonly events: readonly string[];
  readonly producer?: RowProducer;
  /** True as soon as its echo was read, or it failed. */
  settled: boolean;
  fail(error: PerdureError): void;
}

interface WriterOptions {
  readonly http: StreamHttp;
  readonly signal: AbortSignal;
  /** Resolves when the stream is there; rejects when it never will be. */
  readonly opened: Promise<void>;
  /** Resolves when everything up to that place was read. */
  readonly reached: (offset: string) => Promise<void>;
  /** The stream is gone. */
  readonly onGone: (status: number) => void;
  /** It cannot be written at the moment; told once for each outage. */
  readonly onTrouble: (error: Error) => void;
}

/**
 * Sends writes in order, one request at a time; those that wait share the next request, but each is judged alone. A request whose
 * answer was lost is sent again unchanged, under the same number, so the server takes it once.
 */
export class StreamWriter {
  readonly #options: WriterOptions;
  readonly #queue: Outgoing[] = [];
  /** Of writers with a name. */
  readonly #lanes = new ProducerLanes();
  /** For writes without a producer: nobody else has this name. */
  #own: Lane = newLane();
  /** Sent, and not read yet. */
  readonly #sent: { readonly writes: readonly Outgoing[]; readonly next: string }[] = [];
  #running: Promise<void> | undefined;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  send(write: Outgoing): void {
    this.#queue.push(write);
    this.#running ??= this.#run();
  }

  /** Resolves when nothing is under way; soon after the signal was aborted. */
  async idle(): Promise<void> {
    await this.#running;
  }

  /** The stream was read up to here: what was taken before it has its echo, or never will. */
  onRead(position: string): void {
    while (this.#sent.length > 0 && this.#sent[0]!.next <= position) {
      for (const write of this.#sent.shift()!.writes) if (!write.settled) write.fail(lost(this.#options.http.url));
    }
  }

  async #run(): Promise<void> {
    const { opened, signal } = this.#options;
    // Who has to know is told by the log.
    await opened.catch(() => {});
    while (this.#queue.length > 0 && !signal.aborted) await this.#deliver(this.#take());
    // At once: what comes after the last look at the queue starts a new run.
    this.#running = undefined;
  }

  /** The next writes of one producer, as many as fit. */
  #take(): Outgoing[] {
    const [first] = this.#queue;
    let chars = 0;
    let count = 0;
    for (const write of this.#queue) {
      if (!sameProducer(write.producer, first?.producer)) break;
      for (const event of write.events) chars += event.length + 1;
      if (count > 0 && chars > MAX_BATCH_CHARS) break;
      count++;
    }
    return this.#queue.splice(0, count);
  }

  async #deliver(batch: readonly Outgoing[]): Promise<void> {
    const { http, signal } = this.#options;
    const backoff = new Backoff();
    let writes = batch.filter((write) => !write.settled);
    while (writes.length > 0 && !signal.aborted) {
      const lane = this.#laneOf(writes[0]!.producer);
      if (lane.fenced !== undefined) return failAll(writes, lane.fenced);
      try {
        const answer = await http.append(`[${writes.flatMap(({ events }) => events).join()}]`, lane);
        switch (answer.kind) {
          case "taken":
            this.#advance(lane, lane.seq + 1);
            if (answer.next !== undefined) this.#sent.push({ writes, next: answer.next });
            return;
          case "duplicate":
            this.#advance(lane, lane.seq + 1);
            writes = await this.#missingOf(writes);
            if (writes.length === 0) return;
            // Somebody else has used this name and number: what was to be written never came.
            if (lane === this.#own) this.#own = newLane();
            else lane.fenced = sharedEpoch(lane);
            break;
          case "stale":
            lane.fenced = fenced(lane.id, lane.epoch, answer.latest);
            if (lane !== this.#own) this.#lanes.keep(lane, answer.latest);
            // It may have been taken before that, and only the answer was lost.
            if (!backoff.fresh) writes = await this.#missingOf(writes);
            break;
          case "gap":
            // The server has forgotten this writer. What it has taken before is known by its txid.
            if (lane === this.#own) this.#own = newLane();
            else this.#advance(lane, answer.expected);
            await backoff.wait(signal);
            break;
          case "missing":
            return this.#options.onGone(answer.status);
          case "refused":
            if (writes.length === 1) return failAll(writes, answer.error);
            // One of them is to blame; the others shall not fail with it.
            for (const write of writes) await this.#deliver([write]);
            return;
        }
      } catch (error) {
        if (signal.aborted) return;
        if (!(error instanceof Trouble)) return failAll(writes, unexpected(error));
        if (backoff.fresh) this.#options.onTrouble(error);
        await backoff.wait(signal, error.waitMs);
      }
    }
  }

  /** Those of the writes that the stream does not have. */
  async #missingOf(writes: readonly Outgoing[]): Promise<Outgoing[]> {
    const { http, reached, signal } = this.#options;
    const backoff = new Backoff();
    while (!signal.aborted && writes.some(({ settled }) => !settled)) {
      try {
        await reached(await http.tail());
        break;
      } catch (error) {
        if (!(error instanceof Trouble)) throw error;
        await backoff.wait(signal, error.waitMs);
      }
    }
    return signal.aborted ? [] : writes.filter(({ settled }) => !settled);
  }

  #laneOf(producer: RowProducer | undefined): Lane {
    return producer === undefined ? this.#own : this.#lanes.of(producer);
  }

  /** The next number of the lane is another one from now on. */
  #advance(lane: Lane, seq: number): void {
    lane.seq = seq;
    if (lane !== this.#own) this.#lanes.keep(lane, lane.epoch);
  }
}

function newLane(): Lane {
  return { id: newId("perdure"), epoch: 0, seq: 0 };
}

function sameProducer(a: RowProducer | undefined, b: RowProducer | undefined): boolean {
  return a?.id === b?.id && a?.epoch === b?.epoch;
}

function failAll(writes: readonly Outgoing[], error: PerdureError): void {
  for (const write of writes) if (!write.settled) write.fail(error);
}

function unexpected(error: unknown): PerdureError {
  return PerdureError.is(error) ? error : new PerdureError("bad_state", errorText(error), { cause: error });
}

function sharedEpoch({ id, epoch }: Lane): PerdureError {
  return new PerdureError(
    "fenced",
    `Another writer has written as "${id}" of epoch ${epoch}, so the stream took this write for an old one and dropped it. Give each life of a writer its own epoch.`,
  );
}

function lost(url: string): PerdureError {
  return new PerdureError(
    "disconnected",
    `The stream ${url} accepted a write but does not return it. Write it again under the same txid.`,
  );
}
