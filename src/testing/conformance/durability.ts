import { type BenchCases, halves, inside, scenario } from "./bench.ts";
import { same, undo } from "./ensure.ts";

const MANY = 500;

export const durabilityCases: BenchCases = {
  "durable: resolves with nothing written, and twice": inside(async (agent) => {
    await agent.durable();
    agent.sql("CREATE TABLE t (value INTEGER)");
    await Promise.all([agent.durable(), agent.durable()]);
    await agent.durable();
  }),
  "durable: what it covered is there after a reopen, at both levels and in order": halves(
    async (agent) => {
      agent.sql("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, value INTEGER)");
      for (let value = 0; value < MANY; value++) {
        agent.tx(() => agent.sql("INSERT INTO t (value) VALUES (?)", value), value % 2 === 0 ? "commit" : "sync");
      }
      await agent.durable();
    },
    (agent) => {
      const rows = agent.sql<{ value: number }>("SELECT value FROM t ORDER BY id");
      same(
        rows.map((row) => row.value),
        Array.from({ length: MANY }, (_, index) => index),
        "rows",
      );
    },
  ),
  "durable: nothing of an undone tx is there after a reopen": halves(
    async (agent) => {
      agent.sql("CREATE TABLE t (value TEXT)");
      agent.tx(() => {
        agent.sql("INSERT INTO t VALUES ('kept')");
        undo(agent, () => agent.sql("INSERT INTO t VALUES ('inner')"));
      });
      undo(agent, () => agent.sql("INSERT INTO t VALUES ('outer')"));
      await agent.durable();
    },
    (agent) => same(agent.sql("SELECT value FROM t"), [{ value: "kept" }], "rows"),
  ),
  "durable: survives several lives, each writing": scenario(
    {
      async write(agent, life: number) {
        agent.sql("CREATE TABLE IF NOT EXISTS t (life INTEGER)");
        agent.sql("INSERT INTO t VALUES (?)", life);
        await agent.durable();
      },
      rows: (agent) => agent.sql("SELECT life FROM t"),
    },
    async (bench) => {
      for (const life of [1, 2, 3]) {
        await bench.act("a", "write", life);
        await bench.reopen();
      }
      same(await bench.act("a", "rows"), [{ life: 1 }, { life: 2 }, { life: 3 }], "rows");
    },
  ),
  "durable: what a caller was told is there after a reopen": scenario({}, async (bench) => {
    same(await bench.call("a", "write", "one"), 1, "rows");
    await bench.reopen();
    same(await bench.call("a", "write", "two"), 2, "rows after a reopen");
  }),
  "id: is the same in every life": scenario({ self: ({ id, path }) => ({ id, path }) }, async (bench) => {
    const before = await bench.act("name", "self");
    await bench.reopen();
    same(await bench.act("name", "self"), before, "id and path");
  }),
};
