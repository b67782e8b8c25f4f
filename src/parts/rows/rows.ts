import { PerdureError } from "../../base/error.ts";
import { fingerprint } from "../../base/hash.ts";
import type { AgentHost } from "../../port.ts";
import {
  collectionNames,
  type CollectionRow,
  prepareRows,
  producerEpoch,
  putCollectionRow,
  readCollectionRow,
  rowsLife,
  writeProducerEpoch,
} from "../../store/collection-row.ts";
import { findCollectionWrite, rememberCollectionWrite, rowCounters } from "../../store/collection-write.ts";
import { canonicalJson, sortedJson } from "../../tool/digest.ts";
import { encodeFrame } from "../../wire/encode.ts";
import type { JsonObject } from "../../wire/json.ts";
import {
  type AppliedRowChange,
  encodeChangedFrame,
  encodeRowChange,
  MAX_ROW_CHANGES,
  type RowCondition,
  type RowProducer,
  type RowWrite,
} from "../../wire/row-frames.ts";
import {
  type CheckedChange,
  checkChange,
  checkCondition,
  type Collections,
  isMistake,
  requireReadable,
  requireWritable,
  rowError,
} from "./rules.ts";
import type { Connection } from "../../door/connection.ts";

/** What became of a write to rows. */
export interface RowOutcome {
  /** False: a condition did not hold, or a row was there or not there; nothing was changed. */
  readonly applied: boolean;
  /** Why it was refused. */
  readonly refused?: string;
  /** The number of the write; of one that was refused, that of the last one that was applied. */
  readonly seq: number;
}

/** Who writes rows: the client of a connection, or server code. */
export type RowSource = Connection | "server";

/** The agent that owns the rows. */
interface CollectionOwner {
  collections(): Collections;
  /** After a write was committed. Must not throw. */
  changed(changes: readonly AppliedRowChange[], source: RowSource): void;
  connections(): Iterable<Connection>;
  /** The app has made a mistake. Must not throw. */
  failed(error: unknown): void;
}

/** The rows of an agent's collections. Keeps nothing in memory, so there is nothing that a rollback could leave wrong. */
export class CollectionRows {
  readonly host: AgentHost;
  readonly #owner: CollectionOwner;

  constructor(host: AgentHost, owner: CollectionOwner) {
    this.host = host;
    this.#owner = owner;
  }

  get collections(): Collections {
    return this.#owner.collections();
  }

  /** Names the rows as long as the agent exists; "" before the first of them. */
  get life(): string {
    return rowsLife(this.host) ?? "";
  }

  /** The number of the last write that was applied. */
  get seq(): number {
    return this.life === "" ? 0 : rowCounters(this.host).seq;
  }

  /** Somebody was refused: the app hears of it if that was because of a rule that cannot work. */
  heardOf(thrown: unknown): void {
    if (isMistake(thrown)) this.#owner.failed(thrown);
  }

  /** The collections that have, or had, rows. */
  names(): string[] {
    return this.life === "" ? [] : collectionNames(this.host);
  }

  /** The row, also one that was deleted. */
  read(collection: string, key: string): CollectionRow | undefined {
    return this.life === "" ? undefined : readCollectionRow(this.host, collection, key);
  }

