import { afterAll, expect, test } from "vitest";
import type { Sandbox } from "../../src/toolbox/sandbox/sandbox.ts";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import { createProcessSandbox } from "../../src/toolbox/sandbox/process/process-sandbox.ts";
import {
  createSandboxTools,
  type RunProcessInput,
  type SandboxToolsOptions,
} from "../../src/toolbox/sandbox/process/sandbox-tools.ts";
import { toolOptionsOf } from "../../src/tool/define.ts";
import { jailed, sandbox } from "./jailed.ts";

afterAll(async () => await sandbox.dispose());

async function call(input: RunProcessInput, more: Partial<SandboxToolsOptions> = {}): Promise<unknown> {
  const { run_process } = createSandboxTools({ sandbox, ...more });
  return await run_process.execute?.(input, { toolCallId: "c1", messages: [], context: undefined });
}

test(
  "run_process runs commands and words over the workspace, and says what changed",
  jailed(async () => {
    const workspace = new MemoryFiles({ files: { "/src/a.txt": "hello" } });
    expect(
      await call({ command: "cat a.txt; echo new > b.txt; rm a.txt; exit 2", cwd: "/workspace/src" }, { workspace }),
    ).toEqual({
      ...{ exitCode: 2, stdout: "hello", stderr: "", changed: ["/src/b.txt", "/src/a.txt (deleted)"] },
    });
    expect(await call({ argv: ["cat", "/workspace/src/b.txt"] }, { workspace })).toEqual({
      exitCode: 0,
      stdout: "new",
      stderr: "",
    });
    expect(await call({ argv: ["touch", "x"], cwd: "/src" }, { workspace, mode: "read" })).toMatchObject({
      exitCode: 1,
    });
    expect(await call({ command: "cat", stdin: "in" })).toMatchObject({ stdout: "in" });
    expect(
      await call({ command: "ln -s /etc x; seq 100000", timeout_ms: 20_000 }, { workspace, maxOutputChars: 100 }),
    ).toMatchObject({
      stdout: expect.stringMatching(/^1\n2\n[\s\S]{1,120}characters cut[\s\S]{1,80}100000$/) as unknown,
      notes: ["/x did not come back: It is a link that leads out of the workspace."],
    });
    expect(await call({ command: "echo a; sleep 60", timeout_ms: 300 })).toMatchObject({
      ...{ exitCode: null, stdout: "a", message: expect.stringContaining("longer than 300 ms") as unknown },
    });
  }),
);

test("wrong input is answered with what to do, before anything runs", async () => {
  const never = { sandbox: { kind: "none" } as Sandbox };
  for (const [input, expected] of [
    [{}, "Give `command` (for bash) or `argv`"],
    [{ command: "a", argv: ["b"] }, "and not both"],
    [{ command: " " }, "must be a string"],
    [{ argv: [] }, "must be a list of texts"],
    [{ argv: [1] }, "must be a list of texts"],
    [{ command: "a", cwd: "src" }, "must be an absolute path"],
    [{ command: "a", timeout_ms: 0 }, "from 1 to 600000"],
    [{ command: "a", timeout_ms: 1e9 }, "from 1 to 600000"],
    [{ command: "a".repeat(200_000) }, "Write it to a file"],
    [{ command: "a", stdin: 1 }, "must be a string"],
  ] as const) {
    expect(await call(input as unknown as RunProcessInput, never)).toEqual({
      error: expect.stringContaining(expected) as unknown,
    });
  }
});

test("without the programs nothing runs, and the reason says what to install", async () => {
  const without = createProcessSandbox({ programs: { bwrap: "/nowhere/bwrap" } });
  expect(await without.probe()).toMatchObject({ ok: false });
  const missing = createProcessSandbox({ programs: { bwrap: "/nowhere/bwrap" } });
  expect(await call({ command: "id" }, { sandbox: missing })).toEqual({
    error: expect.stringContaining("Processes cannot be run here") as unknown,
  });
  expect(await missing.run({ language: "bash", code: "id" })).toMatchObject({ status: "crashed", logs: [] });
});

test(
  "a crash of the jail is not shown to the model, and the call is never run twice",
  jailed(async () => {
    const broken = createProcessSandbox({ readOnly: ["/no/such/secret-folder"] });
    const output = await call({ command: "id" }, { sandbox: broken });
    expect(output).toEqual({ error: expect.stringContaining("The jail failed") as unknown });
    expect(JSON.stringify(output)).not.toContain("secret-folder");
    expect(await broken.run({ language: "bash", code: "id" })).toMatchObject({ status: "crashed", logs: [] });
    await broken.dispose();
    expect(toolOptionsOf(createSandboxTools({ sandbox }).run_process).replay).toBe("never");
  }),
);

test("options that cannot work are refused at once", () => {
  for (const options of [
    { processes: 0 },
    { runAs: { uid: 0, gid: 0 } },
    { readOnly: ["/"] },
    { directory: { path: "x", mode: "read" } },
  ] as const) {
    expect(() => createProcessSandbox(options)).toThrow(expect.objectContaining({ code: "bad_config" }) as Error);
  }
});
