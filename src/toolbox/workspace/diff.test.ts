import { expect, test } from "vitest";
import { seeded } from "../../../test/support/seeded.ts";
import { unifiedDiff } from "./diff.ts";

const names = { a: "/a", b: "/b" };

/** Does what a diff says, as `patch` would, and checks every line that it names. */
function patch(text: string, diff: string): string {
  const before = text.split("\n");
  const after: string[] = [];
  let at = 0;
  const lines = diff.split("\n").slice(2, -1);
  for (const [index, line] of lines.entries()) {
    const hunk = /^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@$/.exec(line);
    if (hunk !== null) {
      const start = Number(hunk[1]) - (hunk[2] === "0" ? 0 : 1);
      after.push(...before.slice(at, start));
      at = start;
      continue;
    }
    if (line.startsWith("\\")) continue;
    const isLast = lines[index + 1]?.startsWith("\\") === true;
    if (line.startsWith("+")) after.push(line.slice(1) + (isLast ? "\0" : ""));
    else {
      if (before[at] !== line.slice(1)) throw new Error(`Line ${at + 1} is no ${JSON.stringify(line)}.`);
      at++;
      if (line.startsWith(" ")) after.push(line.slice(1) + (isLast ? "\0" : ""));
    }
  }
  const rest = before.slice(at);
  return [...after, ...(rest.length === 0 ? [""] : rest)].join("\n").replace(/\0\n?$/, "");
}

test("a diff leads from one text to the other", () => {
  const random = seeded(3);
  const text = () => {
    const lines = Array.from({ length: random(30) }, () => "abcdef"[random(6)] ?? "");
    return lines.join("\n") + (random(3) === 0 ? "" : "\n");
  };
  for (let round = 0; round < 500; round++) {
    const [a, b] = [text(), text()];
    const diff = unifiedDiff(a, b, names);
    // Without the end of the last line, the marks for it would have to be read, too.
    const canPatch = a !== b && a.endsWith("\n") && b.endsWith("\n");
    expect([a, b, canPatch ? patch(a, diff) : b]).toEqual([a, b, b]);
    expect([a, b, diff.includes("@@")]).toEqual([a, b, a !== b]);
  }
});

test("texts that differ everywhere are shown as replaced, and soon", () => {
  const many = (letter: string) => Array.from({ length: 10_000 }, (_, n) => `${letter}${n}\n`).join("");
  const diff = unifiedDiff(`same\n${many("a").slice(0, -7)}`, `same\n${many("b").slice(0, -7)}`, names);
  expect(diff.split("\n")[2]).toBe("@@ -1,10000 +1,10000 @@");
  expect(() => unifiedDiff("", "x\n".repeat(10_001), names)).toThrow(/^EFBIG: \/b has more than 10000 lines/);
});

test("a missing end of line is said, and only lines around changes are shown", () => {
  expect(unifiedDiff("a", "a\n", names)).toBe("--- /a\n+++ /b\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
  const lines = Array.from({ length: 30 }, (_, n) => `${n + 1}`);
  const changed = lines.with(4, "five").with(24, "x");
  expect(
    unifiedDiff(`${lines.join("\n")}\n`, `${changed.join("\n")}\n`, names)
      .split("\n")
      .filter((line) => line.startsWith("@@")),
  ).toEqual(["@@ -2,7 +2,7 @@", "@@ -22,7 +22,7 @@"]);
});
