import { expect, test } from "vitest";
import { render } from "./render.ts";

/** The text, and what stands under each form. */
function shown(markdown: string): [string, ...string[]] {
  const { text, entities } = render(markdown);
  const parts = entities.map(
    ({ type, offset, length, url, language }) =>
      `${type} ${text.slice(offset, offset + length)}${url === undefined ? "" : ` ${url}`}${language === undefined ? "" : ` ${language}`}`,
  );
  return [text, ...parts];
}

test.each([
  ["plain", ["plain"]],
  ["**b** *i* _i_ __b__ ~~s~~", ["b i i b s", "bold b", "italic i", "italic i", "bold b", "strikethrough s"]],
  ["***both***", ["both", "bold both", "italic both"]],
  ["**a *b* c**", ["a b c", "bold a b c", "italic b"]],
  ["`a*b*` and ``c`d``", ["a*b* and c`d", "code a*b*", "code c`d"]],
  ["[a **b**](https://x.example/y(z))", ["a b", "text_link a b https://x.example/y(z)", "bold b"]],
  ["[no](javascript:alert)", ["[no](javascript:alert)"]],
  ["snake_case_name, 2*3*4, a * b, **open", ["snake_case_name, 2*3*4, a * b, **open"]],
  ["\\*not\\*", ["*not*"]],
  ["# Title\ntext", ["Title\ntext", "bold Title"]],
  ["- one\n  * two\n1. three", ["• one\n  • two\n1. three"]],
  ["> a\n> *b*\nc", ["a\nb\nc", "blockquote a\nb", "italic b"]],
  ["```ts\nconst a = `*1*`;\n```\nafter", ["const a = `*1*`;\nafter", "pre const a = `*1*`; ts"]],
  ["before\n~~~\nstill open", ["before\nstill open", "pre still open"]],
  ["| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |\n|---|---|\n| 1 | 2 |", "pre | a | b |\n|---|---|\n| 1 | 2 |"]],
  ["😀 **b**", ["😀 b", "bold b"]],
  ["```\n```", ["```\n```"]],
])("%j", (markdown, expected) => {
  expect(shown(markdown)).toEqual(expected);
});

test("what is rendered is never longer than its source, whatever it is", () => {
  const pieces = [
    "*",
    "**",
    "_",
    "`",
    "```\n",
    "\n",
    "[a](https://b)",
    "> ",
    "- ",
    "# ",
    "😀",
    "word",
    " ",
    "|a|\n|-|\n",
    "\\",
  ];
  for (let seed = 1; seed <= 500; seed++) {
    let state = seed;
    const next = () => (state = (state * 48_271) % 2_147_483_647);
    const text = Array.from({ length: 1 + (next() % 40) }, () => pieces[next() % pieces.length]).join("");
    const { text: out, entities } = render(text);
    expect(out.length).toBeLessThanOrEqual(text.length);
    for (const { offset, length } of entities) {
      expect(length).toBeGreaterThan(0);
      expect(offset + length).toBeLessThanOrEqual(out.length);
    }
  }
});
