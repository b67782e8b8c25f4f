import { Query } from "@tanstack/db";
import type { Context } from "@tanstack/db";
import type { RowCollection } from "../rows.ts";
import type { RowQuery } from "../watch.ts";
import type { CallRow } from "./tool-row.ts";

/** What TanStack DB keeps of a query, as far as it is looked at here. */
interface KeptQuery {
  readonly from?: { readonly type?: string; readonly collection?: unknown; readonly alias?: string };
}

/** Where the calls of a query are. */
export interface QueryRoot {
  readonly collection: RowCollection<CallRow>;
  /** Its name in the query: rows of a query that joins have its rows under this name. */
  readonly alias: string;
}

/** The collection that a query reads its rows from, the first one of a join; undefined when it reads another query. */
export function queryRoot<TContext extends Context>(query: RowQuery<TContext>): QueryRoot | undefined {
  // TanStack DB has no public way to ask a query what it reads.
  const built = (typeof query === "function" ? query(new Query() as never) : query) as unknown as {
    _getQuery?: () => KeptQuery;
  };
  const { type, collection, alias = "" } = built._getQuery?.().from ?? {};
  return type === "collectionRef" && isCollection(collection) ? { collection, alias } : undefined;
}

function isCollection(value: unknown): value is RowCollection<CallRow> {
  return typeof value === "object" && value !== null && "subscribeChanges" in value && "config" in value;
}
