import { expect, test } from "vitest";
import { htmlToMarkdown } from "./html-to-markdown.ts";

const markdown = async (html: string) => (await htmlToMarkdown(html, "https://example.com/dir/page")).markdown;

const cases: readonly (readonly [string, string, string])[] = [
  ["headings", "<h1>One</h1><h3>Two <em>three</em></h3>", "# One\n\n### Two _three_"],
  ["paragraphs without ends", "<p>One<p>Two", "One\n\nTwo"],
  ["folded spaces", "<p>a\n\n  b&nbsp;c</p>", "a b c"],
  ["line breaks", "a<br>b<br/>c", "a\nb\nc"],
  ["marks", "<b>a</b> <i>b</i> <code>c</code> <del>d</del>", "**a** _b_ `c` ~~d~~"],
  ["spaces inside of marks", "a<b> b </b>c", "a **b** c"],
  [
    "links",
    '<a href="x?a=1&amp;b=2">go</a> <a href="/y">on</a>',
    "[go](https://example.com/dir/x?a=1&b=2) [on](https://example.com/y)",
  ],
  ["links that run code", '<a href="javascript:alert(1)">no</a> <a href="data:text/html,x">no</a>', "no no"],
  ["empty links", '<a href="/x"></a>text', "text"],
  ["pictures", '<img src="x.png" alt="A cat"><img src="y.png">', "[image: A cat]"],
  ["lists", "<ul><li>a<li>b<ol><li>c</li><li>d</li></ol></ul>", "- a\n- b\n  1. c\n  2. d"],
  ["two lists", "<ul><li>a</ul><ol><li>b</ol>", "- a\n\n1. b"],
  ["quotes", "<blockquote><p>a</p><p>b</p></blockquote><p>c", "> a\n>\n> b\n\nc"],
  ["code", '<pre><code class="language-ts">a &lt; b\n  c\n</code></pre>', "```ts\na < b\n  c\n```"],
  ["code with fences in it", "<pre>```\nx\n```</pre>", "````\n```\nx\n```\n````"],
  ["tables", "<table><tr><th>A<th>B<tr><td>1<td>2|<b>3</b></table>", "| A | B |\n| --- | --- |\n| 1 | 2\\|**3** |"],
  ["tables for layout", "<table><tr><td><p>just</p><p>text</p></td></tr></table>", "just text"],
  ["entities", "&lt;b&gt; &#65;&#x42; &hellip; &unknown; &", "<b> AB … &unknown; &"],
  ["scripts and styles", "a<script>if (1 < 2) x('</p>')</script><style>p > a {}</style>b", "ab"],
  ["comments", "a<!-- <b>no</b> -->b<!doctype html>c<![CDATA[d]]>", "abc"],
  ["controls", "<button>Buy</button><select><option>1</select><textarea>t</textarea>x", "x"],
  ["menus", "<nav>Home</nav><p>Text</p><footer>Us</footer>", "Text"],
  [
    "hidden texts",
    '<p>a<p hidden>no<p>b<div style="display: none">no<div>no</div></div><span aria-hidden="true">no</span>c',
    "a\n\nb\n\nc",
  ],
  ["no markup", "1 < 2 and <3", "1 < 2 and <3"],
  ["a tag that never ends", 'a<b class="x', "a"],
  ["closing what was not opened", "</p></ul></table></b></a>x</pre>", "x"],
];

test.each(cases)("%s", async (_what, html, expected) => {
  expect(await markdown(html)).toBe(expected);
});

test("the title, and the main part when there is one", async () => {
  const long = "word ".repeat(60).trim();
  const page = `<title> My\n&amp; page </title><header>Top</header><main><h1>Head</h1><p>${long}</p></main><div>Around</div>`;
  expect(await htmlToMarkdown(page)).toEqual({ title: "My & page", markdown: `# Head\n\n${long}` });
  expect((await htmlToMarkdown("<main>short</main><p>all the rest</p>")).markdown).toBe("short\n\nall the rest");
});

test.each([
  ...[
    "<a ",
    "<div>",
    "<",
    '<a b="',
    "<!--",
    "<script>",
    "&amp",
    "<table><tr><td>x",
    "<ul><li>x",
    "<b>x",
    "<a href=x>y",
    "<td>",
  ],
  ...[
    "<pre>`",
    "<p hidden>",
    "x<br>",
    "<blockquote>x",
    "<main>",
    "<svg>",
    "</b>",
    "<b>x</b>",
    "<a href=//x.y/z>x</a>",
    " ",
    "\u0000",
  ],
])("%j a hundred thousand times is read, and what comes out is bounded", async (piece) => {
  const { markdown: text } = await htmlToMarkdown(
    piece.repeat(Math.ceil(100_000 / piece.length)),
    `https://example.com/${"x".repeat(400)}`,
  );
  expect(text.length).toBeLessThan(2_100_000);
});

test("others have their turn while a long page is read", async () => {
  let breaths = 0;
  const page = `<main>${"<p>x".repeat(50_000)}</main>`;
  const { markdown: text } = await htmlToMarkdown(page, undefined, async () => void breaths++);
  expect(text.length).toBe(50_000 * 3 - 2);
  expect(breaths).toBeGreaterThan(20);
});
