import type { BenchCases } from "./bench.ts";
import { ensure, eventually, rejects, same } from "./ensure.ts";
import { createProbe } from "./probe.ts";

export const lifeCases: BenchCases = {
  "call: wakes another agent, copies plain data both ways, hands on errors": async (bench) => {
    const agent = await bench.agent("a");
    const other = bench.probe.pathOf("b");
    same(await agent.call(other, "ping", []), "pong", "answer");
    const data = { list: [1, "zwei", null, { deep: true }], bytes: new Uint8Array([1, 2]) };
    same(await agent.call(other, "echo", [data]), data, "data");
    const mine: unknown[] = ["mine"];
    same(await agent.call(other, "change", [mine]), ["mine", "changed"], "the other's copy");
    same(mine, ["mine"], "my own data");
    await rejects(agent.call(other, "no such method", []), "an unknown method", "not_callable");
    await rejects(agent.call([{ className: "NoSuchClass", name: "x" }], "ping", []), "a class", "unknown_agent");
  },
  "call: many at once reach one life": async (bench) => {
    const agent = await bench.agent("a");
    const path = bench.probe.pathOf("b");
    const counts = await Promise.all(Array.from({ length: 20 }, () => agent.call(path, "write", ["x"])));
    same(Math.max(...counts.map(Number)), 20, "rows in the end");
    same(bench.probe.lives.filter(({ host }) => host.path[0].name === "b").length, 1, "lives");
  },
  "classNameOf: the registered name, or unknown_agent": async (bench) => {
    const agent = await bench.agent();
    same(agent.classNameOf(bench.probe.Agent), bench.probe.className, "name");
    await rejects(
      Promise.resolve().then(() => agent.classNameOf(createProbe().Agent)),
      "a class of another host",
      "unknown_agent",
    );
  },
  "keepAwake: settles as its work does": async (bench) => {
    const agent = await bench.agent();
    same(await agent.keepAwake(Promise.resolve(7)), 7, "value");
    const reason = new Error("no");
    const seen = await agent.keepAwake(Promise.reject(reason)).catch((error: unknown) => error);
    ensure(seen === reason, "rejects with the same error");
  },
  "env: one object for every agent": async (bench) => {
    const [one, two] = [await bench.agent("a"), await bench.agent("b")];
    ensure(typeof one.env === "object" && one.env === two.env, "env is not the same object for two agents");
  },
  "context: follows asynchronous work and nothing else": async (bench) => {
    const { context } = await bench.agent();
    const later = async () => {
      await new Promise((resolve) => void setTimeout(resolve, 1));
      return context.get();
    };
    same(context.get(), undefined, "outside");
    const [one, two] = await Promise.all([
      context.run("one", later),
      context.run("two", async () => [await later(), context.run("inner", () => context.get()), context.get()]),
    ]);
    same([one, two, context.get()], ["one", ["two", "inner", "two"], undefined], "values");
  },
  "abort: ends a life and its calls; rows stay and the next use begins a new life": async (bench) => {
    const agent = await bench.agent("a");
    const path = bench.probe.pathOf("b");
    await agent.call(path, "write", ["x"]);
    const life = bench.probe.find("b");
    const gone = rejects(agent.call(path, "hang", []), "a call under way", "agent_gone");
    // The call must have reached the agent before its life is ended.
    await agent.call(path, "ping", []);
    agent.abort(path, "a reason");
    await gone;
    ensure(life?.halted === true, "the agent is told");
    same(await agent.call(path, "write", ["y"]), 2, "rows in the next life");
    ensure(bench.probe.find("b") !== life, "it is a new life");
    await rejects(
      Promise.resolve().then(() => life.host.sql("INSERT INTO t VALUES ('from a past life')")),
      "a write of a life that is over",
      "agent_gone",
    );
  },
  "remove: deletes an agent with its children, rows, blobs and alarms, and no other": async (bench) => {
    const { pathOf } = bench.probe;
    const agent = await bench.agent("a");
    for (const path of [pathOf("b"), pathOf("b", "kid"), pathOf("b2"), pathOf("c")])
      await agent.call(path, "write", ["x"]);
    const name = await bench.probe.host("b").blobs.put(new Uint8Array([1]));
    await agent.remove(pathOf("b"));
    same(await agent.call(pathOf("b"), "write", ["y"]), 1, "rows of the deleted one, made anew");
    same(await agent.call(pathOf("b", "kid"), "write", ["y"]), 1, "rows of its child");
    same(await agent.call(pathOf("b2"), "write", ["y"]), 2, "rows of one with a similar name");
    same(await bench.probe.host("b").blobs.get(name), undefined, "its blob");
    await agent.remove(pathOf("c"));
    await agent.remove(pathOf("never", "there"));
    await bench.reopen();
    same(await (await bench.agent("a")).call(pathOf("c"), "write", ["z"]), 1, "rows after a reopen");
    await eventually(() => bench.probe.find("c")?.started === true, "it lives again");
  },
};