  /** Applies a write, whole or not at all, and tells its followers. @throws PerdureError when it breaks a rule, or `fenced` */
  write(write: RowWrite, source: RowSource): RowOutcome {
    const changes = this.#check(write, source);
    const name = { txid: write.txid, digest: write.txid === undefined ? undefined : digestOf(write, source) };
    return this.host.tx((): RowOutcome => {
      const first = this.life === "";
      const life = prepareRows(this.host);
      const known = write.txid === undefined ? undefined : findCollectionWrite(this.host, write.txid);
      if (known !== undefined) {
        if (known.digest !== null && known.digest !== name.digest) throw usedAgain(write.txid);
        return outcomeOf(known.seq, known.refused);
      }
      if (write.producer !== undefined) this.#admit(write.producer);
      const refused = this.#refusal(changes, write.when ?? []);
      const counters = rowCounters(this.host);
      if (refused !== undefined) {
        rememberCollectionWrite(this.host, name, counters, refused);
        return outcomeOf(counters.seq, refused);
      }
      const seq = counters.seq + 1;
      const applied = this.#apply(changes, seq, counters.nextOrder, name);
      this.#tell(seq, applied, { txid: write.txid, life: first ? life : undefined });
      this.host.afterTx((committed) => {
        if (committed)
          this.#owner.changed(
            applied.map(({ change }) => change),
            source,
          );
      });
      return outcomeOf(seq, null);
    });
  }

  #check(write: RowWrite, source: RowSource): CheckedChange[] {
    if (write.changes.length === 0)
      throw new PerdureError("bad_input", "The write is empty. Give it at least one change.");
    if (write.changes.length > MAX_ROW_CHANGES) {
      throw new PerdureError("limit", `A write may have at most ${MAX_ROW_CHANGES} changes. Split it.`);
    }
    const { collections } = this;
    const changes = write.changes.map((change) => checkChange(collections, change, source !== "server"));
    for (const condition of write.when ?? []) {
      checkCondition(collections, condition);
      // A refusal tells the version of the row.
      if (source !== "server") requireReadable(collections, condition.table, source);
    }
    if (source !== "server") {
      const read = (table: string, key: string) => this.read(table, key)?.value ?? null;
      requireWritable(collections, changes, source, write.producer, read);
    }
    return changes;
  }

  #admit({ id, epoch }: RowProducer): void {
    const latest = producerEpoch(this.host, id);
    if (latest === epoch) return;
    if (latest !== undefined && epoch < latest) {
      throw new PerdureError(
        "fenced",
        `The writer "${id}" of epoch ${epoch} was overtaken by epoch ${latest}: another runner has its work now. Stop this one.`,
      );
    }
    writeProducerEpoch(this.host, id, epoch);
  }

  #refusal(changes: readonly CheckedChange[], when: readonly RowCondition[]): string | undefined {
    for (const { table, key, version } of when) {
      const found = readCollectionRow(this.host, table, key)?.version ?? 0;
      if (found !== version) return `the row "${key}" of "${table}" is at version ${found}, not ${version}`;
    }
    // Rows of this write count as there or gone for the changes behind them.
    const within = new Map<string, boolean>();
    for (const { change } of changes) {
      const { table, key, operation } = change;
      const name = JSON.stringify([table, key]);
      const there = within.get(name) ?? (readCollectionRow(this.host, table, key)?.value ?? null) !== null;
      if (operation === "insert" && there) return `there is a row "${key}" in "${table}" already`;
      if ((operation === "update" || operation === "delete") && !there) return `there is no row "${key}" in "${table}"`;
      within.set(name, operation !== "delete");
    }
    return undefined;
  }

  #apply(changes: readonly CheckedChange[], seq: number, firstOrder: number, name: WriteName): Applied[] {
    let nextOrder = firstOrder;
    const applied = changes.map(({ change, json }): Applied => {
      const { table, key } = change;
      const before = readCollectionRow(this.host, table, key);
      const old = before?.value ?? null;
      const version = (before?.version ?? 0) + 1;
      const order = old === null || before === undefined ? nextOrder++ : before.order;
      putCollectionRow(this.host, { collection: table, key, version, order, seq, value: json });
      const operation = json === null ? "delete" : old === null ? "insert" : "update";
      const value = change.value ?? (old === null ? {} : (JSON.parse(old) as JsonObject));
      const done: AppliedRowChange = { table, key, operation, version, order, value };
      return { change: done, text: encodeRowChange(done, json) };
    });
    rememberCollectionWrite(this.host, name, { seq, nextOrder }, null);
    return applied;
  }

  /** Each follower gets the changes of the collections that it follows; the same text for all who follow the same. */
  #tell(seq: number, applied: readonly Applied[], about: { txid: string | undefined; life: string | undefined }): void {
    const tables = [...new Set(applied.map(({ change }) => change.table))];
    const frames = new Map<string, string>();
    for (const connection of this.#owner.connections()) {
      const mine = tables.filter((table) => this.#follows(connection, table));
      if (mine.length === 0) continue;
      const name = JSON.stringify(mine);
      let frame = frames.get(name);
      if (frame === undefined) {
        const texts = applied.filter(({ change }) => mine.includes(change.table)).map(({ text }) => text);
        frames.set(name, (frame = encodeChangedFrame(seq, texts, about)));
      }
      connection.send(frame);
    }
  }

  /** Rights may have changed since it subscribed. */
  #follows(connection: Connection, table: string): boolean {
    const { names, all } = connection.following;
    const isNamed = names.includes(table);
    if (!isNamed && !all) return false;
    try {
      requireReadable(this.collections, table, connection);
      return true;
    } catch (thrown) {
      this.heardOf(thrown);
      if (isNamed) this.#lose(connection, table, thrown);
      return false;
    }
  }

  /** Tells a follower that it may not follow a collection any more. */
  #lose(connection: Connection, table: string, thrown: unknown): void {
    const { following } = connection;
    connection.following = { ...following, names: following.names.filter((name) => name !== table) };
    const error = rowError(thrown);
    this.host.emit("collection:lost", { connectionId: connection.id, collection: table, code: error.code });
    connection.send(encodeFrame({ type: "perdure_rows_error", collection: table, error }));
  }
}

type WriteName = Parameters<typeof rememberCollectionWrite>[1];

/**
 * Of what is written, and by whom. Not of conditions or a producer's epoch: whoever takes over may send the same under others. An
 * update counts by its row, since what it writes depends on what it found. No identity: nobody in particular.
 */
function digestOf(write: RowWrite, source: RowSource): string {
  const changes = write.changes.map((change) => (change.operation === "update" ? { ...change, value: null } : change));
  if (source === "server") return fingerprint(canonicalJson([["server"], changes]));
  const author = source.identity === undefined ? [] : ["user", source.identity.id];
  // Read from a frame: it is JSON as it is.
  return fingerprint(sortedJson([author, changes]));
}

function usedAgain(txid: string | undefined): PerdureError {
  return new PerdureError(
    "conflict",
    `The transaction id ${JSON.stringify(txid)} was already used for another write. Nothing was changed. Use a new id for each write.`,
  );
}

interface Applied {
  readonly change: AppliedRowChange;
  readonly text: string;
}

function outcomeOf(seq: number, refused: string | null): RowOutcome {
  return refused === null ? { applied: true, seq } : { applied: false, refused, seq };
}
