import { createCollection } from "@tanstack/db";
import { createClaims, logCollectionOptions, rowsOf } from "perdure/collections";
import type { ClaimRecord, Claims, RowLog } from "perdure/collections";
import type { ClaimsOptions } from "perdure/collections/worker";

/** A row of work that claims protect. */
export interface Job {
  id: string;
  status: string;
  by?: string;
  /** The fence that it was written under. */
  fence?: number;
}

/** The collections that a worker has open on a log. */
export function openDesk(log: RowLog, prefix = "") {
  const claims = createCollection(
    logCollectionOptions<ClaimRecord>({ log, name: `${prefix}claims`, getKey: (row) => row.id }),
  );
  const jobs = createCollection(logCollectionOptions<Job>({ log, name: `${prefix}jobs`, getKey: (row) => row.id }));
  return { log, claims, jobs, rows: rowsOf(jobs) };
}

/** A worker with claims of its own. */
export function openWorker(log: RowLog, options: Omit<ClaimsOptions, "collection"> & { prefix?: string } = {}) {
  const { prefix, ...rest } = options;
  const desk = openDesk(log, prefix);
  const claims: Claims = createClaims({ ...rest, collection: desk.claims });
  /** How often the holder has given a sign of life, as seen here. */
  const beats = (id: string) => {
    const row = desk.claims.get(`beat:${id}`);
    return row?.kind === "beat" ? row.beat : -1;
  };
  return { ...desk, claims, beats };
}
