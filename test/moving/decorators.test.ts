import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { Agent, callable } from "perdure";
import { createHost, memoryStorage } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";

const source = `class Counter extends Agent {
  @callable({ description: "adds" }) add(by) { return by + 1; }
  hidden() {}
}`;

interface Compiled {
  new (...args: ConstructorParameters<typeof Agent>): Agent & { add(by: number): number };
}

/** Runs compiled code that declares a class `Counter`. */
function run(code: string): Compiled {
  // oxlint-disable-next-line no-implied-eval -- this is what a compiler wrote
  return new Function("Agent", "callable", `${code}\nreturn Counter;`)(Agent, callable) as Compiled;
}

async function callables(Counter: Compiled): Promise<string[]> {
  const host = createHost({ agents: { Counter }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  const counter = host.getAgentByName(Counter, "one");
  expect(await counter.add(1)).toBe(2);
  return [...(await counter.getCallableMethods())].map(([name, { description }]) => `${name}: ${description}`);
}

async function tempDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "perdure-decorators-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  return dir;
}

test("@callable() works as esbuild compiles it", async () => {
  const { code } = await transform(source, { loader: "ts", target: "es2022" });
  expect(await callables(run(code))).toEqual(["add: adds"]);
});

test("@callable() works as tsc compiles it", async () => {
  const dir = await tempDir();
  await writeFile(join(dir, "counter.ts"), source);
  const options = ["--target", "es2022", "--noCheck", "--ignoreConfig", "--outDir", dir, join(dir, "counter.ts")];
  await promisify(execFile)(join("node_modules", ".bin", "tsc"), options);
  expect(await callables(run(await readFile(join(dir, "counter.js"), "utf8")))).toEqual(["add: adds"]);
});

test("@callable() that was compiled as a legacy decorator says what to write", async () => {
  const tsconfigRaw = { compilerOptions: { experimentalDecorators: true } };
  const { code } = await transform(source, { loader: "ts", target: "es2022", tsconfigRaw });
  expect(() => run(code)).toThrow(/legacy.*experimentalDecorators.*static \{ callable\(this, "name"\); \}/);
});

test.each([
  ["@callable add() {}", /@callable\(\) with parentheses/],
  ["@callable() static add() {}", /not for the static method add/],
  ["@callable() get add() { return 1; }", /not for the getter add/],
  ["@callable() add = 1", /not for the field add/],
  ["@callable() #add() {}", /not for the method #add/],
])("%s is refused when the class is made", async (member, words) => {
  const { code } = await transform(`class Counter extends Agent { ${member} }`, { loader: "ts", target: "es2022" });
  expect(() => run(code)).toThrow(words);
});

test("a file of the agents directory with @callable() that nobody compiled says what to write", async () => {
  const dir = await tempDir();
  const file =
    'import { Agent, callable } from "perdure";\nexport class Counter extends Agent {\n  @callable()\n  add() {}\n}\n';
  await writeFile(join(dir, "counter.ts"), file);
  const script = `import { findAgents } from "perdure/node"; await findAgents(${JSON.stringify(dir)}).catch((e) => console.log(e.code, e.message));`;
  const run = promisify(execFile)(join("node_modules", ".bin", "node"), [
    ...["--conditions=perdure-source", "--input-type=module", "--eval", script],
  ]);
  expect((await run).stdout).toMatch(
    /^bad_config .*Node does not run decorators.*static \{ callable\(this, "name"\); \}/,
  );
});
