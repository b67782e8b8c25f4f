import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { CollectionConfig, InferSchemaOutput, PendingMutation, UtilsRecord } from "@tanstack/db";
import { PerdureError } from "../../base/error.ts";
import { newId } from "../../base/id.ts";
import type { AppliedChange, RowLog, RowTable, RowValue } from "./row-log.ts";
import type { RowChange, RowProducer } from "../../wire/row-frames.ts";
import { rowBySchema } from "./schema.ts";

/** The part of TanStack DB's sync parameters that is used here. */
interface SyncSink {
  begin(): void;
  write(message: { type: "insert" | "update" | "delete"; key: string; value: RowValue }): void;
  /** True when it shows at once; otherwise resolves when it does, or rejects when the collection is cleaned up. */
  commit(): true | Promise<void>;
  markReady(): void;
  markError(error?: unknown): void;
  truncate(): void;
}

/** How long rows may be held back by local writes. */
const LONGEST_HOLD_MS = 250;

/** Showing all rows again may take this part of the time at most. */
const RESHOW_SHARE = 1 / 20;

/**
 * Keeps a TanStack DB collection in step with the table; returns a stop function. The first state arrives in one commit, so that
 * nobody sees a row as pending that a later change of the same replay has completed.
 *
 * TanStack DB withholds all rows of a collection while a local write to it persists: forever, when such writes overlap. So what
 * was withheld for some time is shown another way: clear and rewrite everything in one commit, which is not withheld and shows no
 * row leaving.
 */
function syncTable(
  log: RowLog,
  table: RowTable,
  show: (row: { readonly value: RowValue; readonly order: number }) => RowValue,
  sink: SyncSink,
): () => void {
  let stop: (() => void) | undefined;
  let closed = false;
  let held = 0;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let pauseMs = LONGEST_HOLD_MS;

  const commit = () => {
    const shown = sink.commit();
    if (shown === true) return;
    held++;
    timer ??= setTimeout(reshow, pauseMs);
    const over = () => {
      if (--held > 0) return;
      clearTimeout(timer);
      timer = undefined;
    };
    shown.then(over, over);
  };
  const reshow = () => {
    timer = undefined;
    if (closed || held === 0) return;
    const from = performance.now();
    writeAll(true);
    pauseMs = Math.max(LONGEST_HOLD_MS, (performance.now() - from) / RESHOW_SHARE);
  };
  const writeAll = (again: boolean) => {
    sink.begin();
    if (again) sink.truncate();
    for (const row of table.rows()) sink.write({ type: "insert", key: row.key, value: show(row) });
    commit();
  };
  const start = () => {
    if (closed) return;
    writeAll(false);
    sink.markReady();
    stop = table.subscribe(follow);
  };
  const follow = (changes: readonly AppliedChange[], reset: boolean) => {
    sink.begin();
    if (reset) sink.truncate();
    for (const change of changes) sink.write({ type: change.operation, key: change.key, value: show(change) });
    commit();
  };
  // Its own, where there is one: another table that cannot be read is no reason to show nothing of this one.
  (table.ready ?? log.ready).then(start, (error: unknown) => {
    if (!closed) sink.markError(error);
  });
  return () => {
    closed = true;
    clearTimeout(timer);
    stop?.();
  };
}

/** What a collection on a log adds to a collection of TanStack DB. */
export interface LogUtils extends UtilsRecord {
  readonly log: RowLog;
  /** The collection's name in the log. */
  readonly tableName: string;
  /** The rows as everybody has them, without this process's optimistic writes. */
  readonly confirmed: RowTable;
  /** A row of the log as this collection shows it. */
  readonly show: (row: { readonly value: RowValue; readonly order: number }) => RowValue;
  /** A row of this collection as the log keeps it. */
  readonly keep: (row: object) => RowValue;
  /**
   * For rows that bypass the collection's `insert` and `update`: asks its schema; with `before`, about changed fields only.
   * @throws PerdureError `bad_input`, with the row and the field.
   */
  readonly admit: (row: object, before?: object) => RowValue;
  /** The writer that this collection's optimistic writes are stamped with. */
  readonly producer?: RowProducer;
}

/** What every backend's options have in common. */
interface LogCollectionConfig<TRow extends object> {
  /** The collection's name in the log. All who use the same name of the same log see the same rows. */
  readonly name: string;
  readonly getKey: (row: TRow) => string;
  /** A numeric field that shows the row's place in the log: order by it, not by clocks. Filled in by the log, not written. */
  readonly orderAs?: keyof TRow & string;
  /** TanStack DB's id of the collection. */
  readonly id?: string;
  /** The writer that its optimistic writes are stamped with. */
  readonly producer?: RowProducer;
}

/** The configuration of a collection whose rows are what a schema gives. */
export type SchemaConfig<TSchema extends StandardSchemaV1> = LogCollectionConfig<
  InferSchemaOutput<TSchema> & object
> & { readonly schema: TSchema };

/** The configuration of a collection whose rows have a type and no schema. */
export type PlainConfig<TRow extends object> = LogCollectionConfig<TRow> & { readonly schema?: never };

/** What {@link SchemaConfig} comes to. */
export type SchemaOptions<TSchema extends StandardSchemaV1> = LogOptions<
  InferSchemaOutput<TSchema> & object,
  TSchema
