import { createCollection, inArray } from "@tanstack/db";
import type { InitialQueryBuilder } from "@tanstack/db";
import { logCollectionOptions, rowsOf } from "perdure/collections";
import type { ChunkRecord, ClaimRecord, RowLog, ToolCallRecord, TurnRecord } from "perdure/collections";

/** A row that wants an answer. */
export interface Ask {
  id: string;
  prompt: string;
  status: string;
  answer?: string;
  generationId?: string;
  attempt?: number;
  error?: string;
}

export const user = (content: string) => [{ role: "user" as const, content }];

/** What one process has of the place. */
export function desk(log: RowLog) {
  const table = <TRow extends { id: string }>(name: string) =>
    createCollection(logCollectionOptions<TRow>({ log, name, getKey: (row) => row.id }));
  const asks = table<Ask>("asks");
  return {
    log,
    asks,
    rows: rowsOf(asks),
    chunks: table<ChunkRecord>("chunks"),
    turns: table<TurnRecord>("turns"),
    toolCalls: table<ToolCallRecord>("toolCalls"),
    claims: table<ClaimRecord>("claims"),
  };
}
export type Desk = ReturnType<typeof desk>;

/** Resolves when the row is as wanted. */
export function until({ rows }: Desk, id: string, wanted: (row: Ask | undefined) => boolean): Promise<Ask | undefined> {
  return new Promise((resolve) => {
    const look = () => {
      if (!wanted(rows.get(id))) return;
      stop();
      resolve(rows.get(id));
    };
    const stop = rows.subscribe(look);
    queueMicrotask(look);
  });
}
export const settled = (row: Ask | undefined) =>
  row !== undefined && ["completed", "failed", "cancelled"].includes(row.status);
export const is = (status: string) => (row: Ask | undefined) => row?.status === status;

export function queryOf(q: InitialQueryBuilder, asks: Desk["asks"], statuses: string[]) {
  return q.from({ ask: asks }).where(({ ask }) => inArray(ask.status, statuses));
}

/** The options that most effects of these tests have. */
export const pending = ({ asks }: Desk, statuses = ["pending"]) => ({
  query: (q: InitialQueryBuilder) => queryOf(q, asks, statuses),
  collection: asks,
  keepResult: (draft: Ask, result: { content: string } | string) => {
    draft.answer = typeof result === "string" ? result : result.content;
  },
  retry: { maxAttempts: 3, delayMs: 1 },
  onProblem: () => {},
});
