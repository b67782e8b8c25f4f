import type pg from "pg";
import { errorText, PerdureError } from "../../../base/error.ts";
import { monotonicClock } from "../../../base/time.ts";
import type { AgentEntry, Append, Claim, Engine, Settlement, StoredAgent } from "./engine.ts";
import * as sql from "./pg-tables.ts";

/** Beside the one that appends: loads, folds, blobs, and what keeps this node alive. */
const POOL = 4;
const STATEMENT_TIMEOUT_MS = 10_000;
const IDLE_IN_TRANSACTION_MS = 5_000;
const CONNECT_TIMEOUT_MS = 5_000;
const RETRY_MS = 100;
const BLOB_PART_BYTES = 1024 * 1024;

type Row = Record<string, unknown>;

/** {@link Engine} on PostgreSQL, by the package `pg`. */
export class PgEngine implements Engine {
  readonly #pg: typeof pg;
  readonly #config: pg.PoolConfig;
  readonly #pool: pg.Pool;
  /** All appends go through one connection: one that breaks tells at once of everything that was on its way. */
  #line: pg.Client | undefined;
  #closed = false;
  #ok = true;
  #roundTripMs = 0;

  private constructor(driver: typeof pg, url: string) {
    this.#pg = driver;
    this.#config = {
      connectionString: url,
      application_name: "perdure",
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
      keepAlive: true,
    };
    this.#pool = new driver.Pool({ ...this.#config, max: POOL });
    // A connection that breaks while nobody uses it is replaced.
    this.#pool.on("error", () => {});
  }

  /** @throws PerdureError `bad_config` when the package is not there */
  static async open(url: string): Promise<PgEngine> {
    let driver: typeof pg;
    try {
      driver = (await import("pg")).default;
    } catch (thrown) {
      throw new PerdureError("bad_config", "`cluster` needs the package pg: run `npm install pg`.", { cause: thrown });
    }
    return new PgEngine(driver, url);
  }

  get health() {
    return { ok: this.#ok, roundTripMs: this.#roundTripMs };
  }

  async join(node: string, address: string, ttlMs: number): Promise<readonly string[]> {
    let client: pg.PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (thrown) {
      throw new PerdureError(
        "bad_config",
        `The database of the cluster cannot be reached: ${errorText(thrown)}. See \`cluster.url\`.`,
        { cause: thrown },
      );
    }
    try {
      const notices = await checkSettings(client);
      await makeTables(client);
      await client.query(sql.PLAIN.forget);
      await client.query(sql.PLAIN.join, [node, address, ttlMs]);
      return notices;
    } finally {
      client.release();
    }
  }

  async renew(node: string, ttlMs: number): Promise<boolean> {
    const begun = monotonicClock.now();
    try {
      const rows = await this.#rows(sql.PLAIN.renew, [node, ttlMs]);
      this.#ok = true;
      this.#roundTripMs = Math.round((monotonicClock.now() - begun) * 10) / 10;
      return rows.length > 0;
    } catch (thrown) {
      this.#ok = false;
      throw thrown;
    }
  }

  async leave(node: string): Promise<void> {
    await this.#rows(sql.PLAIN.leave, [node]);
  }

  async keepTemplate(hash: string, bytes: Uint8Array): Promise<void> {
    await this.#rows(sql.PLAIN.keepTemplate, [hash, bytes]);
  }

  async claim(root: string, node: string): Promise<Claim | { readonly owner: string }> {
    const [claimed] = await this.#rows(sql.CLAIM, [root, node]);
    if (claimed === undefined) {
      const [row] = await this.#rows(sql.PLAIN.owner, [root]);
      const address = row?.["address"];
      return { owner: typeof address === "string" ? address : "" };
    }
    const agents = await this.#rows(sql.PLAIN.agents, [root]);
    const lost = await this.#rows(sql.PLAIN.lost, [root]);
    return {
      epoch: Number(claimed["epoch"]),
      agents: agents.map(toEntry),
      lost: lost.map((row) => ({ child: String(row["child"]), parent: String(row["parent"]) })),
    };
  }

  async release(root: string, epoch: number): Promise<void> {
    await this.#rows(sql.RELEASE, [root, epoch]);
  }

  async load(id: string): Promise<StoredAgent | undefined> {
    const [agent] = await this.#rows(sql.PLAIN.agent, [id]);
    if (agent === undefined) return undefined;
    const from = Number(agent["base"]);
    const deltas = await this.#rows(sql.PLAIN.deltas, [id, from]);
    let seq = from;
    for (const row of deltas) if (Number(row["seq"]) !== ++seq) throw torn(id, seq);
    if (from === 0) {
      const [template] = await this.#rows(sql.PLAIN.template, [agent["template"]]);
      if (template === undefined) throw torn(id, 0);
      return {
        seq,
        base: { template: bytesOf(template, "bytes") },
        deltas: deltas.map((row) => bytesOf(row, "pages")),
      };
    }
    const base = await this.#rows(sql.PLAIN.base, [id, from]);
    if (base.length === 0) throw torn(id, from);
    return { seq, base: base.map((row) => bytesOf(row, "bytes")), deltas: deltas.map((row) => bytesOf(row, "pages")) };
  }

  async append(items: readonly Append[]): Promise<ReadonlySet<number>> {
    const line = (this.#line ??= await this.#connect());
    const column = <K extends keyof Append>(name: K) => items.map((item) => item[name]);
    const values = [column("root"), column("epoch"), column("id"), column("seq"), column("template"), column("pages")];
    let rows: Row[];
    try {
      ({ rows } = await line.query<Row>(sql.APPEND, values));
    } catch (thrown) {
      this.#line = undefined;
      line.end().catch(() => {});
      throw thrown;
    }
    // By all that names a delta: one that was refused may have the number of one that came in under another epoch.
    const there = new Set(rows.map((row) => `${String(row["agent"])} ${String(row["seq"])} ${String(row["epoch"])}`));
    const done = new Set<number>();
    items.forEach(({ id, seq, epoch }, place) => {
      if (there.has(`${id} ${seq} ${epoch}`)) done.add(place);
    });
    return done;
  }

  settle({ root, epoch, asleep }: Settlement): Promise<boolean> {
    return this.#fenced(sql.SETTLE, [root, epoch, asleep.map(({ id }) => id), asleep.map(({ alarm }) => alarm)]);
  }

  async fold(
    { root, epoch, id, seq }: Omit<Append, "pages" | "template">,
    parts: AsyncIterable<Uint8Array>,
  ): Promise<boolean> {
    let part = 0;
    for await (const bytes of parts) {
      const rows = await this.#rows(sql.BASE_PART, [root, epoch, id, seq, part++, bytes]);
      if (rows.length === 0) return false;
    }
    return this.#fenced(sql.FOLD, [root, epoch, id, seq, part]);
  }

  doom(
    root: string,
    epoch: number,
    ids: readonly string[],
    lost?: { child: string; parent: string },
  ): Promise<boolean> {
    return this.#fenced(sql.DOOM, [root, epoch, ids, lost?.child ?? null, lost?.parent ?? null]);
  }

  told(root: string, epoch: number, child: string): Promise<boolean> {
    return this.#fenced(sql.TOLD, [root, epoch, child]);
  }

  remove(root: string, epoch: number, id: string): Promise<boolean> {
    return this.#fenced(sql.REMOVE, [root, epoch, id]);
  }

  async due(now: number, limit: number): Promise<string[]> {
    return (await this.#rows(sql.DUE, [Math.floor(now), limit])).map((row) => String(row["id"]));
  }

  async exists(id: string): Promise<boolean> {
    return (await this.#rows(sql.PLAIN.exists, [id])).length > 0;
  }

  async putBlob(root: string, epoch: number, id: string, name: string, bytes: Uint8Array): Promise<boolean> {
    // The first part last: who finds it finds all.
    const parts = Math.max(1, Math.ceil(bytes.length / BLOB_PART_BYTES));
    for (let part = parts - 1; part >= 0; part--) {
      const piece = bytes.subarray(part * BLOB_PART_BYTES, (part + 1) * BLOB_PART_BYTES);
      const rows = await this.#rows(sql.BLOB_PART, [root, epoch, id, name, part, piece]);
      if (rows.length === 0) return false;
    }
    return true;
  }

  async getBlob(id: string, name: string): Promise<Uint8Array | undefined> {
    const rows = await this.#rows(sql.PLAIN.blob, [id, name]);
    return rows.length === 0 ? undefined : new Uint8Array(Buffer.concat(rows.map((row) => bytesOf(row, "bytes"))));
  }

  deleteBlob(root: string, epoch: number, id: string, name: string): Promise<boolean> {
    return this.#fenced(sql.DELETE_BLOB, [root, epoch, id, name]);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.allSettled([this.#line?.end(), this.#pool.end()]);
  }

  async #rows(query: string, values: readonly unknown[]): Promise<Row[]> {
    return (await this.#pool.query<Row>(query, values as unknown[])).rows;
  }

  async #fenced(query: string, values: readonly unknown[]): Promise<boolean> {
    const [row] = await this.#rows(query, values);
    return Number(row?.["n"]) > 0;
  }

  /** Nothing was sent yet, so it may wait for the database as long as it likes. */
  async #connect(): Promise<pg.Client> {
    for (;;) {
      const client = new this.#pg.Client(this.#config);
      client.on("error", () => {});
      client.on("end", () => {
        if (this.#line === client) this.#line = undefined;
      });
      try {
        await client.connect();
        return client;
      } catch (thrown) {
        await client.end().catch(() => {});
        if (this.#closed) throw thrown;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }
}

/** @throws PerdureError `bad_config` @returns what may be lost as it is set up, in words */
async function checkSettings(client: pg.PoolClient): Promise<string[]> {
  const show = async (name: string) => {
    const { rows } = await client.query<Row>(`SHOW ${name}`);
    return String(rows[0]?.[name]);
  };
  if ((await show("fsync")) === "off") {
    throw new PerdureError(
      "bad_config",
      "The database of the cluster has fsync=off: a power loss would lose what clients were shown. Turn it on.",
    );
  }
  if ((await show("synchronous_commit")) !== "off") return [];
  return [
    "The database of the cluster has synchronous_commit=off: when it crashes, the last commits that clients were shown are lost.",
  ];
}

async function makeTables(client: pg.PoolClient): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(sql.PLAIN.lock);
    const { rows } = await client.query<Row>(sql.PLAIN.hasSchema);
    if (rows[0]?.["there"] !== true) for (const table of sql.TABLES) await client.query(table);
    const found = Number((await client.query<Row>(sql.PLAIN.schema)).rows[0]?.["id"]);
    if (found > sql.SCHEMA) {
      throw new PerdureError(
        "database_newer",
        `The tables of the cluster are of a newer Perdure (step ${found}, this one knows ${sql.SCHEMA}). Update this node.`,
      );
    }
    await client.query("COMMIT");
  } catch (thrown) {
    await client.query("ROLLBACK");
    throw thrown;
  }
}

function toEntry(row: Row): AgentEntry {
  const alarm = row["alarm"];
  return {
    id: String(row["id"]),
    awake: row["awake"] === true,
    alarm: alarm === null ? null : Number(alarm),
    doomed: row["doomed"] === true,
  };
}

function bytesOf(row: Row, name: string): Uint8Array {
  const value = row[name];
  if (!(value instanceof Uint8Array)) throw new PerdureError("database_corrupt", `The column ${name} holds no bytes.`);
  return value;
}

function torn(id: string, seq: number): PerdureError {
  return new PerdureError(
    "database_corrupt",
    `Of the rows of ${id} in the cluster's database number ${seq} is missing. Restore the database from a backup; nothing was changed.`,
  );
}
