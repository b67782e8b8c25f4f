import type { AgentHost, SqlValue } from "../../port.ts";
import { type BenchCases, halves, inside } from "./bench.ts";
import { ensure, refuses, same } from "./ensure.ts";

const MEGABYTE = 1024 * 1024;

const largeText = (): string => "ü👍".repeat(MEGABYTE / 8);
const largeBytes = (): Uint8Array => Uint8Array.from({ length: MEGABYTE }, (_, index) => index % 251);

const REFUSED = [
  "BEGIN",
  "BEGIN IMMEDIATE",
  "COMMIT",
  "END",
  "ROLLBACK",
  "SAVEPOINT x",
  "RELEASE x",
  "PRAGMA journal_mode = DELETE",
  "PRAGMA user_version",
  "ATTACH ':memory:' AS other",
  "DETACH other",
  "VACUUM",
  "VACUUM INTO 'copy.db'",
  "  begin",
  "\n\tCommit ;",
  "-- a comment\nPRAGMA user_version",
  "/* a comment */ VACUUM",
  "/**/--\n/* */savepoint x",
  ";COMMIT",
  " ; -- a comment\n ; PRAGMA user_version = 9",
];

const VALUES: readonly (readonly [string, SqlValue])[] = [
  ["null", null],
  ["zero", 0],
  ["an integer", -42],
  ["the largest safe integer", Number.MAX_SAFE_INTEGER],
  ["the smallest safe integer", Number.MIN_SAFE_INTEGER],
  ["a fraction", 0.1],
  ["a large fraction", 1.7e308],
  ["empty text", ""],
  ["text with quotes", `it's "quoted"; -- not a comment ? :x @y`],
  ["text in many scripts", "Zürich 東京 עברית 👩‍👩‍👧 e\u0301 \u{10FFFF}"],
  ["text with line breaks", "a\r\nb\tc"],
  ["no bytes", new Uint8Array()],
  ["all bytes", Uint8Array.from({ length: 256 }, (_, index) => index)],
  ["a window on larger bytes", new Uint8Array([0, 1, 2, 3, 4, 5]).subarray(2, 4)],
];

