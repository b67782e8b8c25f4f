import { expect, test } from "vitest";
import { splitBlocks } from "./split-blocks.ts";

test.each([
  ["nothing", "", []],
  ["paragraphs", "one\ntwo\n\nthree", ["one\ntwo\n\n", "three"]],
  ["a heading and a table", "# a\n\n|x|\n|-|\n|1|\n\nend", ["# a\n\n", "|x|\n|-|\n|1|\n\n", "end"]],
  ["a fence with blank lines", "```js\na\n\nb\n```\n\nend", ["```js\na\n\nb\n```\n\n", "end"]],
  ["a fence that is still open", "a\n\n```\nb\n\nc", ["a\n\n", "```\nb\n\nc"]],
  ["a longer fence around a shorter", "````\n```\n\nb\n````\n\nend", ["````\n```\n\nb\n````\n\n", "end"]],
  ["a loose list", "1. a\n\n2. b\n\n   more of b\n\nend", ["1. a\n\n2. b\n\n   more of b\n\n", "end"]],
  ["blank lines first", "\n\na\n\nb", ["\n\na\n\n", "b"]],
  ["a link that is defined elsewhere", "[a][1]\n\nb\n\n[1]: https://example.com", undefined],
])("%s", (_what, text, blocks) => {
  expect(splitBlocks(text)).toEqual(blocks ?? [text]);
  expect(splitBlocks(text).join("")).toBe(text);
});

test("a text that grows changes its last block only, unless that ends", () => {
  const text = "# Title\n\nA paragraph.\n\n- one\n\n- two\n\n```ts\nlet a;\n\nlet b;\n```\n\nThe end.\n";
  let before: string[] = [];
  for (let end = 1; end <= text.length; end++) {
    const blocks = splitBlocks(text.slice(0, end));
    expect(blocks.slice(0, Math.max(0, before.length - 1))).toEqual(before.slice(0, -1));
    before = blocks;
  }
});
