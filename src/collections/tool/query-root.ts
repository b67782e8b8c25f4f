import { Query } from "@tanstack/db";
import type { Context } from "@tanstack/db";
import type { RowCollection } from "../rows.ts";
import type { RowQuery } from "../watch.ts";
import type { CallRow } from "./tool-row.ts";

/** What TanStack DB keeps of a query, as far as it is looked at here. */
interface KeptQuery {
  readonly from?: { readonly type?: string; readonly collection?: unknown };
}

/**
 * The collection that a query reads its rows from, or undefined when there is no single one. It is only looked at, so
 * that a row which is hidden by an optimistic edit can be told from one that is gone.
 */
export function rootCollection<TContext extends Context>(
  query: RowQuery<TContext>,
): RowCollection<CallRow> | undefined {
  // TanStack DB has no public way to ask a query what it reads.
  const built = (typeof query === "function" ? query(new Query() as never) : query) as unknown as {
    _getQuery?: () => KeptQuery;
  };
  const { type, collection } = built._getQuery?.().from ?? {};
  return type === "collectionRef" && isCollection(collection) ? collection : undefined;
}

function isCollection(value: unknown): value is RowCollection<CallRow> {
  return typeof value === "object" && value !== null && "subscribeChanges" in value && "config" in value;
}
