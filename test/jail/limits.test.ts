import { existsSync } from "node:fs";
import { mkdir, readdir, rmdir } from "node:fs/promises";
import { afterAll, expect, test } from "vitest";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import { createProcessSandbox } from "../../src/toolbox/sandbox/process/process-sandbox.ts";
import { jailed, printed, sandbox } from "./jailed.ts";

afterAll(async () => await sandbox.dispose());

const bomb = "held = []\nwhile True: held.append(bytearray(8_000_000))";
const sharedBomb = `
import mmap, os
held = []
for _ in range(8):
    if os.fork() == 0: break
while True:
    one = mmap.mmap(-1, 8_000_000); one.write(b"x" * 8_000_000); held.append(one)`;

test(
  "time, computing and output are bounded, also over many processes, and what was printed is kept",
  jailed(async () => {
    const wall = await sandbox.run({
      language: "bash",
      code: "echo first; trap '' TERM; sleep 100",
      limits: { wallMs: 500 },
    });
    expect(wall).toMatchObject({ status: "limit", limit: "wall" });
    expect(printed(wall)).toBe("first");
    const cpu = await sandbox.run({
      language: "bash",
      code: "for n in 1 2 3 4; do (while :; do :; done) & done; wait",
      limits: { cpuMs: 600, wallMs: 20_000 },
    });
    expect(cpu).toMatchObject({ status: "limit", limit: "cpu" });
    const output = await sandbox.run({ language: "bash", code: "yes & yes >&2", limits: { outputBytes: 10_000 } });
    expect(output).toMatchObject({ status: "limit", limit: "output" });
    expect(printed(output).length + printed(output, "stderr").length).toBeLessThanOrEqual(10_000);
    expect(printed(await sandbox.run({ language: "bash", code: "echo $((6 * 7))" }))).toBe("42");
  }),
);

test(
  "memory is bounded: of one process, shared by many, and of a JavaScript heap",
  jailed(async () => {
    const limits = { memoryMB: 128, wallMs: 25_000 };
    for (const code of [bomb, sharedBomb]) {
      expect(await sandbox.run({ language: "python", code, limits })).toMatchObject({
        status: "limit",
        limit: "memory",
      });
    }
    const heap = await sandbox.run({
      language: "js",
      code: "const held = []; for (;;) held.push(new Array(1e5).fill(1.5));",
      limits,
    });
    expect(heap).toMatchObject({ status: "limit", limit: "memory" });
  }),
);

const CGROUPS = "/sys/fs/cgroup/memory";

test(
  "memory is bounded by a cgroup where there is one to use",
  jailed(async () => {
    const home = `${CGROUPS}/perdure-test-${process.pid}`;
    const made =
      existsSync(CGROUPS) &&
      (await mkdir(home).then(
        () => true,
        () => false,
      ));
    const grouped = createProcessSandbox({ cgroup: home });
    try {
      const detail = expect.stringContaining(made ? "bounded by a cgroup" : "no cgroup") as unknown;
      expect(await grouped.probe()).toMatchObject({ ok: true, detail });
      const limits = { memoryMB: 64, wallMs: 25_000 };
      for (const code of [bomb, sharedBomb]) {
        expect(await grouped.run({ language: "python", code, limits })).toMatchObject({
          status: "limit",
          limit: "memory",
        });
      }
      const left = await readdir(home).catch(() => []);
      expect(left.filter((name) => name.startsWith("perdure-"))).toEqual([]);
    } finally {
      await grouped.dispose();
      if (made) await rmdir(home);
    }
  }),
);

test(
  "a run is stopped by its signal, and all runs by the end of the sandbox; what was written comes back",
  jailed(async () => {
    const fs = new MemoryFiles();
    const stop = new AbortController();
    const result = await sandbox.run({
      language: "bash",
      code: "echo 1 > a; echo ready; sleep 100",
      signal: stop.signal,
      can: { files: { fs, mode: "read-write" } },
      onLog: () => stop.abort(),
    });
    expect(result).toMatchObject({ status: "aborted", files: { written: ["/a"] } });
    expect(await sandbox.run({ language: "bash", code: "echo no", signal: stop.signal })).toMatchObject({
      status: "aborted",
      logs: [],
    });
    const other = createProcessSandbox();
    const ended = await new Promise<unknown>((resolve) => {
      const run = other.run({ language: "bash", code: "echo ready; sleep 100", onLog: () => void other.dispose() });
      void run.then(resolve);
    });
    expect(ended).toMatchObject({ status: "aborted" });
    expect(await other.run({ language: "bash", code: "true" })).toMatchObject({ status: "crashed" });
  }),
);

test(
  "languages: words, scripts, functions, their input and their errors",
  jailed(async () => {
    const words = await sandbox.run({
      language: "argv",
      code: JSON.stringify(["printf", "%s|", "a b", "$HOME", "'; id"]),
    });
    expect(printed(words)).toBe("a b|$HOME|'; id|");
    expect(await sandbox.run({ language: "argv", code: '["no-such-program"]' })).toMatchObject({
      status: "ok",
      exitCode: 127,
    });
    expect(await sandbox.run({ language: "bash", code: "exit 7" })).toMatchObject({
      status: "ok",
      value: undefined,
      exitCode: 7,
    });
    expect(
      printed(
        await sandbox.run({ language: "bash", code: "cat > /dev/stderr; echo x >&2", input: { a: 1 } }),
        "stderr",
      ),
    ).toBe('{"a":1}x');
    const python = await sandbox.run({
      language: "python",
      code: "import sys; print(sys.stdin.read().upper())",
      stdin: "abc",
    });
    expect(printed(python)).toBe("ABC");
    const typed = await sandbox.run({
      language: "ts",
      code: 'import { add } from "sums";\nconst n: number = input.n;\nconsole.log("hi");\nreturn { sum: add(n, 1) };',
      input: { n: 2 },
      modules: { sums: "export const add = (a, b) => a + b;" },
    });
    expect(typed).toMatchObject({ status: "ok", value: { sum: 3 }, logs: [{ level: "stdout", text: "hi" }] });
    expect(await sandbox.run({ language: "js", code: 'throw new TypeError("bad")' })).toMatchObject({
      ...{ status: "error", error: { name: "TypeError", message: "bad" } },
    });
    expect(await sandbox.run({ language: "js", code: "process.exit(3)" })).toMatchObject({ status: "error" });
    for (const request of [
      { language: "argv", code: "ls" },
      { language: "argv", code: "[]" },
      { language: "bash", code: "true", cwd: "/../etc" },
      { language: "bash", code: "true", can: { env: { "A=B": "x" } } },
      { language: "js", code: "1", modules: { "../x": "" } },
      { language: "js", code: "1", can: { tools: { a: { b: () => null } } } },
      { language: "bash", code: "true", limits: { wallMs: -1 } },
    ] as const) {
      await expect(sandbox.run(request)).rejects.toMatchObject({ code: "bad_input" });
    }
  }),
);
