import { expect, test } from "vitest";
import { cutAt, partOf } from "./split.ts";

const LIMIT = 400;

function parts(text: string, limit = LIMIT): string[] {
  const list: string[] = [];
  let start = 0;
  for (;;) {
    const end = cutAt(text, start, limit);
    list.push(partOf(text, start, end ?? text.length));
    if (end === undefined) return list;
    start = end;
  }
}

/** The ends that a text gets that comes in pieces of `step`. */
function grown(text: string, step: number): number[] {
  const ends: number[] = [];
  for (let length = step; length < text.length + step; length += step) {
    for (;;) {
      const end = cutAt(text.slice(0, length), ends.at(-1) ?? 0, LIMIT);
      if (end === undefined) break;
      ends.push(end);
    }
  }
  return ends;
}

function sample(seed: number): string {
  let state = seed;
  const next = (below: number) => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
  const word = () => ["tree", "a", "durable", "𝒳", "message", "**bold**", "`x`"][next(7)] ?? "";
  const line = () => Array.from({ length: 1 + next(14) }, word).join(" ");
  const block = () =>
    next(3) === 0 ? `\`\`\`ts\n${Array.from({ length: 1 + next(30) }, line).join("\n")}\n\`\`\`` : line();
  return Array.from({ length: 30 }, block).join("\n\n");
}

test("a short text is one message", () => {
  expect(cutAt("hello", 0, LIMIT)).toBeUndefined();
});

test("a cut is at the last empty line outside of code", () => {
  const text = `${"a".repeat(200)}\n\n${"b".repeat(100)}\n\n${"c".repeat(200)}`;
  expect(parts(text)).toEqual([`${"a".repeat(200)}\n\n${"b".repeat(100)}`, "c".repeat(200)]);
});

test("code that has to be cut is closed and opened again, with its language", () => {
  const lines = Array.from({ length: 40 }, (_, i) => `const line${i} = ${i};`);
  const [first = "", second = "", ...rest] = parts(`\`\`\`ts\n${lines.join("\n")}\n\`\`\``);
  expect(first.startsWith("```ts\n")).toBe(true);
  expect(first.endsWith("\n```")).toBe(true);
  expect(second.startsWith("```ts\n")).toBe(true);
  const code = [first, second, ...rest].map((part) => part.split("\n").slice(1, -1).join("\n")).join("\n");
  expect(code).toBe(lines.join("\n"));
});

test("a word that is too long is cut, but no character is", () => {
  const text = "𝒳".repeat(500);
  for (const part of parts(text, 401)) expect(part.isWellFormed()).toBe(true);
  expect(parts(text, 401).join("")).toBe(text);
});

test.each([1, 2, 3, 4, 5, 6, 7, 8])("a text that grows is cut where the whole one is (%i)", (seed) => {
  const text = sample(seed);
  const whole = grown(text, text.length);
  expect(whole.length).toBeGreaterThan(2);
  for (const step of [1, 7, 333]) expect(grown(text, step)).toEqual(whole);
  for (const part of parts(text)) {
    expect(part.length).toBeLessThanOrEqual(LIMIT);
    // Each can stand alone: as many fences are closed as were opened.
    expect((part.match(/^```/gm) ?? []).length % 2).toBe(0);
  }
  const words = (list: readonly string[]) =>
    list
      .join(" ")
      .replaceAll(/```\w*|\s+/g, " ")
      .replaceAll(/\s+/g, " ")
      .trim();
  expect(words(parts(text))).toBe(words([text]));
});
