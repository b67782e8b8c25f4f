import { PerdureError } from "../../base/error.ts";
import type { ClaimBeat, ClaimRecord, ClaimRow } from "../contract.ts";
import { logUtilsOf } from "../log/collection-options.ts";
import type { RowLog } from "../log/row-log.ts";
import type { RowChange, RowCondition } from "../../wire/row-frames.ts";
import { rowsOf, type RowCollection, type Rows } from "../log/rows.ts";

const BEAT = "beat:";

/** The rows of a collection of claims, by what they are. */
export interface ClaimTable {
  readonly log: RowLog;
  readonly rows: Rows<ClaimRecord>;
  claim(id: string): ClaimRow | undefined;
  beat(id: string): ClaimBeat | undefined;
  claims(): ClaimRow[];
  /** A condition that holds as long as the claim does not change hands. */
  unchanged(id: string): RowCondition;
  /** A condition that holds as long as the holder gives no further sign of life. */
  silent(id: string): RowCondition;
  /** The change that removes the holder's sign of life, if there is one. */
  withoutBeat(id: string): RowChange[];
  put(operation: "insert" | "update" | "upsert", row: ClaimRecord): RowChange;
  remove(key: string): RowChange;
  /** @returns whether it was applied. */
  write(changes: readonly RowChange[], when?: readonly RowCondition[]): Promise<boolean>;
  /** Tells which claims have a new row or a new sign of life; undefined: any of them. */
  watch(listener: (ids: readonly string[] | undefined, rowsChanged: boolean) => void): () => void;
}

/** @throws PerdureError `bad_config` when the collection is not on a log. */
export function openClaimTable(collection: RowCollection<ClaimRecord>): ClaimTable {
  const rows = rowsOf(collection);
  const utils = logUtilsOf(collection);
  if (utils === undefined) {
    throw new PerdureError(
      "bad_config",
      `The collection "${collection.id}" cannot hold claims: it is not on a log, so two writers could both believe ` +
        "that they have it. Create it with logCollectionOptions, or with the options of a backend of perdure/collections.",
    );
  }
  const { log, tableName: name, admit } = utils;
  const condition = (key: string): RowCondition => ({ table: name, key, version: log.table(name).version(key) });
  const remove = (key: string): RowChange => ({ table: name, key, operation: "delete" });
  const claim = (id: string) => {
    const row = rows.get(id);
    return row?.kind === "claim" ? row : undefined;
  };
  const beat = (id: string) => {
    const row = rows.get(beatKey(id));
    return row?.kind === "beat" ? row : undefined;
  };
  return {
    log,
    rows,
    claim,
    beat,
    claims: () => rows.all().filter((row) => row.kind === "claim"),
    unchanged: condition,
    silent: (id) => condition(beatKey(id)),
    withoutBeat: (id) => (beat(id) === undefined ? [] : [remove(beatKey(id))]),
    put: (operation, row) => ({ table: name, key: row.id, operation, value: admit(row) }),
    remove,
    write: async (changes, when = []) => (await log.write({ changes, when })).applied,
    watch: (listener) =>
      log.table(name).subscribe((changes, reset) => {
        if (reset) return listener(undefined, true);
        const keys = changes.map(({ key }) => key);
        listener(
          keys.map((key) => (key.startsWith(BEAT) ? key.slice(BEAT.length) : key)),
          keys.some((key) => !key.startsWith(BEAT)),
        );
      }),
  };
}

/** The key of a claim's sign of life. */
export function beatKey(id: string): string {
  return BEAT + id;
}

/** @throws PerdureError `bad_input` */
export function requireClaimId(id: string): void {
  if (id !== "" && !id.startsWith(BEAT)) return;
  throw new PerdureError(
    "bad_input",
    `A claim cannot be called "${id}": its id names the work and must not begin with "${BEAT}".`,
  );
}
