import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { PerdureError } from "../../src/base/error.ts";
import { type BashRunRequest, createBashSandbox } from "../../src/toolbox/sandbox/bash/bash-sandbox.ts";
import { MemoryFiles } from "../../src/toolbox/sandbox/memory-files.ts";
import type { RunResult } from "../../src/toolbox/sandbox/sandbox.ts";

const sandbox = createBashSandbox({ workers: 1 });
afterAll(() => sandbox.dispose());

const run = (code: string, more: Partial<BashRunRequest> = {}): Promise<RunResult> =>
  sandbox.run({ language: "bash", code, limits: { wallMs: 20_000 }, ...more });

function printed(result: RunResult, level = "stdout"): string {
  return result.logs
    .filter((line) => line.level === level)
    .map((line) => line.text)
    .join("");
}

test("the package is there, and it says what it runs", async () => {
  expect(await sandbox.probe()).toEqual({ ok: true, detail: "Bash and Python in worker threads" });
  expect(sandbox.supports.languages).toEqual(["bash", "python"]);
});

test("output, errors and exit code are kept apart, and logs are passed on", async () => {
  const heard: string[] = [];
  const result = await run("echo out; echo err >&2; exit 7", { onLog: (line) => heard.push(line.level) });
  expect(result).toMatchObject({
    status: "ok",
    exitCode: 7,
    logs: [
      { level: "stdout", text: "out\n" },
      { level: "stderr", text: "err\n" },
    ],
  });
  expect(heard).toEqual(["stdout", "stderr"]);
});

test("the directory, the environment, standard input and the input arrive", async () => {
  const fs = new MemoryFiles({ files: { "/src/a.txt": "a" } });
  const files = { fs, mode: "read-write" } as const;
  const at = await run('pwd; ls; echo "$GREETING"; cat', {
    cwd: "/src",
    can: { files, env: { GREETING: "hello" } },
    stdin: "typed",
  });
  expect(printed(at)).toBe("/src\na.txt\nhello\ntyped");
  expect(printed(await run("jq -r .name", { input: { name: "Ada" } }))).toBe("Ada\n");
  expect(printed(await run('echo "${HOME}|${SECRET}"'))).toBe("/|\n");
});

test("writes go straight to the files of the host, and directories are real", async () => {
  const fs = new MemoryFiles({ files: { "/notes/one.md": "one\n", "/bin.dat": new Uint8Array([0, 255, 128, 10]) } });
  const can = { files: { fs, mode: "read-write" } } as const;
  const script = `
    echo two >> /notes/one.md
    mkdir -p /empty/deep
    cp /bin.dat /copy.dat
    ln -s /notes/one.md /link
    cat /link
    mv /notes /papers
    chmod 600 /copy.dat
    touch -d 2020-01-02 /papers/one.md
    rm /bin.dat
    printf 'a\\nb\\n' | tee /papers/two.md > /dev/null
    cp -r /papers /again
    find / -path /dev -prune -o -type f -print | sort`;
  const result = await run(script, { can });
  expect(printed(result, "stderr")).toBe("");
  expect(printed(result)).toBe("one\ntwo\n/again/one.md\n/again/two.md\n/copy.dat\n/papers/one.md\n/papers/two.md\n");
  expect(await fs.readFileBytes("/copy.dat")).toEqual(new Uint8Array([0, 255, 128, 10]));
  expect(await fs.stat("/empty/deep")).toMatchObject({ type: "directory" });
  expect(await fs.stat("/copy.dat")).toMatchObject({ mode: 0o600 });
  expect(new Date((await fs.stat("/papers/one.md"))?.mtimeMs ?? 0).getUTCFullYear()).toBe(2020);
  expect(await fs.readlink("/link")).toBe("/notes/one.md");
});

test("each run is a new shell: variables, functions and /tmp are gone", async () => {
  await run("x=1; f() { echo f; }; echo kept > /tmp/x; export y=2; cd /tmp");
  const after = await run('echo "[$x$y]"; pwd; type f; cat /tmp/x');
  expect(printed(after)).toBe("[]\n/\n");
});

test("more trees can be mounted, each with its own rights", async () => {
  const skill = new MemoryFiles({ files: { "/data.csv": "a,b\n1,2\n" } });
  const output = new MemoryFiles();
  const result = await run("cat /skill/data.csv > /output/copy.csv; ls /; echo no > /skill/x", {
    mounts: [
      { path: "/skill", fs: skill, mode: "read" },
      { path: "/output", fs: output, mode: "read-write" },
    ],
  });
  expect(result.status).toBe("error");
  expect(output.files().map(({ path }) => path)).toEqual(["/copy.csv"]);
  expect(skill.files()).toHaveLength(1);
  for (const path of ["/tmp", "/dev", "/a/b", "skill", "/..", "/"]) {
    await expect(run("true", { mounts: [{ path, fs: skill, mode: "read" }] })).rejects.toThrow(/cannot be mounted/);
  }
});

