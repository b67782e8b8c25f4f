import { expect, test } from "vitest";
import type { UIMessage } from "../message/types.ts";
import { cleanTitle, deriveTitle, shorten, titlePrompt } from "./titles.ts";

function user(...texts: string[]): UIMessage {
  return { id: "m", role: "user", parts: texts.map((text) => ({ type: "text", text })) };
}

test.each([
  ["Plan a trip to Lisbon", "Plan a trip to Lisbon"],
  ["  two\n\nlines  ", "two lines"],
  ["# Heading\nand **bold** words", "Heading and bold words"],
  ["see [the docs](https://example.org/a?b=c) please", "see the docs please"],
  ["Why does this fail?\n```ts\nthrow new Error();\n```", "Why does this fail?"],
  ["Fix it ```ts\nunclosed", "Fix it"],
  ["```ts\nconst a = 1;\n```", "const a = 1;"],
  ["<b>Hello</b> there", "Hello there"],
  ["snake_case_name and 2 * 3 * 4 stay", "snake_case_name and 2 * 3 * 4 stay"],
  ["a < b and b > c", "a < b and b > c"],
  ["- first\n- second", "first second"],
])("%j is called %j", (text, title) => {
  expect(deriveTitle(user(text))).toBe(title);
});

test("a long text is cut between words", () => {
  const title = deriveTitle(user("Please write a very long and detailed report about the history of the lighthouse"));
  expect(title).toBe("Please write a very long and detailed report about the…");
  expect(title?.length).toBeLessThanOrEqual(60);
});

test.each([
  ["Chinese", "请为我写一份关于灯塔历史的非常详细的报告".repeat(10)],
  ["Thai", "ช่วยเขียนรายงานเกี่ยวกับประวัติของประภาคาร".repeat(10)],
  ["one long word", "x".repeat(500)],
])("%s has no spaces to cut at, and is cut all the same", (_name, text) => {
  const title = deriveTitle(user(text)) ?? "";
  expect(title.endsWith("…")).toBe(true);
  expect(title.length).toBeGreaterThan(30);
  expect(text.startsWith(title.slice(0, -1))).toBe(true);
});

test("no letter is cut in the middle", () => {
  const family = "👩‍👩‍👧‍👦";
  expect(shorten(family.repeat(100), 10)).toBe(`${family.repeat(9)}…`);
  expect(shorten("e\u0301".repeat(20), 5)).toBe(`${"e\u0301".repeat(4)}…`);
});

test("right-to-left text stays, its control characters do not", () => {
  expect(deriveTitle(user("\u202bمرحبا بالعالم\u202c"))).toBe("مرحبا بالعالم");
});

test("a message of files alone is named after them", () => {
  const file = (mediaType: string, filename?: string) =>
    ({ type: "file", mediaType, url: "data:,", ...(filename !== undefined && { filename }) }) as const;
  const of = (...parts: UIMessage["parts"]) => deriveTitle({ id: "m", role: "user", parts });
  expect(of(file("application/pdf", "report.pdf"))).toBe("report.pdf");
  expect(of(file("image/png"))).toBe("An image");
  expect(of(file("video/mp4"), file("text/csv"), file("text/csv"))).toBe("A video and 2 more");
  expect(of(file("text/csv"))).toBe("A file");
  expect(of()).toBeUndefined();
  expect(of({ type: "text", text: " \n " })).toBeUndefined();
});

test("what is behind the first words of a huge message costs nothing", () => {
  expect(deriveTitle(user(`Hello ${"```".repeat(100_000)}`))).toBe("Hello");
});

test.each([
  ["Trip to Lisbon", "Trip to Lisbon"],
  ['"Trip to Lisbon."', "Trip to Lisbon"],
  ["„Reise nach Lissabon“", "Reise nach Lissabon"],
  ["Title: Trip to Lisbon\n\nI chose this because", "Trip to Lisbon"],
  ["**Trip to Lisbon**", "Trip to Lisbon"],
  ["# Trip", "Trip"],
  ["<think>The user wants\n\na trip</think>\n\nTrip", "Trip"],
  ["The user wants a trip.</think>Trip", "Trip"],
  ["灯塔的历史。", "灯塔的历史"],
])("of %j the title is %j", (answer, title) => {
  expect(cleanTitle(answer)).toBe(title);
});

test.each(["", "  \n ", "<think>It never ends", '""', "```"])("%j is no title", (answer) => {
  expect(cleanTitle(answer)).toBeUndefined();
});

test("a title of a model has a bound", () => {
  expect(cleanTitle("word ".repeat(200))?.length).toBeLessThanOrEqual(100);
});

test("the model is shown the beginning of what was said, marked as such", () => {
  const { prompt } = titlePrompt([user("x".repeat(10_000)), { ...user("Sure."), role: "assistant" }]);
  expect(prompt.length).toBeLessThan(3_000);
  expect(prompt).toContain("<assistant>\nSure.\n</assistant>");
});
