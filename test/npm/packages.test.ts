import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createExecuteTool } from "../../src/toolbox/sandbox/execute/execute-tool.ts";
import { installPackages } from "../../src/toolbox/sandbox/npm/install-packages.ts";
import { createPackageBundler, type PackageBundler } from "../../src/toolbox/sandbox/npm/package-bundler.ts";
import { createQuickJsSandbox } from "../../src/toolbox/sandbox/quickjs/create.ts";
import type { Sandbox } from "../../src/toolbox/sandbox/sandbox.ts";
import { refusal } from "../egress/servers.ts";
import { makeStore, type TestStore } from "./store.ts";

let made: TestStore;
let bundler: PackageBundler;
let sandbox: Sandbox;
const names = ["zod", "papaparse", "yaml", "semver", "ms", "decimal.js", "dequal"];

beforeAll(() => {
  made = makeStore(["papaparse", "semver", "ms", "decimal.js", "dequal"], ["zod", "yaml"]);
  made.add("tries", {
    "package.json": '{"name":"tries","version":"1.0.0"}',
    "index.js": 'try { exports.fs = require("fs"); } catch (error) { exports.failed = error.message; }',
  });
  const packages = Object.fromEntries([...names, "tries"].map((name) => [name, true] as const));
  bundler = createPackageBundler({ packages, store: made.store });
  sandbox = createQuickJsSandbox({ lanes: { max: 1 } });
});
afterAll(async () => {
  await bundler.close();
  await sandbox.dispose();
  rmSync(made.root, { recursive: true });
});

async function run(source: string, own: Record<string, string> = {}): Promise<unknown> {
  const { code, modules } = await bundler.bundle(source, "ts", own);
  // Generous: it is not the speed of the machine that is tested.
  const limits = { cpuMs: 20_000, wallMs: 25_000 };
  const result = await sandbox.run({ language: "ts", code, modules, limits });
  return result.status === "ok" ? result.value : result;
}

test.each([
  ["zod", 'import { z } from "zod";\nreturn z.object({ a: z.number() }).parse({ a: 1, b: 2 });', { a: 1 }],
  [
    "papaparse",
    'import Papa from "papaparse";\nreturn Papa.parse("a,b\\n1,2", { header: true }).data;',
    [{ a: "1", b: "2" }],
  ],
  ["yaml", 'import { parse } from "yaml"; return parse("a: [1, 2]");', { a: [1, 2] }],
  ["semver", 'const { gt } = await import("semver"); return gt("2.0.0", "1.9.9");', true],
  [
    "semver, all of it",
    'import * as semver from "semver"; return [semver.valid("1.2.3"), semver.major("4.0.0")];',
    ["1.2.3", 4],
  ],
  ["ms", 'import ms from "ms"; return ms("2 days");', 172_800_000],
  ["decimal.js", 'import { Decimal } from "decimal.js"; return new Decimal("0.1").plus("0.2").toString();', "0.3"],
  ["a part of dequal", 'import { dequal } from "dequal/lite"; return dequal({ a: 1 }, { a: 1 });', true],
  [
    "two at once",
    'import ms from "ms";\nimport { gt as newer } from "semver";\nreturn [ms("1s"), newer("2.0.0", "1.0.0")];',
    [1_000, true],
  ],
])("%s runs in the sandbox", async (_what, code, expected) => {
  expect(await run(code)).toEqual(expected);
});

test("modules of the run may import packages too", async () => {
  const modules = { "dates.ts": 'import ms from "ms"; export const day = (n: number) => ms(`${n} days`);' };
  expect(await run('import { day } from "dates.ts"; return day(1);', modules)).toBe(86_400_000);
});

test("what stays of Node in a package throws in the sandbox", async () => {
  const value = await run('import * as t from "tries"; return [t.failed, typeof t.fs];');
  expect(value).toEqual([expect.stringContaining("fs"), "undefined"]);
});

test("installing writes down what is wanted, runs no scripts, and says what came", async () => {
  const store = join(made.root, "installed");
  const log = join(made.root, "npm.json");
  const npm = join(made.root, "npm.mjs");
  writeFileSync(
    npm,
    `import { mkdirSync, writeFileSync } from "node:fs";
     writeFileSync(${JSON.stringify(log)}, JSON.stringify({ argv: process.argv.slice(2), cwd: process.cwd() }));
     mkdirSync("node_modules/ms", { recursive: true });
     writeFileSync("node_modules/ms/package.json", '{"version":"2.1.3"}');`,
  );
  const options = { packages: { ms: "^2.0.0" }, store, minimumAgeDays: 7, npm: [process.execPath, npm] };
  expect(await installPackages(options)).toEqual({ installed: { ms: "2.1.3" } });
  const { argv, cwd } = JSON.parse(readFileSync(log, "utf8")) as { argv: string[]; cwd: string };
  expect(argv.slice(0, 2)).toEqual(["install", "--ignore-scripts"]);
  expect(argv.at(-1)).toMatch(/^--before=\d{4}-/);
  expect(cwd).toBe(store);
  expect(JSON.parse(readFileSync(join(store, "package.json"), "utf8"))).toMatchObject({
    private: true,
    dependencies: { ms: "^2.0.0" },
  });
});

test("installing that fails says what npm said", async () => {
  const store = join(made.root, "failed");
  mkdirSync(store);
  const failing = {
    packages: { ms: "2.1.3" },
    store,
    npm: [process.execPath, "-e", "console.error('E404'); process.exit(1)"],
  };
  expect(await refusal(installPackages(failing))).toMatchObject({
    code: "call_failed",
    message: expect.stringContaining("E404") as string,
  });
  const empty = { ...failing, npm: [process.execPath, "-e", ""] };
  expect((await refusal(installPackages(empty))).message).toContain("not in the store");
  expect((await refusal(installPackages({ ...failing, packages: { ms: "file:.." } }))).code).toBe("bad_config");
  expect((await refusal(installPackages({ ...failing, store: "/" }))).code).toBe("bad_config");
});

test("the execute tool imports packages, and tells the model which there are", async () => {
  const tool = createExecuteTool({ tools: {}, sandbox, packages: bundler });
  expect(tool.description).toContain("papaparse");
  const call = async (code: string): Promise<unknown> =>
    tool.execute?.({ code }, { toolCallId: "c", messages: [], context: undefined });
  expect(await call('import ms from "ms";\nreturn ms("1s");')).toMatchObject({ result: 1_000 });
  expect(JSON.stringify(await call('import x from "lodash"; return x;'))).toContain("These packages can: zod");
});