test("host functions are a command, and what they throw is the script's to read", async () => {
  const tools = {
    math: {
      add: (args: unknown) => (args as { a: number; b: number }).a + (args as { a: number; b: number }).b,
      fail: () => {
        throw new Error("the sum is too large");
      },
    },
  };
  const script = `tool math.add '{"a":1,"b":2}'; echo '{"a":2,"b":2}' | tool math.add; tool math.fail; tool math.constructor; tool math.add '{'`;
  const result = await run(script, { can: { tools } });
  expect(printed(result)).toBe("3\n4\n");
  expect(printed(result, "stderr")).toContain("tool: the sum is too large\n");
  expect(printed(result, "stderr")).toContain('There is no tool "math.constructor". There are: math.add, math.fail.');
  expect(printed(result, "stderr")).toContain("are not JSON");
  expect(result.stats.toolCalls).toBe(5);
  const few = await run('for i in 1 2 3; do tool math.add \'{"a":1,"b":1}\'; done', {
    can: { tools },
    limits: { toolCalls: 2 },
  });
  expect(printed(few)).toBe("2\n2\n");
  expect(printed(few, "stderr")).toContain("No more than 2 calls");
});

test("Python reads its input, the files and what lies beside it, and its tracebacks name its lines", async () => {
  const fs = new MemoryFiles({ files: { "/part/sums.py": "def total(xs): return sum(xs)\n", "/part/n.txt": "4" } });
  const code = `import json, sys
from sums import total
data = json.load(sys.stdin)
print(total(data["xs"]) + int(open("/part/n.txt").read()))
open("/made.txt", "w").write("done")
raise ValueError("late")`;
  const result = await sandbox.run({
    language: "python",
    code,
    input: { xs: [1, 2] },
    cwd: "/part",
    can: { files: { fs, mode: "read-write" } },
  });
  expect(result).toMatchObject({ status: "ok", exitCode: 1 });
  expect(printed(result)).toBe("7\n");
  expect(printed(result, "stderr")).toContain('File "/tmp/main.py", line 6, in <module>');
  expect(printed(result, "stderr")).toContain("ValueError: late");
  expect(new TextDecoder().decode(await fs.readFileBytes("/made.txt"))).toBe("done");
});

test("a signal ends a run, before and while it goes on, and the next one works", async () => {
  const early = AbortSignal.abort();
  expect(await run("echo hi", { signal: early })).toMatchObject({ status: "aborted" });
  const late = new AbortController();
  const fs = new MemoryFiles();
  const append = fs.writeFileBytes.bind(fs);
  fs.writeFileBytes = async (path, bytes) => {
    await append(path, bytes);
    late.abort();
  };
  const going = run("echo x > /begun; sleep 20", { signal: late.signal, can: { files: { fs, mode: "read-write" } } });
  expect(await going).toMatchObject({ status: "aborted" });
  expect(printed(await run("echo 42"))).toBe("42\n");
});

test("runs that find no free shell wait for one, and can stop waiting", async () => {
  const leave = new AbortController();
  const first = run("sleep 0.2; echo 1");
  const second = run("echo 2");
  const third = run("echo 3", { signal: leave.signal });
  leave.abort();
  expect(await third).toMatchObject({ status: "aborted" });
  expect(printed(await first) + printed(await second)).toBe("1\n2\n");
});

test("what it cannot run at all is refused", async () => {
  await expect(sandbox.run({ language: "js", code: "1" })).rejects.toThrow(/runs bash and python, not js/);
  await expect(run("true", { cwd: "src" })).rejects.toThrow(/absolute path/);
  await expect(run("true", { limits: { wallMs: 0 } })).rejects.toThrow(PerdureError);
  expect(() => createBashSandbox({ workers: 0 })).toThrow(/workers must be a number/);
  const plain = createBashSandbox({ python: false });
  await expect(plain.run({ language: "python", code: "1" })).rejects.toThrow(/runs bash, not python/);
});

test("a sandbox that was disposed of runs nothing", async () => {
  const gone = createBashSandbox();
  expect(printed(await gone.run({ language: "bash", code: "echo 1" }))).toBe("1\n");
  await gone.dispose();
  expect(await gone.run({ language: "bash", code: "echo 1" })).toMatchObject({ status: "crashed" });
});

test("a process that used a shell ends by itself", async () => {
  const module = new URL("../../src/toolbox/sandbox/bash/bash-sandbox.ts", import.meta.url).href;
  const program = `import { createBashSandbox } from ${JSON.stringify(module)};
const { logs } = await createBashSandbox().run({ language: "bash", code: "echo done" });
process.stdout.write(logs[0].text);`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
    timeout: 25_000,
  });
  expect(stdout).toBe("done\n");
});
