import { expect, test } from "vitest";
import { checkPlatform } from "../../scripts/check-platform.ts";
import { plant } from "./plant.ts";

test.each(["node:fs", "fs", "fs/promises", "better-sqlite3", "ws"])("%s in agent code fails", (name) => {
  const violations = checkPlatform(plant({ "src/agent/a.ts": `import type { X } from "${name}";\n` }));
  expect(violations).toEqual([`src/agent/a.ts:1: imports "${name}"; ask the AgentHost port`]);
});

test("another folder of host, and a dynamic import, fail", () => {
  const root = plant({
    "src/host/route.ts": 'export const fs = () => import("node:fs");\n',
    "src/host/node-like/a.ts": 'import "ws";\n',
  });
  expect(checkPlatform(root)).toHaveLength(2);
});

test("the platform folders, tests and other packages pass", () => {
  const root = plant({
    "src/host/node/a.ts": 'import "node:fs";\nimport "better-sqlite3";\nimport "ws";\n',
    "src/sandbox/node/a.ts": 'import "node:vm";\nimport "./b.ts";\n',
    "src/sandbox/b.ts": 'import type { A } from "./node/a.ts";\nexport const a = () => import("./node/a.ts");\n',
    "src/cli/a.ts": 'import "node:fs";\n',
    "src/testing/a.ts": 'import "node:fs";\n',
    "src/store/a.test.ts": 'import "better-sqlite3";\n',
    "src/work/a.ts": 'import { Cron } from "croner";\nimport "../event.ts";\n',
  });
  expect(checkPlatform(root)).toEqual([]);
});

test("a folder of Node that is loaded at once fails", () => {
  const root = plant({ "src/sandbox/a.ts": 'import { b } from "./node/b.ts";\n', "src/sandbox/node/b.ts": "" });
  expect(checkPlatform(root)).toEqual([
    'src/sandbox/a.ts:1: imports "./node/b.ts" at once; use import() where it is needed',
  ]);
});
