import { expect, test } from "vitest";
import { seeded } from "../../test/support/seeded.ts";
import { cutMiddle, hasMoreLines } from "./cut-middle.ts";

const note = (chars: number, lines: number) => `[${chars}/${lines}]`;
const cut = (text: string, maxLines: number, maxChars: number) => cutMiddle(text, maxLines, maxChars, note);
const numbered = (count: number) => Array.from({ length: count }, (_, n) => `line ${n}\n`).join("");

test("what is within the bounds is the same text", () => {
  for (const text of ["", "a", "a\nb", "a\nb\n", "x".repeat(10)]) expect(cut(text, 2, 10)).toBe(text);
});

test("too many lines: the first and the last are kept whole", () => {
  const text = numbered(10);
  const after = cut(text, 5, 1_000);
  expect(after).toBe("line 0\nline 1\n[42/6]\nline 8\nline 9\n");
  expect(cut(text, 4, 1_000)).toBe("line 0\nline 1\n[49/7]\nline 9\n");
  expect(cut(text, 1, 1_000)).toBe("[70/10]");
  expect(cut("a\nb\nc", 2, 1_000)).toBe("a\n[3/1]");
});

test("too many characters: cut at the ends of lines where they are near", () => {
  const after = cut(numbered(100), 1_000, 60);
  expect(after).toMatch(/^line 0\nline 1\nline 2\n\[\d+\/\d+\]\nline 97\nline 98\nline 99\n$/);
  expect(after.length).toBeLessThanOrEqual(60);
});

test("one long line is cut inside, and the note stands on a line of its own", () => {
  const after = cut("a".repeat(500) + "b".repeat(500), 10, 100);
  expect(after).toMatch(/^a+\n\[\d+\/0\]\nb+$/);
  expect(after.length).toBeLessThanOrEqual(100);
});

test("with room for nothing else, the note is left", () => {
  expect(cut("x".repeat(100), 10, 1)).toBe("[100/0]");
});

test("lines are counted as people do", () => {
  expect([
    hasMoreLines("a\nb", 1),
    hasMoreLines("a\nb", 2),
    hasMoreLines("a\nb\n", 2),
    hasMoreLines("\n\n", 1),
  ]).toEqual([true, false, false, true]);
});

test("any text: both bounds hold, both ends are the text's own, the note counts right, no character is halved", () => {
  const rand = seeded(21);
  const pieces = ["\n", "\n\n", "a", "some words ", "😀", "é", "\r\n", "x".repeat(40)];
  for (let run = 0; run < 3_000; run++) {
    const text = Array.from({ length: rand(60) }, () => pieces[rand(pieces.length)] ?? "").join("");
    const maxLines = 1 + rand(12);
    const maxChars = 20 + rand(200);
    const after = cut(text, maxLines, maxChars);
    expect(after === text).toBe(text.length <= maxChars && !hasMoreLines(text, maxLines));
    if (after === text) continue;
    expect(after.length).toBeLessThanOrEqual(maxChars);
    expect(hasMoreLines(after, maxLines)).toBe(false);
    expect(after.isWellFormed()).toBe(true);
    const mark = /\[(\d+)\/(\d+)\]/.exec(after);
    const [left, lines] = [Number(mark?.[1]), Number(mark?.[2])];
    const tail = after.slice((mark?.index ?? 0) + (mark?.[0].length ?? 0)).replace(/^\n/, "");
    const head = text.slice(0, text.length - left - tail.length);
    expect(after.startsWith(head)).toBe(true);
    expect(text.endsWith(tail)).toBe(true);
    expect(text.slice(head.length, head.length + left).split("\n")).toHaveLength(lines + 1);
  }
});
