import { expect, test } from "vitest";
import { checkFolders } from "../../scripts/check-folders.ts";
import { folderOrder, mapTable } from "../../scripts/folder-order.ts";
import { plant } from "./plant.ts";

const agent = { "src/agent/agent.ts": "export const agent = 1;\nexport type T = string;\n" };

test.each([
  ["a value", 'import { agent } from "../agent/agent.ts";'],
  ["a type", 'import type { T } from "../agent/agent.ts";'],
  ["several lines", 'import {\n  agent, // the value\n} from "../agent/agent.ts";'],
  ["a re-export", 'export { agent } from "../agent/agent.ts";'],
  ["export *", 'export * from "../agent/agent.ts";'],
  ["a dynamic import", 'export const later = () => import("../agent/agent.ts");'],
  ["a type position", 'export type U = import("../agent/agent.ts").T;'],
  ["a side effect", 'import "../agent/agent.ts";'],
])("an import from below fails: %s", (_, code) => {
  const violations = checkFolders(plant({ ...agent, "src/store/state.ts": `${code}\n` }));
  expect(violations).toEqual(["src/store/state.ts:1: store may not import from agent (../agent/agent.ts)"]);
});

test("what only looks like an import passes", () => {
  const code =
    '// import "../agent/agent.ts";\n/* import x from "../agent/agent.ts" */\nexport const s = `import "../agent/agent.ts"`;\n';
  expect(checkFolders(plant({ ...agent, "src/store/state.ts": code }))).toEqual([]);
});

test("root files have an order too, and nothing imports the public entry", () => {
  const root = plant({
    "src/port.ts": 'import type { Stub } from "./stub.ts";\n',
    "src/stub.ts": "export interface Stub {}\n",
    "src/index.ts": "export {};\n",
    "src/testing/clock.ts": 'import "../index.ts";\n',
  });
  expect(checkFolders(root)).toEqual([
    "src/port.ts:1: port.ts may not import from stub.ts (./stub.ts)",
    "src/testing/clock.ts:1: testing may not import from index.ts (../index.ts)",
  ]);
});

test("a folder that has no place, a narrow folder, a test, the package's own name and a way out of src fail", () => {
  const root = plant({
    "src/helpers/a.ts": "export {};\n",
    "src/collections/a.ts": 'import "../store/a.ts";\n',
    "src/store/a.ts": 'import "./b.test.ts";\nimport "perdure/node";\nimport "../../scripts/check.ts";\n',
    "src/store/b.test.ts": "export {};\n",
  });
  expect(checkFolders(root)).toEqual([
    "src/collections/a.ts:1: collections may not import from store (../store/a.ts)",
    'src/helpers/a.ts: "helpers" has no line in scripts/folder-order.ts',
    "src/store/a.ts:1: imports a test, src/store/b.test.ts",
    "src/store/a.ts:2: imports the package by its own name; use a relative path",
    "src/store/a.ts:3: imports scripts/check.ts, which is outside of src",
  ]);
});

test("folders in a folder have an order too", () => {
  const root = plant({
    "src/toolbox/egress/a.ts": 'import "../mcp/a.ts";\nimport "./b.ts";\n',
    "src/toolbox/egress/b.ts": "export {};\n",
    "src/toolbox/mcp/a.ts": 'import "../egress/b.ts";\n',
    "src/toolbox/other.ts": "export {};\n",
  });
  expect(checkFolders(root)).toEqual([
    "src/toolbox/egress/a.ts:1: toolbox/egress may not import from toolbox/mcp (../mcp/a.ts)",
    'src/toolbox/other.ts: "toolbox" has no line in scripts/folder-order.ts',
  ]);
});

test("imports from above and from the same folder pass, and tests import what they like", () => {
  const root = plant({
    ...agent,
    "src/agent/wire.ts":
      'import { agent } from "./agent.ts";\nimport { state } from "../store/state.ts";\nimport "ws";\n',
    "src/store/state.ts": 'import "../base/error.ts";\n',
    "src/store/state.test.ts": 'import { agent } from "../agent/agent.ts";\n',
    "src/base/error.ts": "export {};\n",
    "src/index.ts": 'export { agent } from "./agent/agent.ts";\n',
  });
  expect(checkFolders(root)).toEqual([]);
});

test("a map that is not the order of the folders fails, and so does a line without its folder", () => {
  const places = folderOrder.map(
    ({ name }) => [`src/${name}${name.includes(".") ? "" : "/a.ts"}`, "export {};\n"] as const,
  );
  const files = Object.fromEntries(places);
  expect(checkFolders(plant({ ...files, "AGENTS.md": `# Map\n\n${mapTable()}\n` }))).toEqual([]);
  const { "src/wire/a.ts": _, ...rest } = files;
  expect(checkFolders(plant({ ...rest, "AGENTS.md": "# Map\n" }))).toEqual([
    "scripts/folder-order.ts: there is no src/wire",
    "AGENTS.md: its table is not what scripts/folder-order.ts says; run npm run map",
  ]);
});
