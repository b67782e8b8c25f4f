import { expect, test } from "vitest";
import { fingerprint } from "../../src/base/hash.ts";

// They stand in rows: whoever sends a write again after an update of this package must be recognised.
test.each([
  ["", "0-811c9dc59e3779b985ebca6bc2b2ae35"],
  ["a", "1-0ba5b0fe9e3779b985ebca6bc2b2ae35"],
  ["abcdefg", "7-4594fed0d36ab4dc0d89b5e6995963ee"],
  ["ü€😀 and more", "d-7ba941d3726bb53194efae16934c777b"],
])("the fingerprint of %j stays what it was", (text, known) => {
  expect(fingerprint(text)).toBe(known);
});
