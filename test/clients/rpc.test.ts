import { callable } from "perdure";
import { subscribe } from "perdure/node";
import { expect, test } from "vitest";
import { Base } from "./fixtures.ts";
import { atEnd, connect, connected, eventually, type Frame, ofType, rawSocket, startHost } from "./harness.ts";

class Calculator extends Base {
  static {
    for (const name of [
      "add",
      "slow",
      "nothing",
      "none",
      "undef",
      "echo",
      "count",
      "fail",
      "failAsync",
      "failOdd",
    ] as const) {
      callable(this, name);
    }
    for (const name of ["cycle", "big", "func", "date", "hold"] as const) callable(this, name);
  }

  readonly held: (() => void)[] = [];
  released = 0;

  add(a: number, b: number): number {
    return a + b;
  }
  async slow(value: string, rounds: number): Promise<string> {
    for (let i = 0; i < rounds; i++) await new Promise(setImmediate);
    return value;
  }
  nothing(): void {}
  none(): null {
    return null;
  }
  undef(): undefined {
    return undefined;
  }
  echo(...args: unknown[]): unknown {
    return args;
  }
  count(...args: unknown[]): number {
    return args.length;
  }
  fail(): never {
    throw new TypeError("it broke");
  }
  async failAsync(): Promise<never> {
    await Promise.resolve();
    throw new Error("it broke later");
  }
  failOdd(what: string): never {
    throw what === "object" ? { secret: 1 } : what === "empty" ? new Error("") : what;
  }
  cycle(): unknown {
    const value: Record<string, unknown> = {};
    value.self = value;
    return value;
  }
  big(): bigint {
    return 10n;
  }
  func(): unknown {
    return { run: () => 1, ok: true };
  }
  date(): Date {
    return new Date(0);
  }
  /** Answers only when it is let go. */
  async hold(): Promise<string> {
    await new Promise<void>((resolve) => this.held.push(resolve));
    this.released++;
    return "let go";
  }
  letGo(): number {
    for (const resolve of this.held.splice(0)) resolve();
    return this.released;
  }
  waiting(): number {
    return this.held.length;
  }
  /** Not callable: nothing marks it. */
  secret(): string {
    return "secret";
  }
}

class Scientific extends Calculator {
  static {
    callable(this, "power");
  }
  power(a: number, b: number): number {
    return a ** b;
  }
  /** Overriding takes the mark away: it must be said again. */
  override add(a: number, b: number): number {
    return super.add(a, b);
  }
}

const start = () => startHost({ agents: { Calculator, Scientific } });
const options = { agent: "Calculator", name: "x" };

test("results: plain, asynchronous, none, null and undefined", async () => {
  const { client, frames } = await connected(await start(), options);
  expect(await client.call("add", [1, 2])).toBe(3);
  expect(await client.call("slow", ["later", 3])).toBe("later");
  expect(await client.call("nothing")).toBeUndefined();
  expect(await client.call("none")).toBeNull();
  expect(await client.call("undef")).toBeUndefined();
  expect(await client.call("date")).toBe("1970-01-01T00:00:00.000Z");
  expect(await client.call("func")).toEqual({ ok: true });
  expect(ofType(frames, "rpc").every(({ success, done }) => success === true && done === true)).toBe(true);
});

test("arguments: none, many, nested, falsy, odd text", async () => {
  const { client } = await connected(await start(), options);
  expect(await client.call("count")).toBe(0);
  expect(await client.call("count", [])).toBe(0);
  expect(await client.call("count", [null, undefined, 0])).toBe(3);
  const args = [{ a: [1, { b: null }], "": "" }, [], [[]], 0, false, "", null, 1.5e300, "ü€😀\u2028\u0000"];
  expect(await client.call("echo", args)).toEqual(args);
  expect(await client.call("echo", ["x".repeat(1_000_000)])).toHaveLength(1);
});

test("the stub calls methods, and is never asked for the names that languages ask for", async () => {
  const { client, frames } = await connected(await start(), options);
  expect(await client.stub.add?.(20, 22)).toBe(42);
  expect(JSON.stringify({ stub: client.stub })).toBe('{"stub":{}}');
  expect(await Promise.resolve(client.stub)).toBe(client.stub);
  expect(ofType(frames, "rpc")).toHaveLength(1);
});

test("what a method throws is the error of the call", async () => {
  const { client } = await connected(await start(), options);
  await expect(client.call("fail")).rejects.toThrow("it broke");
  await expect(client.call("failAsync")).rejects.toThrow("it broke later");
  await expect(client.call("failOdd", ["text"])).rejects.toThrow("text");
  await expect(client.call("failOdd", ["object"])).rejects.toThrow("Unknown error occurred");
  await expect(client.call("failOdd", ["empty"])).rejects.toThrow("Error");
  expect(await client.call("add", [1, 1])).toBe(2);
});

