import type { AgentHost } from "../../port.ts";
import type { BenchCases } from "./bench.ts";
import { ensure, refuses, same, undo } from "./ensure.ts";

/** Names that a careless host could mix up, or let out of its folder. */
const NAMES = ["a", "A", "a b", "a_b", "a/b", "a%2Fb", "../a", "a.db", "ä", "a\u0308", "名前", "a:b", "x".repeat(200)];

function own(agent: AgentHost, value: string): void {
  agent.sql("CREATE TABLE t (value TEXT)");
  agent.sql("INSERT INTO t VALUES (?)", value);
}

export const isolationCases: BenchCases = {
  "isolation: each agent has a database of its own, whatever the names": async (bench) => {
    const ids = new Set<string>();
    for (const name of NAMES) {
      const agent = await bench.agent(name);
      same(agent.path, bench.probe.pathOf(name), `the path of ${JSON.stringify(name)}`);
      ids.add(agent.id);
      own(agent, name);
      await agent.durable();
    }
    same(ids.size, NAMES.length, "different ids");
    await bench.reopen();
    for (const name of NAMES) same((await bench.agent(name)).sql("SELECT value FROM t"), [{ value: name }], name);
  },
  "isolation: a table of one agent is unknown to another": async (bench) => {
    own(await bench.agent("a"), "a");
    const other = await bench.agent("b");
    refuses(() => other.sql("SELECT * FROM t"), "another agent's table", "sql_failed");
  },
  "isolation: a tx that is undone leaves other agents' writes alone": async (bench) => {
    const [a, b] = [await bench.agent("a"), await bench.agent("b")];
    own(a, "a");
    own(b, "b");
    undo(a, () => {
      a.sql("DELETE FROM t");
      b.sql("INSERT INTO t VALUES ('second')");
    });
    same(a.sql("SELECT value FROM t"), [{ value: "a" }], "rows of a");
    same(b.sql("SELECT value FROM t ORDER BY value"), [{ value: "b" }, { value: "second" }], "rows of b");
  },
  "isolation: children have databases of their own": async (bench) => {
    const parent = await bench.agent("a");
    const { pathOf } = bench.probe;
    for (const child of [pathOf("a", "kid"), pathOf("a", "kid", "a"), pathOf("b", "kid"), pathOf("kid")]) {
      same(await parent.call(child, "write", ["x"]), 1, `rows of ${child.map((step) => step.name).join(" > ")}`);
    }
    refuses(() => parent.sql("SELECT * FROM t"), "a child's table", "sql_failed");
    const ids = new Set(bench.probe.lives.map((life) => life.host.id));
    ensure(ids.size === bench.probe.lives.length, "different ids");
  },
};
