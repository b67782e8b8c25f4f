import { afterAll, expect, test } from "vitest";
import { createBashSandbox } from "../sandbox/bash/bash-sandbox.ts";
import { hasPackage } from "../sandbox/bash/node/shell-lane.ts";
import { MemoryFiles } from "../sandbox/memory-files.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { toolOptionsOf } from "../../tool/define.ts";
import {
  bashToolMissing,
  type BashToolInput,
  type BashToolOptions,
  type BashToolOutput,
  createBashTool,
} from "./bash-tool.ts";

const sandbox = createBashSandbox({ workers: 1 });
afterAll(() => sandbox.dispose());

async function call(
  fs: MemoryFiles,
  input: unknown,
  options: BashToolOptions = {},
  signal?: AbortSignal,
): Promise<BashToolOutput> {
  const { execute } = createBashTool(fs, { sandbox, ...options });
  const more = signal === undefined ? {} : { abortSignal: signal };
  return execute?.(input as BashToolInput, {
    toolCallId: "1",
    messages: [],
    context: {},
    ...more,
  }) as Promise<BashToolOutput>;
}

const files = (): MemoryFiles => new MemoryFiles({ files: { "/src/a.txt": "one\ntwo\n" } });

test("a command works on the files, in its directory", async () => {
  const fs = files();
  expect(await call(fs, { command: "wc -l < a.txt; echo oops >&2; mkdir -p made; exit 4", cwd: "/src" })).toEqual({
    exitCode: 4,
    stdout: "2\n",
    stderr: "oops\n",
  });
  expect(await fs.stat("/src/made")).toMatchObject({ type: "directory" });
  expect(await call(fs, { command: "echo $WHO" }, { env: { WHO: "me" } })).toMatchObject({ stdout: "me\n" });
});

test("long output is cut in the middle, and says so", async () => {
  const output = await call(files(), { command: "seq 1 9000; seq 1 9000 >&2" }, { maxOutput: 1_000 });
  const { stdout, stderr } = output as { stdout: string; stderr: string };
  expect(stdout.length).toBeLessThanOrEqual(1_000);
  expect(stdout).toMatch(/^1\n2\n/);
  expect(stdout).toMatch(/\[\.\.\. \d+ characters, \d+ lines left out \.\.\.\]\n[\s\S]*9000\n$/);
  expect(stderr.length).toBeLessThanOrEqual(1_000);
  expect(toolOptionsOf(createBashTool(files(), { sandbox }))).toMatchObject({ replay: "never" });
});

test("a command that takes too long or too much is stopped with a message", async () => {
  expect(await call(files(), { command: "sleep 20", timeout_ms: 300 })).toMatchObject({
    exitCode: null,
    message: expect.stringContaining("Stopped after 300 ms"),
  });
  expect(
    await call(files(), { command: "sleep 20", timeout_ms: 50_000 }, { timeoutMs: 100, maxTimeoutMs: 200 }),
  ).toMatchObject({
    message: expect.stringContaining("Stopped after 200 ms"),
  });
  expect(await call(files(), { command: "echo {1..99999999}" })).toMatchObject({
    exitCode: null,
    message: expect.stringContaining("Stopped by a limit (cpu)"),
  });
});

test("files that may only be read are not changed, and the error is one that a model can read", async () => {
  const fs = files();
  const output = await call(fs, { command: "echo x > /src/a.txt" }, { readOnly: true });
  expect(JSON.stringify(output)).toContain("read-only file system");
  expect(fs.files()).toHaveLength(1);
});

test.each([
  [{}, /Give `command`/],
  [{ command: "  " }, /Give `command`/],
  [{ command: "x".repeat(200_001) }, /200000 are allowed/],
  [{ command: "ls", timeout_ms: -1 }, /`timeout_ms` must be/],
  [{ command: "ls", cwd: "src" }, /absolute path/],
  [{ command: "ls", cwd: 1 }, /absolute path/],
  [{ command: "ls", cwd: "/nope" }, /There is no directory \/nope/],
  [{ command: "ls", cwd: "/src/a.txt" }, /is a file/],
])("wrong input is answered with what to do: %#", async (input, message) => {
  expect(((await call(files(), input)) as { error: string }).error).toMatch(message);
});

test("a turn that ends takes its command along", async () => {
  const turn = new AbortController();
  const going = call(files(), { command: "sleep 20" }, {}, turn.signal);
  turn.abort();
  await expect(going).rejects.toThrow(/the turn ended/);
});

test("without the package the tool says what to install", async () => {
  expect(hasPackage("just-bash")).toBe(true);
  expect(hasPackage("just-bash-that-is-not-there")).toBe(false);
  expect(await bashToolMissing(sandbox)).toBeUndefined();
  const missing = "Install just-bash to run shells: npm install just-bash";
  const without: Sandbox = { ...sandbox, probe: async () => ({ ok: false, missing }) };
  expect(await bashToolMissing(without)).toBe(missing);
  expect(await call(files(), { command: "ls" }, { sandbox: without })).toEqual({
    error: `There is no shell here. ${missing}`,
  });
});