export const sqlCases: BenchCases = {
  "sql: every kind of value comes back as it was stored": halves(
    (agent) => {
      agent.sql("CREATE TABLE v (id INTEGER PRIMARY KEY, value)");
      for (const [what, value] of VALUES) {
        const id = agent.sql<{ id: number }>("INSERT INTO v (value) VALUES (?) RETURNING id", value)[0]?.id ?? 0;
        same(agent.sql("SELECT value FROM v WHERE id = ?", id), [{ value }], what);
        same(agent.sql("SELECT ? AS value", value), [{ value }], `${what}, as a parameter only`);
      }
    },
    (agent) => {
      const stored = agent.sql("SELECT value FROM v ORDER BY id");
      same(
        stored,
        VALUES.map(([, value]) => ({ value })),
        "all values after a reopen",
      );
    },
  ),
  "sql: bytes come back as a Uint8Array of their own": inside((agent) => {
    const read = () => agent.sql<{ bytes: unknown }>("SELECT x'0102' AS bytes")[0]?.bytes;
    const first = read();
    ensure(first instanceof Uint8Array, "bytes are a Uint8Array");
    first[0] = 9;
    same(read(), new Uint8Array([1, 2]), "bytes read again");
  }),
  "sql: large text and large bytes": halves(
    (agent) => {
      agent.sql("CREATE TABLE large (text TEXT, bytes BLOB)");
      agent.sql("INSERT INTO large VALUES (?, ?)", largeText(), largeBytes());
    },
    (agent) => {
      const [row] = agent.sql<{ text: string; bytes: Uint8Array }>("SELECT text, bytes FROM large");
      const bytes = largeBytes();
      ensure(row !== undefined && row.text === largeText(), "a large text is the same");
      ensure(row.bytes.length === bytes.length && row.bytes.every((byte, at) => byte === bytes[at]), "so are bytes");
    },
  ),
  "sql: rows come in order, statements without rows return none": inside((agent) => {
    same(agent.sql("CREATE TABLE n (value INTEGER)"), [], "CREATE");
    same(agent.sql("INSERT INTO n VALUES (1)"), [], "INSERT");
    same(agent.sql("SELECT value FROM n WHERE value > 1"), [], "SELECT of nothing");
    agent.sql(
      "WITH RECURSIVE c(x) AS (SELECT 2 UNION ALL SELECT x + 1 FROM c WHERE x < 5000) INSERT INTO n SELECT x FROM c",
    );
    const rows = agent.sql<{ value: number }>("SELECT value FROM n ORDER BY value");
    ensure(rows.length === 5000 && rows.every(({ value }, index) => value === index + 1), "5000 rows, in order");
  }),
  "sql: the dialect has upserts, RETURNING, JSON and full-text search": inside((agent) => {
    agent.sql("CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID");
    const put = "INSERT INTO kv VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value RETURNING value";
    same(agent.sql(put, "a", "1"), [{ value: "1" }], "insert");
    same(agent.sql(put, "a", "2"), [{ value: "2" }], "update");
    same(agent.sql("SELECT json_extract(?, '$.b[1]') AS x", '{"b":[1,2]}'), [{ x: 2 }], "json_extract");
    agent.sql("CREATE VIRTUAL TABLE words USING fts5(body)");
    agent.sql("INSERT INTO words VALUES ('durable agents'), ('other text')");
    same(agent.sql("SELECT body FROM words WHERE words MATCH ?", "agents"), [{ body: "durable agents" }], "fts5");
  }),
  "sql: statements that reach around the host are refused and change nothing": halves(
    async (agent) => {
      agent.sql("CREATE TABLE t (value INTEGER)");
      const refuseAll = (when: string): void => {
        for (const query of REFUSED) refuses(() => agent.sql(query), `${JSON.stringify(query)} ${when}`, "sql_refused");
      };
      refuseAll("at first");
      agent.tx(() => {
        agent.sql("INSERT INTO t VALUES (1)");
        refuseAll("in a tx");
        agent.tx(() => refuseAll("in an inner tx"));
      });
      // The host has run some of these itself by now.
      refuseAll("after a tx");
      same(agent.sql("SELECT value FROM t"), [{ value: 1 }], "rows after the refusals");
      await agent.durable();
    },
    (agent) => {
      same(agent.sql("SELECT value FROM t"), [{ value: 1 }], "rows after a reopen");
    },
  ),
  "sql: two statements in one query are not half done": inside((agent) => {
    agent.sql("CREATE TABLE t (value INTEGER)");
    for (const query of ["INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)", "INSERT INTO t VALUES (1); COMMIT"]) {
      refuses(() => agent.sql(query), query, "sql_refused");
      agent.tx(() => refuses(() => agent.sql(query), `${query}, in a tx`, "sql_refused"));
    }
    refuses(() => agent.sql(""), "no statement", "sql_failed", "sql_refused");
    same(agent.sql("SELECT * FROM t"), [], "rows");
  }),
  "sql: no statement ends the transaction around it": inside((agent) => {
    agent.sql("CREATE TABLE t (value INTEGER UNIQUE)");
    agent.tx(() => {
      agent.sql("INSERT INTO t VALUES (1)");
      refuses(() => agent.sql("INSERT OR ROLLBACK INTO t VALUES (1)"), "OR ROLLBACK", "sql_refused");
      agent.sql("INSERT INTO t VALUES (2)");
    });
    same(agent.sql("SELECT value FROM t ORDER BY value"), [{ value: 1 }, { value: 2 }], "rows");
  }),
  "sql: what SQLite refuses is sql_failed and changes nothing": inside((agent) => {
    agent.sql("CREATE TABLE u (value INTEGER UNIQUE NOT NULL CHECK (value < 10))");
    agent.sql("INSERT INTO u VALUES (1)");
    const wrong: readonly (readonly [string, ...SqlValue[]])[] = [
      ["SELECT * FROM no_such_table"],
      ["SELECT no_such_column FROM u"],
      ["SELEC 1"],
      ["INSERT INTO u VALUES (1)"],
      ["INSERT INTO u VALUES (NULL)"],
      ["INSERT INTO u SELECT 5 UNION ALL SELECT 50"],
      ["INSERT INTO u VALUES (?)"],
      ["INSERT INTO u VALUES (?)", 2, 3],
    ];
    for (const [query, ...args] of wrong) refuses(() => agent.sql(query, ...args), query, "sql_failed");
    same(values(agent), [1], "rows");
  }),
};

function values(agent: AgentHost): unknown[] {
  return agent.sql("SELECT value FROM u ORDER BY value").map((row) => row.value);
}
