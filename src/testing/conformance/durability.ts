import type { BenchCases } from "./bench.ts";
import { same, undo } from "./ensure.ts";

const MANY = 500;

export const durabilityCases: BenchCases = {
  "durable: resolves with nothing written, and twice": async (bench) => {
    const agent = await bench.agent();
    await agent.durable();
    agent.sql("CREATE TABLE t (value INTEGER)");
    await Promise.all([agent.durable(), agent.durable()]);
    await agent.durable();
  },
  "durable: what it covered is there after a reopen, at both levels and in order": async (bench) => {
    const agent = await bench.agent();
    agent.sql("CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, value INTEGER)");
    for (let value = 0; value < MANY; value++) {
      agent.tx(() => agent.sql("INSERT INTO t (value) VALUES (?)", value), value % 2 === 0 ? "commit" : "sync");
    }
    await agent.durable();
    await bench.reopen();
    const rows = (await bench.agent()).sql<{ value: number }>("SELECT value FROM t ORDER BY id");
    same(
      rows.map((row) => row.value),
      Array.from({ length: MANY }, (_, index) => index),
      "rows",
    );
  },
  "durable: nothing of an undone tx is there after a reopen": async (bench) => {
    const agent = await bench.agent();
    agent.sql("CREATE TABLE t (value TEXT)");
    agent.tx(() => {
      agent.sql("INSERT INTO t VALUES ('kept')");
      undo(agent, () => agent.sql("INSERT INTO t VALUES ('inner')"));
    });
    undo(agent, () => agent.sql("INSERT INTO t VALUES ('outer')"));
    await agent.durable();
    await bench.reopen();
    same((await bench.agent()).sql("SELECT value FROM t"), [{ value: "kept" }], "rows");
  },
  "durable: survives several lives, each writing": async (bench) => {
    for (let life = 1; life <= 3; life++) {
      const agent = await bench.agent();
      agent.sql("CREATE TABLE IF NOT EXISTS t (life INTEGER)");
      agent.sql("INSERT INTO t VALUES (?)", life);
      await agent.durable();
      await bench.reopen();
    }
    same((await bench.agent()).sql("SELECT life FROM t"), [{ life: 1 }, { life: 2 }, { life: 3 }], "rows");
  },
  "id: is the same in every life": async (bench) => {
    const { id, path } = await bench.agent("name");
    await bench.reopen();
    const again = await bench.agent("name");
    same([again.id, again.path], [id, path], "id and path");
  },
};
