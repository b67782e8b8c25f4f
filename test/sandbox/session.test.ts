import { afterAll, expect, test } from "vitest";
import { SUSPEND, type Capabilities, type RunResult } from "perdure/sandbox";
import { createQuickJsSandbox } from "perdure/tools";

const sandbox = createQuickJsSandbox({ lanes: { max: 1, warm: 1 } });
afterAll(async () => sandbox.dispose());

const valueOf = (result: RunResult) => (result.status === "ok" ? result.value : result);

const SOURCE = `
let count: number = 0;
return {
  name: "counter",
  tools: { add: { description: "Adds.", inputSchema: { type: "object" }, async execute({ by }: { by: number }) { count += by; return { count } } } },
  hooks: { onStep(state: { n: number }) { return state.n + count }, fail() { count += 100; throw new Error("broken") }, spin() { count += 1000; for (;;); }, print() { console.log("printed") } },
  async host() { return await host.ping({ from: "guest" }) },
  park() { return host.ask() },
  list: [() => "in a list"],
};`;

async function open(can?: Capabilities) {
  return sandbox.open({ language: "ts", code: SOURCE, ...(can === undefined ? {} : { can }) });
}

test("the source runs once; what it returned is described, and its functions are called", async () => {
  const { session, result } = await open();
  expect(valueOf(result)).toEqual({
    name: "counter",
    tools: { add: { description: "Adds.", inputSchema: { type: "object" }, execute: "function" } },
    hooks: { onStep: "function", fail: "function", spin: "function", print: "function" },
    host: "function",
    park: "function",
    list: ["function"],
  });
  expect(valueOf(await session.call("tools.add.execute", [{ by: 2 }]))).toEqual({ count: 2 });
  expect(valueOf(await session.call("tools.add.execute", [{ by: 3 }]))).toEqual({ count: 5 });
  expect(valueOf(await session.call("hooks.onStep", [{ n: 1 }]))).toBe(6);
  expect(valueOf(await session.call("list.0", []))).toBe("in a list");
  expect((await session.call("hooks.print", [])).logs).toEqual([{ level: "log", text: "printed" }]);
  await session.close();
});

test("a call that throws keeps what it did; one that is ended by us does not", async () => {
  const { session } = await open();
  expect(await session.call("hooks.fail", [])).toMatchObject({
    status: "error",
    error: { message: expect.stringContaining("broken") as string },
  });
  expect(await session.call("hooks.spin", [], { limits: { cpuMs: 100 } })).toMatchObject({ status: "limit" });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 30);
  expect(await session.call("hooks.spin", [], { signal: stop.signal })).toMatchObject({ status: "aborted" });
  expect(valueOf(await session.call("tools.add.execute", [{ by: 1 }]))).toEqual({ count: 101 });
});

test.each([
  "nothing",
  "tools",
  "constructor",
  "__proto__.toString",
  "tools.add.execute.call",
  "",
  ".",
  "hooks.constructor",
  "name.length",
  "list.length",
])("%j is no function of the session", async (path) => {
  const { session } = await open();
  expect(await session.call(path, [])).toMatchObject({ status: "error", error: { name: "TypeError" } });
});

test("host functions work in calls, and parking is an error of the guest", async () => {
  const seen: unknown[] = [];
  const { session } = await open({
    tools: {
      host: {
        ping: (args) => {
          seen.push(args);
          return "pong";
        },
        ask: () => SUSPEND,
      },
    },
  });
  for (let at = 0; at < 3; at++) expect(valueOf(await session.call("host", []))).toBe("pong");
  seen.length = 1;
  expect(seen).toEqual([{ from: "guest" }]);
  expect(await session.call("park", [])).toMatchObject({
    status: "error",
    error: { message: expect.stringContaining("ask a person first") as string },
  });
});

test("calls at the same time run one after the other", async () => {
  const { session } = await open();
  const counts = await Promise.all([1, 1, 1].map(async (by) => session.call("tools.add.execute", [{ by }])));
  expect(counts.map(valueOf)).toEqual([{ count: 1 }, { count: 2 }, { count: 3 }]);
});

test("many sessions hold no lane, and do not see each other", async () => {
  const sessions = await Promise.all(Array.from({ length: 8 }, async () => (await open()).session));
  const counts = await Promise.all(sessions.map(async (session, by) => session.call("tools.add.execute", [{ by }])));
  expect(counts.map(valueOf)).toEqual(sessions.map((_session, by) => ({ count: by })));
  expect(valueOf(await sandbox.run({ language: "js", code: "return typeof count" }))).toBe("undefined");
});

test.each([
  ["throws", "throw new Error('no')", "error"],
  ["returns nothing", "const a = 1;", "error"],
  ["returns a text", "return 'x'", "error"],
  ["is no code", "return {", "error"],
  ["loops", "for (;;) {}", "limit"],
  ["returns a circle", "const a = {}; a.a = a; return a", "error"],
])("a source that %s opens nothing", async (_name, code, status) => {
  const { session, result } = await sandbox.open({ language: "js", code, limits: { cpuMs: 100 } });
  expect(result.status).toBe(status);
  expect(await session.call("anything", [])).toMatchObject({
    status: "error",
    error: { message: expect.stringContaining("did not load") as string },
  });
});

test("a closed session has no functions", async () => {
  const { session } = await open();
  await session.close();
  expect(await session.call("tools.add.execute", [{ by: 1 }])).toMatchObject({
    status: "error",
    error: { message: "The session is closed." },
  });
});

test("a source can be a module", async () => {
  const modules = {
    "ext.ts": "import { two } from './two.ts'; export default { f: (n: number): number => n * two }",
    "two.ts": "export const two: number = 2",
  };
  const { session, result } = await sandbox.open({
    language: "ts",
    code: 'return (await import("ext.ts")).default',
    modules,
  });
  expect(valueOf(result)).toEqual({ f: "function" });
  expect(valueOf(await session.call("f", [21]))).toBe(42);
});
