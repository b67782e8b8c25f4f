import { createLiveQueryCollection } from "@tanstack/db";
import type { Context, GetResult, InitialQueryBuilder, QueryBuilder } from "@tanstack/db";

/** A query, as a function of a builder or ready made. Its rows are typed by what it selects. */
export type RowQuery<TContext extends Context> =
  | ((q: InitialQueryBuilder) => QueryBuilder<TContext>)
  | QueryBuilder<TContext>;

/** The row of a query. */
export type QueryRow<TContext extends Context> = GetResult<TContext> & object;

/** The rows of a query, kept current while it lives. */
export interface Watch<TRow> {
  /** Resolves when the query's collections have their first state; rejects when one of them cannot have it. */
  readonly ready: Promise<void>;
  rows(): TRow[];
  dispose(): Promise<void>;
}

/**
 * Keeps the rows of a query and calls `wake` whenever they change. Costs as much as there are changes, not as there
 * are rows in its collections. `wake` must not throw; it says only that a look is worth while.
 */
export function watchQuery<TContext extends Context>(
  query: RowQuery<TContext>,
  wake: () => void,
): Watch<QueryRow<TContext>> {
  // Live, and not an effect: an effect tells of deltas only, and never again of a row whose work failed.
  const live = createLiveQueryCollection({ query: query as never, startSync: true, gcTime: 0 }) as unknown as {
    preload(): Promise<void>;
    toArray: QueryRow<TContext>[];
    subscribeChanges(listener: () => void): { unsubscribe(): void };
    cleanup(): Promise<void>;
  };
  const subscription = live.subscribeChanges(wake);
  const ready = live.preload().then(wake);
  ready.catch(() => {});
  return {
    ready,
    rows: () => live.toArray,
    dispose: async () => {
      subscription.unsubscribe();
      await live.cleanup();
    },
  };
}
