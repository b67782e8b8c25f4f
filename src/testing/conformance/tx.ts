import type { AgentHost, WriteLevel } from "../../port.ts";
import { type BenchCase, type BenchCases, inside } from "./bench.ts";
import { ensure, refuses, same } from "./ensure.ts";

const DEEP = 20;

/** What a case throws on purpose. */
class Undo extends Error {}

function open(agent: AgentHost): void {
  agent.sql("CREATE TABLE t (value TEXT UNIQUE)");
}

function add(agent: AgentHost, value: string): void {
  agent.sql("INSERT INTO t VALUES (?)", value);
}

function values(agent: AgentHost): unknown[] {
  return agent.sql("SELECT value FROM t ORDER BY value").map((row) => row.value);
}

/** `work` must throw, and what it throws is what the caller sees. */
function undone(agent: AgentHost, work: () => void, level?: WriteLevel): void {
  const reason = new Undo("undo");
  let seen: unknown;
  try {
    agent.tx(() => {
      work();
      throw reason;
    }, level);
  } catch (error) {
    seen = error;
  }
  ensure(seen === reason, "tx throws the very error that its work threw");
}

function commitsAllOrNothing(level: WriteLevel): BenchCase {
  return inside((agent) => {
    open(agent);
    const result = { any: "value" };
    const returned = agent.tx(() => {
      add(agent, "a");
      add(agent, "b");
      return result;
    }, level);
    ensure(returned === result, "tx returns what its work returned");
    const work = () => {
      add(agent, "c");
      agent.sql("DELETE FROM t");
      agent.sql("CREATE TABLE other (x)");
    };
    undone(agent, work, level);
    same(values(agent), ["a", "b"], "rows");
    refuses(() => agent.sql("SELECT * FROM other"), "a table of an undone tx", "sql_failed");
  });
}

export const txCases: BenchCases = {
  "tx: commits all or nothing (sync)": commitsAllOrNothing("sync"),
  "tx: commits all or nothing (commit)": commitsAllOrNothing("commit"),
  "tx: reads its own writes": inside((agent) => {
    open(agent);
    agent.tx(() => {
      add(agent, "a");
      same(values(agent), ["a"], "rows inside");
    });
  }),
  "tx: an inner one that throws undoes only itself": inside((agent) => {
    open(agent);
    agent.tx(() => {
      add(agent, "before");
      undone(agent, () => add(agent, "inner"));
      agent.tx(() => add(agent, "second inner"));
      add(agent, "past");
    });
    same(values(agent), ["before", "past", "second inner"], "rows");
  }),
  "tx: an outer one that throws undoes inner ones that were done": inside((agent) => {
    open(agent);
    add(agent, "kept");
    undone(agent, () => {
      agent.tx(() => add(agent, "inner"));
      same(
        agent.tx(() => values(agent)),
        ["inner", "kept"],
        "rows inside",
      );
    });
    same(values(agent), ["kept"], "rows");
  }),
  "tx: nests deeply": inside((agent) => {
    open(agent);
    const level = (depth: number): void =>
      agent.tx(() => {
        add(agent, `in ${String(depth).padStart(2, "0")}`);
        if (depth < DEEP) level(depth + 1);
        undone(agent, () => add(agent, `gone ${depth}`));
      });
    level(1);
    const expected = Array.from({ length: DEEP }, (_, index) => `in ${String(index + 1).padStart(2, "0")}`);
    same(values(agent), expected, "rows");
  }),
  "tx: goes on after a statement that failed inside": inside((agent) => {
    open(agent);
    agent.tx(() => {
      add(agent, "a");
      refuses(() => add(agent, "a"), "a double", "sql_failed");
      add(agent, "b");
    });
    same(values(agent), ["a", "b"], "rows");
  }),
  "tx: a promise is refused and its writes undone": inside((agent) => {
    open(agent);
    refuses(
      () =>
        agent.tx(async () => {
          add(agent, "a");
        }),
      "async work",
    );
    agent.tx(() => {
      add(agent, "outer");
      refuses(() => agent.tx(() => Promise.resolve(add(agent, "inner"))), "a promise in an inner tx");
    });
    same(values(agent), ["outer"], "rows");
  }),
  "tx: works again after one was undone": inside((agent) => {
    open(agent);
    undone(agent, () => undefined);
    undone(agent, () => add(agent, "a"));
    agent.tx(() => add(agent, "a"));
    add(agent, "b");
    same(values(agent), ["a", "b"], "rows");
  }),
};
