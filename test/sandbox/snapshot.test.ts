import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { SUSPEND, type Capabilities, type Json, type RunResult } from "perdure/sandbox";
import { createQuickJsSandbox } from "perdure/tools";
import { runFolder } from "../support/run-folder.ts";

const KEY = "a key for tests";
const sandbox = createQuickJsSandbox({ snapshotKey: KEY });
const other = createQuickJsSandbox({ snapshotKey: KEY });
afterAll(async () => Promise.all([sandbox.dispose(), other.dispose()]));

const can: Capabilities = {
  tools: {
    tools: {
      ask: () => SUSPEND,
      add: (args) => (args as { a: number }).a + 1,
      fail: () => {
        throw new Error("no");
      },
    },
  },
};

type Parked = Extract<RunResult, { status: "suspended" }>;

async function park(code: string, more: Partial<Parameters<typeof sandbox.run>[0]> = {}): Promise<Parked> {
  const result = await sandbox.run({ language: "js", code, can, ...more });
  if (result.status !== "suspended") throw new Error(JSON.stringify(result));
  return result;
}

const valueOf = (result: RunResult): Json | undefined | RunResult => (result.status === "ok" ? result.value : result);

test("a run that asks is parked, and goes on in another sandbox with everything it had", async () => {
  const parked = await park(
    `let n = await tools.add({ a: 1 }); const map = new Map([["k", { n }]]); class Box { constructor(v) { this.v = v } get twice() { return this.v * 2 } }
     const box = new Box(21); function* count() { yield 1; yield 2 } const it = count(); it.next();
     const answer = await tools.ask({ what: "delete?" });
     return [answer, map.get("k").n, box.twice, it.next().value, await tools.add({ a: 10 }), new URL("https://a.example/b").pathname]`,
  );
  expect(parked.calls).toEqual([{ call: 1, namespace: "tools", name: "ask", args: { what: "delete?" } }]);
  const result = await other.resume(parked.snapshot, [{ call: 1, value: "yes" }], { can });
  expect(valueOf(result)).toEqual(["yes", 2, 42, 2, 11, "/b"]);
  expect(result.stats.toolCalls).toBe(3);
});

test("it goes on in another process", async () => {
  const parked = await park(
    "const a = await tools.add({ a: 1 }); const b = await tools.ask({ a }); return { a, b, c: await tools.add({ a: 5 }) }",
  );
  const file = join(runFolder(), "parked.snapshot");
  writeFileSync(file, parked.snapshot);
  const program = join(import.meta.dirname, "resume-elsewhere.ts");
  const { stdout } = await promisify(execFile)(process.execPath, ["--conditions=perdure-source", program, file, KEY]);
  expect(JSON.parse(stdout)).toMatchObject({ status: "ok", value: { a: 2, b: { approved: true }, c: 6 } });
});

test("an answer can be an error, and it can be nothing", async () => {
  const code = "try { return ['value', typeof (await tools.ask({}))] } catch (e) { return ['error', e.message] }";
  const parked = await park(code);
  expect(valueOf(await sandbox.resume(parked.snapshot, [{ call: 0, error: "The person said no." }], { can }))).toEqual([
    "error",
    "The person said no.",
  ]);
  // The same snapshot again: a snapshot is not used up.
  expect(valueOf(await sandbox.resume(parked.snapshot, [{ call: 0 }], { can }))).toEqual(["value", "undefined"]);
});

test("several parked calls are answered one at a time", async () => {
  const parked = await park("return await Promise.all([tools.ask(1), tools.ask(2), tools.ask(3)])");
  expect(parked.calls.map((call) => call.args)).toEqual([1, 2, 3]);
  const second = await sandbox.resume(parked.snapshot, [{ call: 1, value: "b" }], { can });
  if (second.status !== "suspended") throw new Error(JSON.stringify(second));
  expect(second.calls.map((call) => call.call)).toEqual([0, 2]);
  const third = await sandbox.resume(
    second.snapshot,
    [
      { call: 0, value: "a" },
      { call: 2, value: "c" },
    ],
    { can },
  );
  expect(valueOf(third)).toEqual(["a", "b", "c"]);
});

test("it may park again, and numbers go on", async () => {
  const parked = await park("const a = await tools.ask(1); const b = await tools.ask(2); return a + b");
  const again = await sandbox.resume(parked.snapshot, [{ call: 0, value: 20 }], { can });
  if (again.status !== "suspended") throw new Error(JSON.stringify(again));
  expect(again.calls).toEqual([{ call: 1, namespace: "tools", name: "ask", args: 2 }]);
  expect(valueOf(await sandbox.resume(again.snapshot, [{ call: 1, value: 22 }], { can }))).toBe(42);
});

test("calls in flight come to their end before the run is parked", async () => {
  let finish: (value: Json) => void = () => undefined;
  const slow: Capabilities = {
    tools: {
      tools: {
        ask: () => {
          // Only now: the other call is under way when this one is parked.
          setTimeout(() => finish("slow"), 30);
          return SUSPEND;
        },
        slow: async () => new Promise<Json>((resolve) => (finish = resolve)),
      },
    },
  };
  const parked = await park("const both = Promise.all([tools.slow(), tools.ask()]); return await both", { can: slow });
  expect(parked.calls.map((call) => call.name)).toEqual(["ask"]);
  expect(valueOf(await sandbox.resume(parked.snapshot, [{ call: 1, value: "asked" }], { can: slow }))).toEqual([
    "slow",
    "asked",
  ]);
});

