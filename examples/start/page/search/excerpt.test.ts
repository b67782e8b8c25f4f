import { expect, test } from "vitest";
import { excerptOf } from "./excerpt.ts";

test("what was found is told from what stands around it", () => {
  expect(excerptOf("…the **quick**\nfox and the **quicker** one")).toEqual([
    { text: "…the ", isHit: false },
    { text: "quick", isHit: true },
    { text: " fox and the ", isHit: false },
    { text: "quicker", isHit: true },
    { text: " one", isHit: false },
  ]);
});

test("stars without an end mark nothing", () => {
  expect(excerptOf("a **b")).toEqual([
    { text: "a ", isHit: false },
    { text: "b", isHit: false },
  ]);
  expect(excerptOf("")).toEqual([]);
});
