import { expect, test } from "vitest";
import { seeded } from "../../../test/support/seeded.ts";
import { compileGlob, compilePattern, compileText } from "./pattern.ts";

/** A random pattern that JavaScript reads in the same way. */
function randomPattern(random: (below: number) => number, depth = 0): string {
  const pick = (list: readonly string[]) => list[random(list.length)] ?? "";
  const atom = (): string => {
    const kind = random(depth > 2 ? 6 : 8);
    if (kind < 3) return pick(["a", "b", "c", "_", " ", "\\.", "\\x61", "\\u0062", "é"]);
    if (kind === 3) return pick(["\\d", "\\w", "\\s", "\\D", "\\W", "\\S", ".", "\\p{L}"]);
    if (kind === 4) return pick(["[ab]", "[^a]", "[a-c]", "[^\\d]", "[\\w.]", "[a-]", "[\\]x]"]);
    if (kind === 5) return pick(["\\b", "\\B", "^", "$"]);
    const inner = randomPattern(random, depth + 1);
    return kind === 6 ? `(${inner})` : `(?:${inner})`;
  };
  const piece = (): string => {
    const one = atom();
    const isPlain = !["\\b", "\\B", "^", "$"].includes(one);
    return isPlain && random(3) === 0 ? one + pick(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?", "{0}"]) : one;
  };
  const sequence = () => Array.from({ length: random(4) }, piece).join("");
  return random(4) === 0 ? `${sequence()}|${sequence()}` : sequence();
}

test("patterns find what JavaScript finds", async () => {
  const random = seeded(7);
  for (let round = 0; round < 1_500; round++) {
    const source = randomPattern(random);
    const ignoreCase = random(2) === 0;
    const known = new RegExp(source, ignoreCase ? "iu" : "u");
    const matcher = await compilePattern(source, { ignoreCase });
    for (let n = 0; n < 4; n++) {
      const text = Array.from({ length: random(8) }, () => "abcABC_ .1é😀"[random(12)] ?? "").join("");
      expect([source, ignoreCase, text, matcher.test(text)]).toEqual([source, ignoreCase, text, known.test(text)]);
    }
  }
});

test.each([
  ["^(a+)+$", `${"a".repeat(9_000)}!`],
  ["(a|aa)*b", "a".repeat(9_000)],
  ["(.*a){12}$", "a".repeat(9_000)],
  ["(x+x+)+y", "x".repeat(9_000)],
  ["(\\w+\\s?)*\\d{3}!", "word ".repeat(1_800)],
])("%s takes no time that grows with more than the text", async (source, text) => {
  // JavaScript's own engine would not end before the test does.
  expect((await compilePattern(source)).test(text)).toBe(source === "(.*a){12}$");
});

test.each([
  ["(?=a)", "lookahead"],
  ["(?<!a)b", "lookbehind"],
  ["(a)\\1", "references"],
  ["(?<n>a)\\k<n>", "references"],
  ["(a", "never closed"],
  ["a)", ") without a ("],
  ["[a", "never closed"],
  ["*a", "nothing before *"],
  ["a**", "two counts"],
  ["a{3,2}", "second number is smaller"],
  ["a{99999}", "at most 1000"],
  ["a\\", "ends with a backslash"],
  ["\\q", "\\q is not known"],
  ["\\p{Nope}", "no property"],
  ["[z-a]", "ends before it begins"],
  ["[[:nope:]]", "not known; there are alpha"],
  ["(?m)a", "not supported"],
  ["((a{200}){200}){200}", "too large"],
])("%s is refused in words that help", async (source, words) => {
  await expect(compilePattern(source)).rejects.toThrow(words);
});

test("patterns that are too long or too deep are refused", async () => {
  await expect(compilePattern("(".repeat(200))).rejects.toThrow("nested too deeply");
  await expect(compilePattern(`${"x".repeat(1_001)}+`)).rejects.toThrow("at most 1000");
});

test("what grep knows and JavaScript does not", async () => {
  expect((await compilePattern("(?i)Hello")).test("oh HELLO")).toBe(true);
  expect((await compilePattern("^[[:upper:]]+[[:digit:]]$")).test("AB1")).toBe(true);
  expect((await compilePattern("\\Aab\\z")).test("ab")).toBe(true);
  expect((await compilePattern("a{,2}")).test("a{,2}")).toBe(true);
  expect((await compileText("a.b(")).test("xa.b(y")).toBe(true);
  expect((await compileText("A.b(", { ignoreCase: true })).test("xa.B(y")).toBe(true);
  expect((await compileText("a.b", { ignoreCase: true })).test("aXb")).toBe(false);
});

test.each([
  ["/a/*.ts", ["/a/x.ts", "/a/.ts"], ["/a/b/x.ts", "/a/x.tsx", "/b/x.ts"]],
  ["**/*.ts", ["/x.ts", "/a/b/x.ts"], ["/x.js"]],
  ["/a/**", ["/a/b", "/a/b/c"], ["/a", "/ab"]],
  ["/a/**/z", ["/a/z", "/a/b/c/z"], ["/a/bz", "/z"]],
  ["/{a,b/{c,d}}/?", ["/a/x", "/b/c/x", "/b/d/y"], ["/b/x", "/a/xy"]],
  ["/[a-c]/[!x]", ["/a/y", "/c/😀"], ["/d/y", "/a/x", "/a//"]],
  ["/a\\*b", ["/a*b"], ["/axb"]],
  ["/a**b", ["/ab", "/axxb"], ["/a/b"]],
  ["./a//b", ["/a/b"], ["/a"]],
  ["/x[", ["/x["], ["/x"]],
])("the glob %s", async (glob, yes, no) => {
  const { test: matches } = await compileGlob(glob);
  expect(yes.filter((path) => !matches(path))).toEqual([]);
  expect(no.filter((path) => matches(path))).toEqual([]);
});

test("a glob knows the directory that everything is in", async () => {
  const globs = await Promise.all(["/a/b/*.ts", "/a/b*/c", "/a", "**", "/a/{b,c}"].map(compileGlob));
  expect(globs.map(({ base }) => base)).toEqual(["/a/b", "/a", "/a", "/", "/a"]);
  await expect(compileGlob("")).rejects.toThrow("empty");
  await expect(compileGlob("{a")).rejects.toThrow("never closed");
  await expect(compileGlob("a}")).rejects.toThrow("without a {");
  expect((await compileGlob("*a".repeat(400))).test(`/${"a".repeat(5_000)}b`)).toBe(false);
});
