import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPackageBundler, type PackageBundler } from "../../src/toolbox/sandbox/npm/package-bundler.ts";
import { refusal } from "../egress/servers.ts";
import { makeStore, SECRET, type TestStore } from "./store.ts";

// One process for all of them: each case is one job.
let made: TestStore;
let bundler: PackageBundler;

/** Packages that want more than they may, by what they do. */
const hostile: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "climbs-json": { "index.js": 'import s from "../../../secret.json"; export default s;' },
  "climbs-js": { "index.js": 'export { default } from "../../../secret.js";' },
  "climbs-require": {
    "package.json": '{"name":"climbs-require","version":"1.0.0"}',
    "index.js": 'module.exports = require("../../../secret.json");',
  },
  "climbs-lazily": { "index.js": 'export default () => import("../../../secret.json");' },
  "main-outside": { "package.json": '{"name":"main-outside","version":"1.0.0","main":"../../../secret.js"}' },
  "module-outside": { "package.json": '{"name":"module-outside","version":"1.0.0","module":"../../../secret.js"}' },
  "exports-outside": {
    "package.json": '{"name":"exports-outside","version":"1.0.0","exports":{".":"./../../../secret.js"}}',
  },
  "browser-outside": {
    "package.json":
      '{"name":"browser-outside","version":"1.0.0","main":"index.js","browser":{"./index.js":"../../../secret.js"}}',
    "index.js": "module.exports = 1;",
  },
  "tsconfig-paths": {
    "tsconfig.json": '{"compilerOptions":{"baseUrl":".","paths":{"hidden":["../../../secret.js"]}}}',
    "index.js": 'export { default } from "hidden";',
  },
  "further-up": { "index.js": 'export { default } from "outside";' },
  "a-text": { "index.js": 'import s from "./notes.txt"; export default s;', "notes.txt": "text" },
  "a-text-attribute": {
    "index.js": 'import s from "./notes.js" with { type: "text" }; export default s;',
    "notes.js": "1",
  },
  "a-bytes-attribute": { "index.js": 'import s from "../../../secret.txt" with { type: "bytes" }; export default s;' },
  "a-style": { "index.js": 'import "./a.css";', "a.css": '@import "../../../secret.txt";' },
  "a-binary": {
    "package.json": '{"name":"a-binary","version":"1.0.0"}',
    "index.js": 'module.exports = require("./x.node");',
    "x.node": "x",
  },
  "no-extension": { "index.js": 'import s from "./LICENSE"; export default s;', LICENSE: "x" },
  "a-data-url": { "index.js": 'import s from "data:text/javascript,export default 1"; export default s;' },
  "a-web-url": { "index.js": 'import s from "https://example.com/x.js"; export default s;' },
  "a-file-url": { "index.js": 'import s from "file:///etc/hostname.js"; export default s;' },
  "of-node": { "index.js": 'import { readFileSync } from "node:fs"; export default readFileSync;' },
  "of-node-bare": { "index.js": 'import { readFileSync } from "fs"; export default readFileSync;' },
  "of-node-again": { "index.js": 'export * from "child_process";' },
};
const links: readonly (readonly [string, string, string])[] = [
  ["link-json", "inner.json", "secret.json"],
  ["link-js", "inner.js", "secret.js"],
  ["link-folder", "inner", "."],
];

beforeAll(() => {
  made = makeStore(["ms"]);
  made.add("fine", {
    "index.js": 'export const one = 1; export { default as dep } from "dependency"; export default 2;',
  });
  made.add("dependency", { "index.js": 'export default "dep";' });
  made.add("tries", {
    "package.json": '{"name":"tries","version":"1.0.0"}',
    "index.js": 'try { exports.fs = require("fs"); } catch (error) { exports.failed = true; }',
  });
  made.add("large", { "index.js": `export default "${"x".repeat(60_000)}";` });
  for (const [name, files] of Object.entries(hostile)) made.add(name, files);
  for (const [name, file, target] of links) {
    const source = file === "inner" ? "./inner/secret.js" : `./${file}`;
    made.add(name, { "index.js": `import s from "${source}"; export default s;` });
    made.link(name, file, join(made.root, target));
  }
  const names = ["ms", "fine", "tries", "large", "missing", ...Object.keys(hostile), ...links.map(([name]) => name)];
  bundler = createPackageBundler({
    packages: { ...Object.fromEntries(names.map((name) => [name, true] as const)), fine: "1.0.0", ms: "0.0.1" },
    store: made.store,
    limits: { bundleBytes: 50_000 },
  });
});
afterAll(async () => {
  await bundler.close();
  rmSync(made.root, { recursive: true });
});

async function expectRefused(code: string, codes: readonly string[] = ["not_allowed"]): Promise<string> {
  const { code: found, message } = await refusal(bundler.bundle(code));
  expect(codes, message).toContain(found);
  expect(message).not.toContain(SECRET);
  // What the code has written itself it may read again.
  expect(code.includes(made.root) ? "" : message).not.toContain(made.root);
  return message;
}

test("what is allowed comes as a module, with what it needs", async () => {
  const { modules } = await bundler.bundle('import { one, dep } from "fine"; return one;');
  expect(Object.keys(modules)).toEqual(["fine"]);
  expect(modules["fine"]).toContain('"dep"');
  // The same again is not made again.
  expect((await bundler.bundle('import { one, dep } from "fine"; return one;')).modules).toEqual(modules);
  expect(await bundler.bundle("return 1")).toEqual({ code: "return 1", modules: {} });
  expect((await bundler.bundle("// import nothing\nreturn 'import x'")).modules).toEqual({});
});

