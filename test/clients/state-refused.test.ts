import { globSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { PerdureError, type StateSource } from "perdure";
import { expect, test } from "vitest";
import { Base, type Count, Counter } from "./fixtures.ts";
import { connect, connected, ofType, startHost, stopHost, takeFailures } from "./harness.ts";

class Guarded extends Base<Count> {
  static override options = { allowClientState: true };
  override initialState: Count = { count: 1 };

  override validateStateChange(next: Count, source: StateSource): void {
    if (next.count < 0)
      throw new Error(`count ${next.count} leaks from ${source === "server" ? "the server" : source.id}`);
  }

  read(): Count {
    return this.state;
  }

  put(state: unknown): void {
    this.setState(state as Count);
  }
}

class Clumsy extends Base<Count> {
  static override options = { allowClientState: true };
  override initialState: Count = { count: 0 };

  override onStateChanged(): void {
    throw new Error("after the change");
  }

  failures(): string[] {
    return this.errors.map(String);
  }
}

test("clients may not set the state unless the class lets them; the refusal steps them back", async () => {
  const host = await startHost({ agents: { Counter } });
  const a = await connected<Count>(host, { agent: "Counter", name: "x" });
  const b = await connected<Count>(host, { agent: "Counter", name: "x" });
  a.client.setState({ count: 99 });
  expect(a.client.state).toEqual({ count: 99 });
  await a.client.call("ping");
  await b.client.call("ping");
  expect(a.stateErrors).toHaveLength(1);
  expect(a.stateErrors[0]).toMatch(/may not set the state/);
  expect(a.client.state).toEqual({ count: 0 });
  expect(a.states.map(({ source }) => source)).toEqual(["server", "client", "server"]);
  expect(b.states).toHaveLength(1);
  expect(b.stateErrors).toEqual([]);
  expect(await host.getAgentByName(Counter, "x").read()).toBe(0);
});

test("a validator refuses: the sender is told so without details, nobody else hears of it", async () => {
  const host = await startHost({ agents: { Guarded } });
  const a = await connected<Count>(host, { agent: "Guarded", name: "x" });
  const b = await connected<Count>(host, { agent: "Guarded", name: "x" });
  a.client.setState({ count: -5 });
  await a.client.call("ping");
  await b.client.call("ping");
  expect(a.stateErrors).toEqual(["State update rejected"]);
  expect(JSON.stringify(a.frames)).not.toContain("leaks");
  expect(a.client.state).toEqual({ count: 1 });
  expect(b.states).toHaveLength(1);
  expect(await host.getAgentByName(Guarded, "x").read()).toEqual({ count: 1 });
});

class Tag {
  readonly name = "x";
}

test.each<[string, unknown, string]>([
  ["a function", { count: 1, on: { done: () => 1 } }, "a function at `on.done`"],
  ["a method in a list", { count: 1, list: [1, { run() {} }] }, "a function at `list[1].run`"],
  ["a Set", { count: 1, seen: new Set([1]) }, "a Set at `seen`"],
  ["a Map", { count: 1, "by name": [new Map()] }, 'a Map at `["by name"][0]`'],
  ["an object of a class", { count: 1, a: { b: new Tag() } }, "a Tag at `a.b`"],
  ["a state that is one", new Tag(), "a Tag"],
  ["an error", { count: 1, why: new Error("x") }, "a Error at `why`"],
  ["a symbol", { count: 1, kind: Symbol("x") }, "a symbol at `kind`"],
  ["a BigInt", { count: 1, total: [1n] }, "a BigInt at `total[0]`"],
  ["NaN", { count: Number.NaN }, "NaN at `count`"],
])("setState with %s, which JSON would lose, is refused with its place, and changes nothing", async (_, next, says) => {
  const host = await startHost({ agents: { Guarded } });
  const a = await connected<Count>(host, { agent: "Guarded", name: "x" });
  const stub = host.getAgentByName(Guarded, "x");
  await expect(stub.put(next)).rejects.toMatchObject({
    code: "bad_input",
    message: expect.stringContaining(says) as unknown,
  });
  await a.client.call("ping");
  expect(await stub.read()).toEqual({ count: 1 });
  expect(a.states).toHaveLength(1);
});

test("setState takes plain JSON, fields that are undefined, and what says how it is written", async () => {
  const host = await startHost({ agents: { Guarded } });
  const a = await connected<Count>(host, { agent: "Guarded", name: "x" });
  const bare = Object.assign(Object.create(null) as object, { deep: [[{ a: null }]] });
  await host.getAgentByName(Guarded, "x").put({ count: 2, at: new Date(0), none: undefined, bare });
  await a.client.call("ping");
  expect(a.client.state).toEqual({ count: 2, at: "1970-01-01T00:00:00.000Z", bare: { deep: [[{ a: null }]] } });
});

test("after a refusal the same client may go on", async () => {
  const host = await startHost({ agents: { Guarded } });
  const a = await connected<Count>(host, { agent: "Guarded", name: "x" });
  for (let i = 0; i < 20; i++) a.client.setState({ count: -1 - i });
  a.client.setState({ count: 2 });
  await a.client.call("ping");
  expect(a.stateErrors).toHaveLength(20);
  expect(await host.getAgentByName(Guarded, "x").read()).toEqual({ count: 2 });
  const late = await connected<Count>(host, { agent: "Guarded", name: "x" });
  expect(late.client.state).toEqual({ count: 2 });
});

test("a validator refuses the server's own change too, with its own error", async () => {
  const host = await startHost({ agents: { Guarded } });
  const { client, states } = await connected<Count>(host, { agent: "Guarded", name: "x" });
  const stub = host.getAgentByName(Guarded, "x");
  await expect(stub.put({ count: -1 })).rejects.toThrow("count -1 leaks from the server");
  await client.call("ping");
  expect(states).toHaveLength(1);
  expect(await stub.read()).toEqual({ count: 1 });
});

test("a state that JSON cannot hold is refused and changes nothing", async () => {
  const host = await startHost({ agents: { Guarded } });
  const { client, states } = await connected<Count>(host, { agent: "Guarded", name: "x" });
  const stub = host.getAgentByName(Guarded, "x");
  const cycle: Record<string, unknown> = { count: 3 };
  cycle.self = cycle;
  for (const value of [undefined, { count: 1n }, cycle]) {
    const error = await stub.put(value).catch((thrown: unknown) => thrown);
    expect(PerdureError.is(error, "bad_input")).toBe(true);
  }
  await client.call("ping");
  expect(states).toHaveLength(1);
  expect(await stub.read()).toEqual({ count: 1 });
});

test("`setState(undefined)` of a client is no state frame and changes nothing", async () => {
  const host = await startHost({ agents: { Guarded } });
  const a = await connected<Count | undefined>(host, { agent: "Guarded", name: "x" });
  a.client.setState(undefined);
  await a.client.call("ping");
  expect(await host.getAgentByName(Guarded, "x").read()).toEqual({ count: 1 });
});

test("a hook that fails after the change does not stop it", async () => {
  const host = await startHost({ agents: { Clumsy } });
  const a = await connected<Count>(host, { agent: "Clumsy", name: "x" });
  const b = await connected<Count>(host, { agent: "Clumsy", name: "x" });
  a.client.setState({ count: 8 });
  await a.client.call("ping");
  await b.client.call("ping");
  expect(b.client.state).toEqual({ count: 8 });
  expect(a.stateErrors).toEqual([]);
  expect(await host.getAgentByName(Clumsy, "x").failures()).toEqual(["Error: after the change"]);
});

test("JSON nested too deep is not taken for a state, and the connection lives on", async () => {
  const host = await startHost({ agents: { Guarded } });
  const { client, frames } = connect<Count>(host, { agent: "Guarded", name: "x" });
  const depth = 5_000;
  client.send(`{"type":"cf_agent_state","state":${"[".repeat(depth)}${"]".repeat(depth)}}`);
  expect(await client.call("ping")).toBe("pong");
  expect(ofType(frames, "cf_agent_state_error")).toHaveLength(1);
  // On connect, and once more so that the client can step back.
  expect(ofType(frames, "cf_agent_state")).toHaveLength(2);
  expect(await host.getAgentByName(Guarded, "x").read()).toEqual({ count: 1 });
});

test("a stored state that is no JSON any more gives way to the initial one, and is reported", async () => {
  const first = await startHost({ agents: { Counter } });
  await first.getAgentByName(Counter, "x").add(5);
  const dir = await stopHost(first);
  const [file] = globSync("agents/**/*.db", { cwd: dir });
  const db = new Database(join(dir, file ?? ""));
  db.exec("UPDATE perdure_state SET value = '{broken'");
  db.close();
  const second = await startHost({ agents: { Counter }, dir });
  const { client } = await connected<Count>(second, { agent: "Counter", name: "x" });
  expect(client.state).toEqual({ count: 0 });
  expect(takeFailures()).toEqual([expect.stringContaining("Counter/x state: The stored state is not JSON")]);
  expect(await client.call("add", [2])).toBe(2);
  expect(client.state).toEqual({ count: 2 });
});