test("unknown methods, unmarked methods, fields and inherited names cannot be called", async () => {
  const { client } = await connected(await start(), options);
  await expect(client.call("nope")).rejects.toThrow("Method nope does not exist");
  await expect(client.call("secret")).rejects.toThrow("Method secret is not callable");
  await expect(client.call("released")).rejects.toThrow("Method released does not exist");
  for (const name of [
    "setState",
    "sql",
    "destroy",
    "onConnect",
    "broadcast",
    "toString",
    "constructor",
    "hasOwnProperty",
  ]) {
    await expect(client.call(name), name).rejects.toThrow(`Method ${name} is not callable`);
  }
  for (const name of ["__proto__", "state", "name", ""]) {
    await expect(client.call(name), name).rejects.toThrow(`Method ${name} does not exist`);
  }
});

test("callables are inherited; an override is callable only if it says so", async () => {
  const { client } = await connected(await start(), { agent: "Scientific", name: "x" });
  expect(await client.call("power", [2, 10])).toBe(1024);
  expect(await client.call("slow", ["inherited", 1])).toBe("inherited");
  await expect(client.call("add", [1, 2])).rejects.toThrow("Method add is not callable");
});

test("a result that JSON cannot hold is still answered, with an error", async () => {
  const { client } = await connected(await start(), options);
  await expect(client.call("cycle")).rejects.toThrow("The result cannot be written as JSON");
  await expect(client.call("big")).rejects.toThrow("The result cannot be written as JSON");
  expect(await client.call("ping")).toBe("pong");
});

test("many calls at once are answered each for itself, whatever their order", async () => {
  const { client, frames } = await connected(await start(), options);
  const numbers = Array.from({ length: 200 }, (_, i) => i);
  const calls = numbers.map((i) => client.call("slow", [`v${i}`, (i * 7) % 20]));
  expect(await Promise.all(calls)).toEqual(numbers.map((i) => `v${i}`));
  const ids = ofType(frames, "rpc").map(({ id }) => id);
  expect(new Set(ids).size).toBe(200);
});

test("a slow call does not hold up a quick one", async () => {
  const host = await start();
  const { client } = await connected(host, options);
  const slow = client.call("hold");
  expect(await client.call("add", [1, 2])).toBe(3);
  const stub = host.getAgentByName(Calculator, "x");
  await eventually(async () => expect(await stub.waiting()).toBe(1));
  await stub.letGo();
  expect(await slow).toBe("let go");
});

test("only the caller gets the answer", async () => {
  const host = await start();
  const a = await connected(host, { ...options, id: "same" });
  const b = await connected(host, { ...options, id: "same" });
  await a.client.call("add", [1, 2]);
  await b.client.call("ping");
  expect(ofType(a.frames, "rpc")).toHaveLength(1);
  expect(ofType(b.frames, "rpc").map(({ result }) => result)).toEqual(["pong"]);
});

test("the answer to a caller who has left goes nowhere and harms nothing", async () => {
  const host = await start();
  const { client } = await connected(host, options);
  const stub = host.getAgentByName(Calculator, "x");
  const call = client.call("hold");
  await eventually(async () => expect(await stub.waiting()).toBe(1));
  client.close();
  await expect(call).rejects.toThrow("Connection closed");
  await eventually(async () => expect(await stub.ids()).toEqual([]));
  await stub.letGo();
  await eventually(async () => expect(await stub.letGo()).toBe(1));
  const again = await connected(host, options);
  expect(await again.client.call("ping")).toBe("pong");
});

test("a request with wrong fields is answered with an error under its id, if it has one; more fields do no harm", async () => {
  const host = await start();
  const { ws, frames } = await rawSocket(`${host.url}/agents/calculator/x`);
  const bad: unknown[] = [
    { type: "rpc", method: "ping", args: [] },
    { type: "rpc", id: null, method: "ping", args: [] },
    { type: "rpc", id: 5, method: "ping", args: [] },
    { type: "rpc", id: "1", args: [] },
    { type: "rpc", id: "2", method: null, args: [] },
    { type: "rpc", id: "3", method: "ping" },
    { type: "rpc", id: "4", method: "ping", args: { 0: 1 } },
    { type: "rpc", id: "5", method: "ping", args: null },
  ];
  for (const frame of bad) ws.send(JSON.stringify(frame));
  ws.send(JSON.stringify({ type: "rpc", id: "good", method: "ping", args: [], extra: { x: 1 }, done: false }));
  const answers = await eventually(() => {
    const found: Frame[] = ofType(frames, "rpc");
    expect(found.map(({ id }) => id)).toContain("good");
    return found;
  });
  expect(answers).toEqual([
    ...["1", "2", "3", "4", "5"].map((id) => ({
      type: "rpc",
      id,
      success: false,
      error: expect.any(String) as unknown,
    })),
    { type: "rpc", id: "good", success: true, result: "pong", done: true },
  ]);
});

test("each call is reported", async () => {
  const seen: unknown[] = [];
  atEnd(subscribe("rpc:called", ({ payload: { method, ok, error } }) => void seen.push({ method, ok, error })));
  const { client } = connect(await start(), options);
  await client.call("add", [1, 2]);
  await client.call("fail").catch(() => undefined);
  expect(seen).toEqual([
    { method: "add", ok: true, error: undefined },
    { method: "fail", ok: false, error: "it broke" },
  ]);
});
