import type { PerdureError } from "../../../base/error.ts";
import { fenced } from "../local-log.ts";
import type { RowProducer } from "../row-log.ts";

/** One name under which writes are sent, each with the next number. */
export interface Lane {
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
 * The lanes of writers with a name. The number of a lane is nowhere else: one that began again at 0 would be taken for
 * a second writer of the same epoch. So a lane is kept until a later epoch of its producer is in the stream; then all
 * that it could send would be refused, and it is enough to know the epoch. What stays is one lane for each producer.
 */
export class ProducerLanes {
  private readonly producers = new Map<string, Known>();

  /** How many lanes are kept. */
  get size(): number {
    let size = 0;
    for (const { lanes } of this.producers.values()) size += lanes.size;
    return size;
  }

  of({ id, epoch }: RowProducer): Lane {
    const known = this.producers.get(id);
    if (known !== undefined && epoch < known.latest) {
      return { id, epoch, seq: 0, fenced: fenced(id, epoch, known.latest) };
    }
    return known?.lanes.get(epoch) ?? { id, epoch, seq: 0 };
  }

  /** The stream has this epoch of the producer: of this lane, or of another writer with the same id. */
  keep(lane: Lane, latest: number): void {
    let known = this.producers.get(lane.id);
    if (known === undefined) this.producers.set(lane.id, (known = { latest, lanes: new Map() }));
    known.latest = Math.max(known.latest, latest);
    known.lanes.set(lane.epoch, lane);
    for (const epoch of known.lanes.keys()) if (epoch < known.latest) known.lanes.delete(epoch);
  }
}