> & { schema: TSchema };

/** What {@link PlainConfig} comes to. */
export type PlainOptions<TRow extends object> = LogOptions<TRow, never> & { schema?: never };

/** What {@link logCollectionOptions} gives to `createCollection`. */
export type LogOptions<TRow extends object, TSchema extends StandardSchemaV1> = CollectionConfig<
  TRow,
  string,
  TSchema,
  LogUtils
> & { utils: LogUtils };

/**
 * Options for `createCollection`: a collection whose rows live in a log. Writes are optimistic, one per transaction, and stay
 * pending until they return through the log; a refused one is rolled back, and its `isPersisted.promise` rejects with
 * PerdureError `conflict`.
 */
export function logCollectionOptions<TSchema extends StandardSchemaV1>(
  config: SchemaConfig<TSchema> & { readonly log: RowLog },
): SchemaOptions<TSchema>;
export function logCollectionOptions<TRow extends object>(
  config: PlainConfig<TRow> & { readonly log: RowLog },
): PlainOptions<TRow>;
export function logCollectionOptions(config: UntypedLogConfig): object {
  return untypedLogOptions(config);
}

/** The configuration of a collection on a log, whatever its rows are. */
export interface UntypedLogConfig extends LogCollectionConfig<RowValue> {
  readonly log: RowLog;
  readonly schema?: StandardSchemaV1;
  /** Called when the collection stops to use the log. */
  readonly onCleanup?: () => void;
}

/** For the options of a backend, which are typed as {@link logCollectionOptions} is. */
export function untypedLogOptions(config: UntypedLogConfig): object {
  const { log, name, orderAs } = config;
  const table = log.table(name);
  const show: LogUtils["show"] = ({ value, order }) => (orderAs === undefined ? value : { ...value, [orderAs]: order });
  const keep: LogUtils["keep"] = (row) => stored(row, orderAs);
  const admit: LogUtils["admit"] = (row, before) => {
    const place = { table: name, key: () => config.getKey(row as RowValue) };
    return keep(rowBySchema(config.schema, place, row, before));
  };
  const write = async ({ transaction }: { transaction: { mutations: readonly PendingMutation[] } }) => {
    await writeMutations(log, transaction.mutations, config.producer);
  };
  return {
    id: config.id ?? `${log.source}#${name}#${newId()}`,
    getKey: config.getKey,
    ...(config.schema === undefined ? {} : { schema: config.schema }),
    startSync: true,
    // Rows are in memory for the log anyway; a collection that forgot them would only lose its readers.
    gcTime: 0,
    sync: {
      rowUpdateMode: "full",
      sync: (sink: SyncSink) => {
        const stop = syncTable(log, table, show, sink);
        return () => {
          stop();
          config.onCleanup?.();
        };
      },
    },
    onInsert: write,
    onUpdate: write,
    onDelete: write,
    utils: {
      log,
      tableName: name,
      confirmed: table,
      show,
      keep,
      admit,
      ...(config.producer === undefined ? {} : { producer: config.producer }),
    } satisfies LogUtils,
  };
}

/** TanStack DB's computed fields are never stored. */
const COMPUTED: ReadonlySet<string> = new Set(["$hasPendingWrites", "$synced", "$origin", "$key", "$collectionId"]);

function stored(row: object, orderAs: string | undefined): RowValue {
  const value: Record<string, unknown> = {};
  for (const [field, content] of Object.entries(row)) {
    // Assigning a "__proto__" would give the row another prototype; no backend keeps such a field.
    if (content === undefined || COMPUTED.has(field) || field === orderAs || field === "__proto__") continue;
    value[field] = content;
  }
  return value;
}

/** What {@link writeMutations} needs of a pending mutation. */
interface Mutation {
  readonly type: "insert" | "update" | "delete";
  readonly key: unknown;
  readonly modified: object;
  readonly collection: { readonly id: string; readonly utils: UtilsRecord };
}

/**
 * Writes a TanStack DB transaction as one write of the log: the `mutationFn` of a transaction over several collections of that
 * log.
 * @throws PerdureError `conflict` when the write was refused, `bad_config` when a collection is of another log.
 */
export async function writeMutations(
  log: RowLog,
  mutations: readonly Mutation[],
  producer?: RowProducer,
): Promise<void> {
  const changes = mutations.map((mutation): RowChange => {
    const utils = logUtilsOf(mutation.collection);
    if (utils?.log !== log) {
      throw new PerdureError(
        "bad_config",
        `The collection "${mutation.collection.id}" does not belong to the log "${log.source}", so this log cannot write it.`,
      );
    }
    const change = { table: utils.tableName, key: String(mutation.key), operation: mutation.type };
    return mutation.type === "delete" ? change : { ...change, value: utils.keep(mutation.modified) };
  });
  const receipt = await log.write({ changes, ...(producer === undefined ? {} : { producer }) });
  if (!receipt.applied) throw new PerdureError("conflict", `The write was refused: ${receipt.refused}.`);
}

/** The additions of a collection that lives on a log, or undefined for any other collection. */
export function logUtilsOf(collection: { readonly utils: UtilsRecord }): LogUtils | undefined {
  const utils = collection.utils as Partial<LogUtils>;
  return utils.log !== undefined && utils.confirmed !== undefined ? (utils as LogUtils) : undefined;
}