test("a timer under way is waited for, one that repeats is not", async () => {
  const parked = await park(
    "let late = 0; setTimeout(() => late = 7, 20); let ticks = 0; const t = setInterval(() => ticks++, 5); await tools.ask(); const seen = late; const before = ticks; await new Promise((r) => setTimeout(r, 40)); clearInterval(t); return [seen, ticks > before]",
  );
  expect(valueOf(await sandbox.resume(parked.snapshot, [{ call: 0 }], { can }))).toEqual([7, true]);
});

test("a run that can go on without the answer does", async () => {
  const result = await sandbox.run({
    language: "js",
    can,
    code: "return await Promise.race([tools.ask(), new Promise((r) => setTimeout(() => r('timeout'), 20))])",
  });
  expect(valueOf(result)).toBe("timeout");
});

test("what was used counts on after the pause", async () => {
  const limits = { toolCalls: 3 };
  const parked = await park("await tools.add({ a: 1 }); await tools.ask(); for (;;) await tools.add({ a: 1 })", {
    limits,
  });
  expect(await sandbox.resume(parked.snapshot, [{ call: 1 }], { can })).toMatchObject({
    status: "limit",
    limit: "toolCalls",
  });
  const printed = await park("console.log('x'.repeat(600)); await tools.ask(); console.log('x'.repeat(600))", {
    limits: { outputBytes: 1_000 },
  });
  expect(await sandbox.resume(printed.snapshot, [{ call: 0 }], { can })).toMatchObject({
    status: "limit",
    limit: "output",
  });
});

test("a resumed guest is under its limits, and leaves the lane in order", async () => {
  const parked = await park("await tools.ask(); for (;;) {}", { limits: { cpuMs: 150 } });
  expect(await sandbox.resume(parked.snapshot, [{ call: 0 }], { can })).toMatchObject({ status: "limit" });
  const bomb = await park("await tools.ask(); const a = []; for (;;) a.push(new Array(1e5).fill(1))", {
    limits: { memoryMB: 32 },
  });
  expect(await sandbox.resume(bomb.snapshot, [{ call: 0 }], { can })).toMatchObject({ status: "limit" });
  expect(valueOf(await sandbox.run({ language: "js", code: "return 42" }))).toBe(42);
});

test("an unknown tool after the pause is an error of the guest", async () => {
  const parked = await park("await tools.ask(); return await tools.add({ a: 1 })");
  const result = await sandbox.resume(parked.snapshot, [{ call: 0 }], {
    can: { tools: { tools: { ask: () => SUSPEND } } },
  });
  expect(result).toMatchObject({
    status: "error",
    error: { message: expect.stringContaining("There is no tools.add. There are: ask.") as string },
  });
});

test("modules can still be imported after the pause", async () => {
  const modules = { m: "export const late = 5" };
  const parked = await park("await tools.ask(); return (await import('m')).late", { modules });
  expect(valueOf(await sandbox.resume(parked.snapshot, [{ call: 0 }], { can, modules }))).toBe(5);
});

test("an abort before, and while it goes on", async () => {
  const parked = await park("await tools.ask(); console.log('on'); for (;;) {}");
  expect(await sandbox.resume(parked.snapshot, [{ call: 0 }], { can, signal: AbortSignal.abort() })).toMatchObject({
    status: "aborted",
  });
  const stop = new AbortController();
  expect(
    await sandbox.resume(parked.snapshot, [{ call: 0 }], { can, signal: stop.signal, onLog: () => stop.abort() }),
  ).toMatchObject({ status: "aborted" });
});

test("answers that do not fit are refused", async () => {
  const { snapshot } = await park("await tools.ask()");
  await expect(sandbox.resume(snapshot, [{ call: 9 }], { can })).rejects.toMatchObject({
    code: "bad_input",
    message: expect.stringContaining("no open call 9") as string,
  });
  await expect(sandbox.resume(snapshot, [{ call: 0 }, { call: 0 }], { can })).rejects.toMatchObject({
    code: "bad_input",
  });
});

test("a snapshot that was touched is refused, wherever it was touched", async () => {
  const { snapshot } = await park("await tools.ask()");
  const places = [5, 20, 37, 41, 60, 400, Math.floor(snapshot.length / 2), snapshot.length - 1];
  for (const at of places) {
    const changed = Uint8Array.from(snapshot);
    changed[at] = (changed[at] ?? 0) ^ 1;
    await expect(sandbox.resume(changed, [{ call: 0 }], { can }), String(at)).rejects.toMatchObject({
      code: "bad_input",
      message: expect.stringContaining("damaged or changed") as string,
    });
  }
  for (const length of [41, 300, snapshot.length - 1]) {
    await expect(sandbox.resume(snapshot.subarray(0, length), [{ call: 0 }], { can })).rejects.toMatchObject({
      code: "bad_input",
    });
  }
});

test.each([
  ["nothing", new Uint8Array()],
  ["garbage", new Uint8Array(500).fill(7)],
  ["an earlier format", new Uint8Array([80, 81, 74, 83, 0, ...new Uint8Array(100)])],
])("%s is no snapshot", async (_name, bytes) => {
  await expect(sandbox.resume(bytes, [], { can })).rejects.toMatchObject({ code: "bad_input" });
});

test("a snapshot that was sealed with another key is refused", async () => {
  const { snapshot } = await park("await tools.ask()");
  const stranger = createQuickJsSandbox({ snapshotKey: "another key" });
  await expect(stranger.resume(snapshot, [{ call: 0 }], { can })).rejects.toMatchObject({
    code: "bad_input",
    message: expect.stringContaining("another snapshotKey") as string,
  });
});
