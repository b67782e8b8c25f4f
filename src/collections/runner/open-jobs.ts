import { indexRows } from "../row-index.ts";
import type { RowCollection } from "../rows.ts";
import { rowsOf } from "../rows.ts";
import type { QueueJob } from "./queue-job.ts";

/** The jobs of a queue that are not over, kept current. */
export interface OpenJobs<TPayload> {
  /** The oldest first, as they were confirmed. */
  read(): QueueJob<TPayload>[];
  stop(): void;
}

const OPEN = "open";

/** Calls `wake` when jobs have changed. On a log a look costs as much as there is left to do, not as was ever done. */
export function followOpenJobs<TPayload>(
  collection: RowCollection<QueueJob<TPayload>>,
  wake: () => void,
): OpenJobs<TPayload> {
  const isOpen = ({ status }: QueueJob<TPayload>) => status === "queued" || status === "running";
  const index = indexRows(collection, (job) => (isOpen(job) ? OPEN : undefined), wake);
  if (index !== undefined) return { read: () => index.rows(OPEN), stop: () => index.stop() };
  const rows = rowsOf(collection);
  return { read: () => rows.all().filter(isOpen), stop: rows.subscribe(wake) };
}
