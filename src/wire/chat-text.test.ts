import { expect, test } from "vitest";
import { readLongText } from "./chat-text.ts";

const breathe = () => Promise.resolve();
/** Pieces end here, if no escape stands there. */
const CUT_AT = 2 * 1024 * 1024;

test.each([
  ["plain text", "abc"],
  ["escapes of two characters", '"'],
  ["backslashes alone", "\\"],
  ["backslashes and quotes", '\\"\\\\"'],
  ["backslashes before a u", "\\u0041"],
  ["escapes of six characters", "\u0007"],
  ["lines and halves of pairs", "\n😀\ud800x"],
])("a long text with %s is the same when it is read in pieces, wherever those end", async (_, unit) => {
  const text = unit.repeat(Math.ceil(CUT_AT / JSON.stringify(unit).length) * 2);
  for (let before = 0; before < 7; before++) {
    const said = "y".repeat(before) + text;
    expect((await readLongText(JSON.stringify(said), breathe)) === said).toBe(true);
  }
});

test("what is no text of JSON gives none", async () => {
  expect(await readLongText(`"${"x".repeat(CUT_AT)}\\q"`, breathe)).toBe("");
  expect(await readLongText(`"line\n"`, breathe)).toBe("");
});
