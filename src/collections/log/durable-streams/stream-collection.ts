import type { StandardSchemaV1 } from "@standard-schema/spec";
import { untypedLogOptions } from "../collection-options.ts";
import type {
  PlainConfig,
  PlainOptions,
  SchemaConfig,
  SchemaOptions,
  UntypedLogConfig,
} from "../collection-options.ts";
import type { RowLog } from "../row-log.ts";
import { openStreamLog } from "./stream-log.ts";

/** Where the rows of a collection on a Durable Stream are. */
export type StreamCollectionSource =
  /** An open log (`openStreamLog`). Close it yourself, after the collections that are on it. */
  | { readonly log: RowLog; readonly url?: never }
  /**
   * A stream. All collections of this process that name the same URL have one log, and one connection:
   * `collection.utils.log`. Each collection's `cleanup()` gives it back, and the last one closes it; a collection
   * that was cleaned up is not to be used again. A stream that needs headers has a log of its own
   * (`openStreamLog`), so that nobody reads with somebody else's.
   */
  | { readonly url: string | URL; readonly log?: never };

/**
 * Options for `createCollection`: a collection whose rows live in a Durable Stream, next to the other collections of
 * the same stream. See `logCollectionOptions` for what its writes promise.
 */
export function durableStreamCollectionOptions<TSchema extends StandardSchemaV1>(
  config: SchemaConfig<TSchema> & StreamCollectionSource,
): SchemaOptions<TSchema>;
export function durableStreamCollectionOptions<TRow extends object>(
  config: PlainConfig<TRow> & StreamCollectionSource,
): PlainOptions<TRow>;
export function durableStreamCollectionOptions({
  url,
  log,
  ...config
}: Omit<UntypedLogConfig, "log"> & StreamCollectionSource): object {
  return untypedLogOptions(log === undefined ? { ...config, ...borrow(String(url)) } : { ...config, log });
}

/** The logs that were opened by their URL. */
const borrowed = new Map<string, { readonly log: RowLog; users: number }>();

function borrow(url: string): { log: RowLog; onCleanup: () => void } {
  let entry = borrowed.get(url);
  if (entry === undefined) borrowed.set(url, (entry = { log: openStreamLog({ url }), users: 0 }));
  const { log } = entry;
  entry.users++;
  let mine = true;
  const onCleanup = () => {
    if (!mine) return;
    mine = false;
    const now = borrowed.get(url);
    if (now?.log !== log || --now.users > 0) return;
    borrowed.delete(url);
    void log.close();
  };
  return { log, onCleanup };
}
