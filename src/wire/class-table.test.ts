import { expect, test } from "vitest";
import { PerdureError } from "../base/error.ts";
import { classTable } from "./class-table.ts";

test("CamelCase, UPPERCASE and underscored names are found by their kebab form only", () => {
  const find = classTable(["ChatAgent", "SCREAMING_CASE", "My_Agent", "ChatAgent"]);
  expect(find("chat-agent")).toBe("ChatAgent");
  expect(find("screaming-case")).toBe("SCREAMING_CASE");
  expect(find("my--agent")).toBe("My_Agent");
  expect(find("ChatAgent")).toBeUndefined();
});

test("names of Object.prototype are not classes", () => {
  const find = classTable(["ChatAgent"]);
  for (const segment of ["constructor", "__proto__", "to-string", "toString"]) expect(find(segment)).toBeUndefined();
});

test.each([[["Sub"]], [["SUB"]], [[""]], [["_"]], [["a/b"]], [[".."]], [["\ud800"]], [["ChatAgent", "chat-agent"]]])(
  "refuses %j",
  (names) => {
    let thrown: unknown;
    try {
      classTable(names);
    } catch (error) {
      thrown = error;
    }
    expect(PerdureError.is(thrown, "bad_config")).toBe(true);
  },
);
