import { expect, test } from "vitest";
import { checkSizes, maxLines } from "../../scripts/check-sizes.ts";
import { plant } from "./plant.ts";

const lines = (count: number) => "export {};\n".repeat(count);

test("one line over the limit fails, in src, in tests and in .tsx", () => {
  const root = plant({
    "src/store/a.ts": lines(maxLines + 1),
    "src/studio/b.tsx": lines(maxLines + 1),
    "test/c.test.ts": lines(maxLines + 1),
  });
  expect(checkSizes(root).map((violation) => violation.split(":")[0])).toEqual([
    "src/store/a.ts",
    "src/studio/b.tsx",
    "test/c.test.ts",
  ]);
});

test("the limit itself passes", () => {
  expect(checkSizes(plant({ "src/store/a.ts": lines(maxLines) }))).toEqual([]);
});
