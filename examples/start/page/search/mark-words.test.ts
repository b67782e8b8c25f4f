import { expect, test } from "vitest";
import { patternOf } from "./mark-words.ts";

const found = (text: string, ...words: string[]) => text.match(patternOf(words) ?? /^$/g) ?? [];

test("words are found in any case, and not inside of others", () => {
  expect(found("This is it: IS it here, or where?", "is", "here")).toEqual(["is", "IS", "here"]);
  expect(found("Größe, groß", "groß")).toEqual(["groß"]);
});

test("scripts without blanks, and signs that mean something in patterns", () => {
  expect(found("今日は東京です", "東京")).toEqual(["東京"]);
  expect(found("a well-known (a|b) [x] 1.5 $5 c:\\d/e", "well-known", "(a|b)", "[x]", "1.5", "$5", "c:\\d/e")).toEqual([
    ...["well-known", "(a|b)", "[x]", "1.5", "$5", "c:\\d/e"],
  ]);
  expect(patternOf(["", ""])).toBeUndefined();
});
