import { expect, test } from "vitest";
import { SUSPEND, type Capabilities } from "perdure/sandbox";
import { sharedSandbox } from "./shared-sandbox.ts";

const { sandbox, run, value, stillWorks } = sharedSandbox({ host: "process", lanes: { max: 1, warm: 1 } });
const can: Capabilities = { tools: { tools: { echo: (args) => args, ask: () => SUSPEND } } };

test("the same guest in a process of its own", async () => {
  expect(await sandbox.probe()).toEqual({ ok: true, detail: expect.stringContaining("process") as string });
  expect(await value("console.log('x'); return await tools.echo({ text: '\u00e9\\n\u2028' })", can)).toEqual({
    text: "\u00e9\n\u2028",
  });
});

test.each([
  ["a loop", "for (;;) {}", { cpuMs: 150, wallMs: 5_000 }, "limit"],
  ["a builtin that nobody can interrupt", "new Array(2 ** 30).join('x')", { wallMs: 300 }, "limit"],
  ["a bomb", "const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))", { memoryMB: 32 }, "limit"],
  ["recursion", "const f = () => f() + 1; f()", {}, "limit"],
  ["deep JSON", "JSON.parse('['.repeat(1e5))", {}, "limit"],
  ["a large result", "return 'x'.repeat(1e5)", { outputBytes: 1_000 }, "limit"],
  ["the constructor of a function", "return (() => 1).constructor('return process')()", {}, "error"],
  ["an import", "await import('node:fs')", {}, "error"],
] as const)("%s ends the run, not the host", async (_name, code, limits, status) => {
  expect((await run(code, { limits })).status).toBe(status);
  await stillWorks();
});

test("an abort in a loop kills the process, and the next run has another", async () => {
  const stop = new AbortController();
  expect(await run("console.log('in'); for (;;) {}", { signal: stop.signal, onLog: () => stop.abort() })).toMatchObject(
    { status: "aborted" },
  );
  await stillWorks();
});

test("a run parks and goes on", async () => {
  const parked = await run("return 1 + await tools.ask()", { can });
  if (parked.status !== "suspended") throw new Error(JSON.stringify(parked));
  expect(await sandbox.resume(parked.snapshot, [{ call: 0, value: 41 }], { can })).toMatchObject({
    status: "ok",
    value: 42,
  });
});

test("a program that cannot be started is said so", async () => {
  const { sandbox: broken } = sharedSandbox({ host: "process", wrapProcess: () => ["/nowhere/to/be/found"] });
  expect(await broken.probe()).toEqual({ ok: false, missing: expect.stringContaining("cannot start") as string });
});
