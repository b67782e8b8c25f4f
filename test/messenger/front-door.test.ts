import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { checkPlatform } from "../../scripts/check-platform.ts";
import { plant, repository } from "../guards/plant.ts";

/** The sources of messengers that a process has loaded when it has imported these. */
function loadedBy(...names: readonly string[]): string[] {
  const code = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    for (const name of ${JSON.stringify(names)}) await import(name);
    console.log(JSON.stringify(loaded.filter((url) => url.includes("/src/messenger/"))));`;
  const args = ["--conditions=perdure-source", "--input-type=module", "--eval", code];
  const told = execFileSync(process.execPath, args, { cwd: repository, encoding: "utf8" });
  return (JSON.parse(told) as string[]).map((url) => url.slice(url.indexOf("/src/") + 1));
}

test("who imports perdure and serves agents has loaded nothing of messengers", () => {
  expect(loadedBy("perdure", "perdure/node")).toEqual([]);
  expect(loadedBy("perdure/messengers")).toContain("src/messenger/define.ts");
});

test("messengers import no platform", () => {
  const planted = plant({ "src/messenger/a.ts": 'import "node:fs";\n', "src/messenger/b.ts": "export const b = 1;\n" });
  expect(checkPlatform(planted)).toEqual(['src/messenger/a.ts:1: imports "node:fs"; ask the AgentHost port']);
});
