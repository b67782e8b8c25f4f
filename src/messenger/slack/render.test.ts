import { expect, test } from "vitest";
import { fallbackText, plainSections, render } from "./render.ts";

/** Each element, with its pieces and what they look like. */
function shown(markdown: string): string[] {
  const piece = ({ text, url, style }: { text?: string; url?: string; style?: object }) =>
    `${text ?? ""}${url === undefined ? "" : `<${url}>`}${style === undefined ? "" : `(${Object.keys(style).join(" ")})`}`;
  return render(markdown).map((element) =>
    element.type === "rich_text_list"
      ? `list ${element.indent} ${element.elements.map(({ elements }) => elements.map(piece).join("|")).join(" / ")}`
      : `${element.type.replace("rich_text_", "")} ${element.elements.map(piece).join("|")}`,
  );
}

test.each([
  ["plain", ["section plain"]],
  ["**b** *i* ~~s~~ `c`", ["section b(bold)| |i(italic)| |s(strike)| |c(code)"]],
  ["**a *b* c**", ["section a (bold)|b(bold italic)| c(bold)"]],
  ["# Title\ntext", ["section Title(bold)|\ntext"]],
  ["one\n\ntwo", ["section one\n\ntwo"]],
  ["a\n\n```ts\nx = `*1*`;\n```\n\nb", ["section a", "preformatted x = `*1*`;", "section b"]],
  ["- one\n- two\n  - three\n\nend", ["list 0 one / two", "list 1 three", "section end"]],
  ["> a\n> *b*", ["quote a\n|b(italic)"]],
  ["[a **b**](https://x.example)", ["section a <https://x.example>|b<https://x.example>(bold)"]],
  ["see https://x.example/a_b_c. ok", ["section see |<https://x.example/a_b_c>|. ok"]],
  [
    "<https://x.example/q?a=1>, `https://no.example`",
    ["section <https://x.example/q?a=1>|, |https://no.example(code)"],
  ],
  ["<!channel> & <@U7>", ["section <!channel> & <@U7>"]],
  ["| a |\n|---|\n| 1 |", ["preformatted | a |\n|---|\n| 1 |"]],
  ["```\n```", []],
])("%j", (markdown, expected) => {
  expect(shown(markdown)).toEqual(expected);
});

test("a text as it is comes in sections that are not too long, and nothing of it is lost", () => {
  const text = `${"a".repeat(2_900)}\n${"b".repeat(200)}\n\n${"😀".repeat(1_600)}`;
  const sections = plainSections(text) as { readonly text: { readonly text: string } }[];
  const texts = sections.map((one) => one.text.text);
  expect(texts.every((one) => one.length > 0 && one.length <= 3_000 && one.isWellFormed())).toBe(true);
  expect(texts.join("").replaceAll("\n", "")).toBe(text.replaceAll("\n", ""));
});

test("words for notifications call nobody, and are not too long", () => {
  expect(fallbackText("<!channel> & @everyone", 100)).toBe("&lt;!channel&gt; &amp; @everyone");
  const cut = fallbackText("&".repeat(100), 42);
  expect(cut).toBe(`${"&amp;".repeat(8)}…`);
});
