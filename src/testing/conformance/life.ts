import type { AgentHost } from "../../port.ts";
import { agentId } from "../../wire/agent-path.ts";
import { type BenchCases, inside, scenario } from "./bench.ts";
import { ensure, eventually, rejects, same } from "./ensure.ts";
import { createProbe, lifeOf, pathOf } from "./probe.ts";

/** What agents were given, for those that come after them in the same process. */
const environments: object[] = [];
const earlier = new Map<string, AgentHost>();

export const lifeCases: BenchCases = {
  "call: wakes another agent, copies plain data both ways, hands on errors": inside(async (agent) => {
    const other = pathOf("b");
    same(await agent.call(other, "ping", []), "pong", "answer");
    const data = { list: [1, "zwei", null, { deep: true }], bytes: new Uint8Array([1, 2]) };
    same(await agent.call(other, "echo", [data]), data, "data");
    const mine: unknown[] = ["mine"];
    same(await agent.call(other, "change", [mine]), ["mine", "changed"], "the other's copy");
    same(mine, ["mine"], "my own data");
    await rejects(agent.call(other, "no such method", []), "an unknown method", "not_callable");
    await rejects(agent.call([{ className: "NoSuchClass", name: "x" }], "ping", []), "a class", "unknown_agent");
  }),
  "call: many at once reach one life": scenario(
    {
      async write(agent) {
        const path = pathOf("b");
        const counts = await Promise.all(Array.from({ length: 20 }, () => agent.call(path, "write", ["x"])));
        same(Math.max(...counts.map(Number)), 20, "rows in the end");
      },
    },
    async (bench) => {
      await bench.act("a", "write");
      same((await bench.notes("started", agentId(pathOf("b")))).length, 1, "lives");
    },
  ),
  "classNameOf: the registered name, or unknown_agent": inside(async (agent) => {
    const { cls } = lifeOf(agent);
    same(agent.classNameOf(cls), pathOf("a")[0].className, "name");
    await rejects(
      Promise.resolve().then(() => agent.classNameOf(createProbe({}).Agent)),
      "a class of another host",
      "unknown_agent",
    );
  }),
  "keepAwake: settles as its work does": inside(async (agent) => {
    same(await agent.keepAwake(Promise.resolve(7)), 7, "value");
    const reason = new Error("no");
    const seen = await agent.keepAwake(Promise.reject(reason)).catch((error: unknown) => error);
    ensure(seen === reason, "rejects with the same error");
  }),
  "env: one object for every agent": scenario(
    {
      number({ env }) {
        if (!environments.includes(env)) environments.push(env);
        return environments.indexOf(env);
      },
    },
    async (bench) => same(await bench.act("a", "number"), await bench.act("b", "number"), "the object of two agents"),
  ),
  "context: follows asynchronous work and nothing else": inside(async ({ context }) => {
    const later = async () => {
      await new Promise((resolve) => void setTimeout(resolve, 1));
      return context.get();
    };
    const around = context.get();
    const [one, two] = await Promise.all([
      context.run("one", later),
      context.run("two", async () => [await later(), context.run("inner", () => context.get()), context.get()]),
    ]);
    same([one, two], ["one", ["two", "inner", "two"]], "values");
    ensure(context.get() === around, "what is outside stays as it was");
  }),
  "abort: ends a life and its calls; rows stay and the next use begins a new life": scenario(
    {
      remember: (agent) => void earlier.set(agent.id, agent),
      async abort(agent) {
        const path = pathOf("b");
        await agent.call(path, "write", ["x"]);
        const gone = rejects(agent.call(path, "hang", []), "a call under way", "agent_gone");
        // The call must have reached the agent before its life is ended.
        await agent.call(path, "ping", []);
        agent.abort(path, "a reason");
        await gone;
        same(await agent.call(path, "write", ["y"]), 2, "rows in the next life");
      },
      async look(agent) {
        const before = earlier.get(agent.id);
        ensure(before !== undefined && before !== agent, "it is a new life");
        ensure(lifeOf(before).halted, "the agent was told");
        const write = Promise.resolve().then(() => before.sql("INSERT INTO t VALUES ('from a past life')"));
        await rejects(write, "a write of a life that is over", "agent_gone");
      },
    },
    async (bench) => {
      await bench.act("b", "remember");
      await bench.act("a", "abort");
      await bench.act("b", "look");
    },
  ),
  "remove: deletes an agent with its children, rows, blobs and alarms, and no other": scenario(
    {
      fill: async (agent) => {
        for (const path of [pathOf("b"), pathOf("b", "kid"), pathOf("b2"), pathOf("c")]) {
          await agent.call(path, "write", ["x"]);
        }
      },
      put: ({ blobs }) => blobs.put(new Uint8Array([1])),
      async remove(agent) {
        await agent.remove(pathOf("b"));
        same(await agent.call(pathOf("b"), "write", ["y"]), 1, "rows of the deleted one, made anew");
        same(await agent.call(pathOf("b", "kid"), "write", ["y"]), 1, "rows of its child");
        same(await agent.call(pathOf("b2"), "write", ["y"]), 2, "rows of one with a similar name");
        await agent.remove(pathOf("c"));
        await agent.remove(pathOf("never", "there"));
      },
      look: async ({ blobs }, name: string) => same(await blobs.get(name), undefined, "its blob"),
      again: async (agent) => same(await agent.call(pathOf("c"), "write", ["z"]), 1, "rows after a reopen"),
    },
    async (bench) => {
      await bench.act("a", "fill");
      const name = await bench.act("b", "put");
      await bench.act("a", "remove");
      await bench.act("b", "look", name);
      await bench.reopen();
      await bench.act("a", "again");
      const lives = async () => (await bench.notes("started", agentId(pathOf("c")))).length;
      await eventually(async () => (await lives()) > 1, "it lives again");
    },
  ),
};
