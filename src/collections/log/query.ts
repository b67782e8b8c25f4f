import { Query, createLiveQueryCollection } from "@tanstack/db";
import type { Context, GetResult, InitialQueryBuilder, QueryBuilder } from "@tanstack/db";
import type { RowCollection } from "./rows.ts";

/** A query, as a function of a builder or ready made. Its rows are typed by what it selects. */
export type RowQuery<TContext extends Context> =
  | ((q: InitialQueryBuilder) => QueryBuilder<TContext>)
  | QueryBuilder<TContext>;

/** The row of a query. */
export type QueryRow<TContext extends Context> = GetResult<TContext> & object;

/** A row that came into a result or left it. One that was changed has left, as it was, and come, as it is. */
export interface Move<TRow> {
  readonly to: "in" | "out";
  readonly row: TRow;
}

/** The rows of a query, kept current while it lives. */
export interface Watch<TRow> {
  /** Resolves when the query's collections have their first state; rejects when one of them cannot have it. */
  readonly ready: Promise<void>;
  rows(): TRow[];
  /** The same one by one, for those who need the first few of many. Not across an await. */
  each(): Iterable<TRow>;
  /** What has moved since the last call, in its order. Kept from the first call on. */
  moves(): Move<TRow>[];
  dispose(): Promise<void>;
}

interface RowDelta<TRow> {
  readonly type: "insert" | "update" | "delete";
  readonly value: TRow;
  readonly previousValue?: TRow;
}

/** Keeps a query's rows and calls `wake` on change, which must not throw. Costs grow with the changes, not the rows. */
export function watchQuery<TContext extends Context>(
  query: RowQuery<TContext>,
  wake: () => void,
): Watch<QueryRow<TContext>> {
  // Live, and not an effect: an effect tells of deltas only, and never again of a row whose work failed.
  const live = createLiveQueryCollection({ query: query as never, startSync: true, gcTime: 0 }) as unknown as {
    preload(): Promise<void>;
    toArray: QueryRow<TContext>[];
    values(): Iterable<QueryRow<TContext>>;
    subscribeChanges(listener: (deltas: RowDelta<QueryRow<TContext>>[]) => void): { unsubscribe(): void };
    cleanup(): Promise<void>;
  };
  let kept: Move<QueryRow<TContext>>[] | undefined;
  const subscription = live.subscribeChanges((deltas) => {
    if (kept !== undefined) for (const delta of deltas) kept.push(...movesOf(delta));
    wake();
  });
  const ready = live.preload().then(wake);
  ready.catch(() => {});
  return {
    ready,
    rows: () => live.toArray,
    each: () => live.values(),
    moves: () => {
      const moves = kept ?? [];
      kept = [];
      return moves;
    },
    dispose: async () => {
      subscription.unsubscribe();
      await live.cleanup();
    },
  };
}

function movesOf<TRow>({ type, value, previousValue }: RowDelta<TRow>): Move<TRow>[] {
  if (type === "insert") return [{ to: "in", row: value }];
  if (type === "delete") return [{ to: "out", row: value }];
  return [
    { to: "out", row: previousValue ?? value },
    { to: "in", row: value },
  ];
}

/** What TanStack DB keeps of a query, as far as it is looked at here. */
interface KeptQuery {
  readonly from?: { readonly type?: string; readonly collection?: unknown; readonly alias?: string };
}

/** Where the rows of a query are. */
interface QueryRoot {
  readonly collection: RowCollection<object>;
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

function isCollection(value: unknown): value is RowCollection<object> {
  return typeof value === "object" && value !== null && "subscribeChanges" in value && "config" in value;
}