test.each([
  ["an absolute path", 'import s from "/etc/passwd"; return s;'],
  ["an absolute JSON file", 'import s from "ROOT/secret.json"; return s;'],
  ["a path above", 'import s from "../secret.json"; return s;'],
  ["a path beside", 'import s from "./node_modules/dependency/index.js"; return s;'],
  ["a module of Node", 'import fs from "node:fs"; return fs;'],
  ["a module of Node by its old name", 'import fs from "fs"; return fs;'],
  ["a part of a module of Node", 'import fs from "fs/promises"; return fs;'],
  ["a package that is not listed", 'import x from "outside"; return x;'],
  ["a package that another one needs", 'import x from "dependency"; return x;'],
  ["a package of the host", 'import x from "better-sqlite3"; return x;'],
  ["out of a package", 'import x from "fine/../../../secret.json"; return x;'],
  ["out of a package into another", 'import x from "fine/../dependency/index.js"; return x;'],
  ["out of a package, at once", 'import x from "fine/.."; return x;'],
  ["a package inside of a package", 'import x from "fine/node_modules/x"; return x;'],
  ["encoded dots", 'import x from "fine/%2e%2e/dependency"; return x;'],
  ["backslashes", 'import x from "fine\\\\..\\\\dependency"; return x;'],
  ["a zero byte", 'import x from "fine\\0/x"; return x;'],
  ["a query", 'import x from "fine?x"; return x;'],
  ["a private import", 'import x from "#fine"; return x;'],
  ["an empty name", 'import x from ""; return x;'],
  ["a name in capitals", 'import x from "FINE"; return x;'],
  ["a data URL", 'import x from "data:text/javascript,export default 1"; return x;'],
  ["a web URL", 'import x from "https://example.com/x.js"; return x;'],
  ["a file URL", 'import x from "file:///etc/passwd"; return x;'],
  ["a dynamic import of a path", 'return await import("/etc/passwd");'],
  ["a dynamic import of a module of Node", 'return await import("node:child_process");'],
  ["a dynamic import of what is not written there", "return await import(input.name);"],
  ["a dynamic import of a template", "return await import(`fine${1}`);"],
  ["require", 'return require("fine");'],
  ["require of a path", 'return require("/etc/passwd");'],
  ["require of what is not written there", "return require(input.name);"],
  ["a text", 'return await import("/etc/passwd", { with: { type: "text" } });'],
  ["an import in the middle", 'const a = 1;\nconst b = await import("../secret.json"); return b;'],
])("code cannot import %s", async (_what, code) => {
  await expectRefused(code.replaceAll("ROOT", made.root), code.includes('""') ? ["bad_input"] : ["not_allowed"]);
});

test.each([...Object.keys(hostile), ...links.map(([name]) => name)])("a package that is hostile: %s", async (name) => {
  const codes = ["tsconfig-paths", "main-outside", "exports-outside"].includes(name)
    ? ["bad_input", "not_allowed"]
    : ["not_allowed"];
  await expectRefused(`import x from "${name}"; return x;`, codes);
  await expectRefused(`return await import("${name}");`, codes);
});

test("a package that only tries to load a module of Node finds none", async () => {
  const { modules } = await bundler.bundle('import * as t from "tries"; return t.failed;');
  expect(modules["tries"]).toContain("failed");
});

test("refusals say what can be imported; faults of the code say where", async () => {
  expect(await expectRefused('import x from "lodash"; return x;')).toContain("These packages can: ms, fine");
  expect(await expectRefused("const a = 1;\nconst b = import;", ["bad_input"])).toContain("(line 2)");
  expect(await expectRefused('import { nothing } from "fine"; return nothing;', ["bad_input"])).toContain("nothing");
});

test("what the operator has to mend", async () => {
  await expectRefused('import x from "missing"; return x;', ["bad_config"]);
  expect(await expectRefused('import x from "ms"; return x;', ["bad_config"])).toContain("0.0.1");
  await expectRefused('import x from "large"; return x;', ["limit"]);
  await expectRefused(`import x from "fine"; ${"x;".repeat(600_000)}`, ["limit"]);
  const make =
    (packages: Record<string, string | true>, store = "/store") =>
    () =>
      createPackageBundler({ packages, store });
  for (const name of ["../x", "node:fs", "a/b", "@a", "A", "", ".", "a b", "file:x", "@a/b/c"])
    expect(make({ [name]: true })).toThrow(/not the name of a package/);
  for (const version of [
    "file:..",
    "git+ssh://x",
    "https://x/y.tgz",
    "npm:other@1",
    "1.0.0 || 2",
    "",
    "--x",
    "github:a/b",
  ]) {
    expect(make({ zod: version })).toThrow(/version/);
  }
  expect(make({}, "relative")).toThrow(/absolute/);
});

test("bundling that takes too long is ended, and the next one works", async () => {
  const slow = createPackageBundler({ packages: { fine: true }, store: made.store, limits: { timeoutMs: 1 } });
  expect((await refusal(slow.bundle('import { one } from "fine"; return one;'))).code).toBe("timeout");
  await slow.close();
  expect(Object.keys((await bundler.bundle('import { one } from "fine"; return one;')).modules)).toEqual(["fine"]);
});
