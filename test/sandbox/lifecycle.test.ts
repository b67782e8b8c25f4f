import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import type { Capabilities, Json } from "perdure/sandbox";
import { createQuickJsSandbox } from "perdure/tools";
import { sharedSandbox } from "./shared-sandbox.ts";

const { sandbox, run, stillWorks } = sharedSandbox({ lanes: { max: 2, warm: 1 } });
const single = createQuickJsSandbox({ lanes: { max: 1, warm: 0 } });
afterAll(async () => single.dispose());

test("the probe says what runs", async () => {
  expect(await sandbox.probe()).toEqual({ ok: true, detail: expect.stringContaining("QuickJS") as string });
});

test("a signal that has aborted before starts nothing", async () => {
  expect(await run("return 1", { signal: AbortSignal.abort() })).toMatchObject({ status: "aborted", logs: [] });
});

test("an abort while the lane starts", async () => {
  const fresh = createQuickJsSandbox();
  const stop = new AbortController();
  const result = fresh.run({ language: "js", code: "for (;;) {}", signal: stop.signal });
  stop.abort();
  expect(await result).toMatchObject({ status: "aborted" });
  expect(await fresh.run({ language: "js", code: "return 42" })).toMatchObject({ value: 42 });
  await fresh.dispose();
});

test("an abort in a loop", async () => {
  const stop = new AbortController();
  const result = run("console.log('in'); for (;;) {}", { signal: stop.signal, onLog: () => stop.abort() });
  expect(await result).toMatchObject({ status: "aborted" });
  await stillWorks();
});

test("an abort in a builtin that nobody can interrupt", async () => {
  const stop = new AbortController();
  const result = run("console.log('in'); new Array(2 ** 30).join('x')", {
    signal: stop.signal,
    onLog: () => stop.abort(),
  });
  expect(await result).toMatchObject({ status: "aborted" });
  await stillWorks();
});

test("an abort in a tool: the tool's signal fires", async () => {
  const stop = new AbortController();
  let toolAborted = false;
  const can: Capabilities = {
    tools: {
      tools: {
        wait: async (_args, { signal }) =>
          new Promise<Json>((_resolve, reject) => {
            signal.addEventListener("abort", () => {
              toolAborted = true;
              reject(new Error("stopped"));
            });
            stop.abort();
          }),
      },
    },
  };
  expect(await run("await tools.wait()", { can, signal: stop.signal })).toMatchObject({ status: "aborted" });
  expect(toolAborted).toBe(true);
});

test("the end of a run, of whatever kind, fires the signals of its open tools", async () => {
  let fired = 0;
  const can: Capabilities = {
    tools: {
      tools: {
        wait: async (_args, { signal }) => {
          signal.addEventListener("abort", () => (fired += 1));
          return new Promise<Json>(() => undefined);
        },
      },
    },
  };
  await run("tools.wait(); await 0; return 1", { can });
  await run("tools.wait(); await 0; throw 1", { can });
  await run("await tools.wait()", { can, limits: { wallMs: 150 } });
  expect(fired).toBe(3);
});

test("an abort in the queue", async () => {
  const stop = new AbortController();
  const first = single.run({ language: "js", code: "for (;;) {}", limits: { cpuMs: 300, wallMs: 5_000 } });
  const second = single.run({ language: "js", code: "return 1", signal: stop.signal });
  const third = single.run({ language: "js", code: "return 3" });
  stop.abort();
  expect(await second).toMatchObject({ status: "aborted" });
  expect(await first).toMatchObject({ status: "limit" });
  expect(await third).toMatchObject({ status: "ok", value: 3 });
});

test("a guest that waits for a tool does not keep the lane of the run that the tool starts", async () => {
  const can: Capabilities = {
    tools: {
      tools: {
        nested: async () => {
          const inner = await single.run({ language: "js", code: "return 20" });
          return inner.status === "ok" ? (inner.value ?? null) : inner.status;
        },
      },
    },
  };
  expect(await single.run({ language: "js", code: "return 1 + await tools.nested()", can })).toMatchObject({
    status: "ok",
    value: 21,
  });
});

test("runs at the same time do not see each other", async () => {
  const results = await Promise.all(
    Array.from({ length: 6 }, async (_, n) =>
      run(`globalThis.mine ??= ${n}; await tools.nap(); return mine`, {
        can: { tools: { tools: { nap: async () => null } } },
      }),
    ),
  );
  expect(results.map((result) => (result.status === "ok" ? result.value : result.status))).toEqual([0, 1, 2, 3, 4, 5]);
});

test("after dispose a run is not possible, and what ran has ended", async () => {
  const gone = createQuickJsSandbox();
  const running = gone.run({
    language: "js",
    code: "await tools.never()",
    can: { tools: { tools: { never: async () => new Promise<never>(() => undefined) } } },
  });
  await new Promise((resolve) => setTimeout(resolve, 50));
  await gone.dispose();
  expect(await running).toMatchObject({ status: "crashed" });
  expect(await gone.run({ language: "js", code: "return 1" })).toMatchObject({
    status: "crashed",
    message: expect.stringContaining("disposed") as string,
  });
});

test.each([
  { host: "container" as "thread" },
  { lanes: { max: 0 } },
  { lanes: { warm: -1 } },
  { limits: { wallMs: 0 } },
])("options that cannot work are refused: %j", (options) => {
  expect(() => createQuickJsSandbox(options)).toThrow(expect.objectContaining({ code: "bad_config" }) as Error);
});

test.each(["bash", "python", "argv"] as const)("%s is not for this sandbox", async (language) => {
  await expect(sandbox.run({ language, code: "1" })).rejects.toMatchObject({ code: "bad_input" });
});

test("a process that ran code ends by itself", async () => {
  const module = new URL("../../src/toolbox/sandbox/quickjs/create.ts", import.meta.url).href;
  const program = `import { createQuickJsSandbox } from ${JSON.stringify(module)};
const { value } = await createQuickJsSandbox().run({ language: "js", code: "return 42" });
process.stdout.write(String(value));`;
  const options = { timeout: 25_000 };
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], options);
  expect(stdout).toBe("42");
});
