import { expect, test } from "vitest";
import { checkFormat } from "../../scripts/check-format.ts";
import { plant, realConfig } from "./plant.ts";

const config = { ".oxfmtrc.json": realConfig(".oxfmtrc.json"), "package.json": '{\n  "name": "perdure"\n}\n' };

test("a file that is not formatted fails", async () => {
  const root = plant({ ...config, "src/a.ts": "export const a   = 'one'\n" });
  expect(await checkFormat(root)).toEqual(["src/a.ts"]);
});

test("a formatted tree passes", async () => {
  const root = plant({ ...config, "src/a.ts": 'export const a = "one";\n' });
  expect(await checkFormat(root)).toEqual([]);
});
