import type { AgentHost } from "../../port.ts";
import { type BenchCases, scenario } from "./bench.ts";
import { ensure, refuses, same, undo } from "./ensure.ts";
import { pathOf } from "./probe.ts";

/** Names that a careless host could mix up, or let out of its folder. */
const NAMES = ["a", "A", "a b", "a_b", "a/b", "a%2Fb", "../a", "a.db", "ä", "a\u0308", "名前", "a:b", "x".repeat(200)];

function own(agent: AgentHost, value: string): void {
  agent.sql("CREATE TABLE t (value TEXT)");
  agent.sql("INSERT INTO t VALUES (?)", value);
}

export const isolationCases: BenchCases = {
  "isolation: each agent has a database of its own, whatever the names": scenario(
    {
      own(agent, name: string) {
        same(agent.path, pathOf(name), `the path of ${JSON.stringify(name)}`);
        own(agent, name);
        return agent.id;
      },
      rows: (agent) => agent.sql("SELECT value FROM t"),
    },
    async (bench) => {
      const ids = new Set<string>();
      for (const name of NAMES) ids.add(await bench.act(name, "own", name));
      same(ids.size, NAMES.length, "different ids");
      await bench.reopen();
      for (const name of NAMES) same(await bench.act(name, "rows"), [{ value: name }], name);
    },
  ),
  "isolation: a table of one agent is unknown to another": scenario(
    {
      own: (agent) => own(agent, "a"),
      look: (agent) => void refuses(() => agent.sql("SELECT * FROM t"), "another agent's table", "sql_failed"),
    },
    async (bench) => {
      await bench.act("a", "own");
      await bench.act("b", "look");
    },
  ),
  "isolation: a tx that is undone leaves other agents' writes alone": scenario(
    {
      own: (agent, value: string) => own(agent, value),
      async undo(agent) {
        let written: Promise<unknown> | undefined;
        undo(agent, () => {
          agent.sql("DELETE FROM t");
          written = agent.call(pathOf("b"), "write", ["second"]);
        });
        same(await written, 2, "rows that the other counts");
      },
      rows: (agent) => agent.sql("SELECT value FROM t ORDER BY value"),
    },
    async (bench) => {
      for (const name of ["a", "b"]) await bench.act(name, "own", name);
      await bench.act("a", "undo");
      same(await bench.act("a", "rows"), [{ value: "a" }], "rows of a");
      same(await bench.act("b", "rows"), [{ value: "b" }, { value: "second" }], "rows of b");
    },
  ),
  "isolation: children have databases of their own": scenario(
    {
      async write(parent) {
        const children = [pathOf("a", "kid"), pathOf("a", "kid", "a"), pathOf("b", "kid"), pathOf("kid")];
        for (const child of children) {
          const names = child.map((step) => step.name).join(" > ");
          same(await parent.call(child, "write", ["x"]), 1, `rows of ${names}`);
        }
        refuses(() => parent.sql("SELECT * FROM t"), "a child's table", "sql_failed");
      },
    },
    async (bench) => {
      await bench.act("a", "write");
      const ids = (await bench.notes("started")).map(({ id }) => id);
      ensure(new Set(ids).size === ids.length, "different ids");
    },
  ),
};
