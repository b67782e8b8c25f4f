/*
 * Markdown, as far as messages have it
 *
 * Read line by line. Half a text, while an answer grows, is as good as a whole one: unclosed marks are plain text. What is read
 * is never longer than its source. Each network shows it in its own way.
 */

/** A piece of a line. */
export type Inline =
  | string
  | { readonly type: "bold" | "italic" | "strikethrough"; readonly parts: readonly Inline[] }
  | { readonly type: "code"; readonly text: string }
  | { readonly type: "link"; readonly url: string; readonly parts: readonly Inline[] };

/** One or more lines that are alike. */
export type Block =
  /** Code, or a table, which only stands straight where all letters are alike. */
  | { readonly type: "code"; readonly text: string; readonly language: string }
  | { readonly type: "text" | "quote" | "heading"; readonly parts: readonly Inline[] }
  | { readonly type: "item"; readonly indent: string; readonly gap: string; readonly parts: readonly Inline[] };

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*).*$/;
const HEADING = /^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?$/;
const ITEM = /^(\s*)[-*+](\s+)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_ROW = /^\s*\|.*\|\s*$/;
const TABLE_RULE = /^\s*\|[\s:|-]+\|\s*$/;

/** What a text in Markdown is made of. Between two blocks is a line break; an empty line is a block without parts. */
export function readMarkdown(markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.split("\n");
  const paragraph: string[] = [];
  const put = (block: Block) => {
    if (paragraph.length > 0) blocks.push({ type: "text", parts: readInline(paragraph.join("\n")) });
    paragraph.length = 0;
    blocks.push(block);
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const [, mark, language = ""] = FENCE.exec(line) ?? [];
    const [, indent = "", gap = "", item] = ITEM.exec(line) ?? [];
    const heading = HEADING.exec(line)?.[1];
    if (mark !== undefined) {
      const closes = (one: string) => one.trim().startsWith(mark) && one.trim().replaceAll(mark[0] ?? "", "") === "";
      const from = at + 1;
      for (at = from; at < lines.length && !closes(lines[at] ?? ""); at++);
      put({ type: "code", text: lines.slice(from, at).join("\n"), language });
    } else if (TABLE_ROW.test(line) && TABLE_RULE.test(lines[at + 1] ?? "")) {
      const from = at;
      while (TABLE_ROW.test(lines[at + 1] ?? "")) at++;
      put({ type: "code", text: lines.slice(from, at + 1).join("\n"), language: "" });
    } else if (QUOTE.test(line)) {
      const quoted: string[] = [];
      for (; QUOTE.test(lines[at] ?? ""); at++) quoted.push(QUOTE.exec(lines[at] ?? "")?.[1] ?? "");
      at--;
      put({ type: "quote", parts: readInline(quoted.join("\n")) });
    } else if (heading !== undefined) put({ type: "heading", parts: readInline(heading) });
    else if (item !== undefined) put({ type: "item", indent, gap, parts: readInline(item) });
    else if (line.trim() === "") put({ type: "text", parts: line === "" ? [] : [line] });
    else paragraph.push(line);
  }
  if (paragraph.length > 0) blocks.push({ type: "text", parts: readInline(paragraph.join("\n")) });
  return blocks;
}

const MARKS = [
  ["**", "bold"],
  ["__", "bold"],
  ["~~", "strikethrough"],
  ["*", "italic"],
  ["_", "italic"],
] as const;
const LINK = /!?\[([^\]\n]{0,300})\]\(\s*((?:https?|tg|mailto|tel):[^\s()]*(?:\([^\s()]*\)[^\s()]*)*)[^)\n]{0,300}\)/y;
/** An escape, marks that mean nothing, or any one character. */
const OTHER = /\\[!-/:-@[-`{-~]|`+|[^]/y;
const PLAIN = /[^\\`[!*_~]+/y;
/** Marks within marks beyond this are shown as they are. */
const DEEPEST = 8;

function readInline(text: string, depth = 0): Inline[] {
  const parts: Inline[] = [];
  /** Marks that nothing closes any more. */
  const loose = new Set<string>();
  for (let at = 0; at < text.length;) {
    const plain = match(PLAIN, text, at);
    const code = codeAt(text, at);
    const link = match(LINK, text, at);
    const mark = depth < DEEPEST ? markAt(text, at, loose) : undefined;
    const other = match(OTHER, text, at) ?? [];
    if (plain !== undefined) parts.push(plain[0]);
    else if (code !== undefined) parts.push({ type: "code", text: code.text });
    else if (link !== undefined) {
      const [, label = "", url = ""] = link;
      parts.push({ type: "link", url, parts: label === "" ? [url] : readInline(label, depth + 1) });
    } else if (mark !== undefined) parts.push({ type: mark.type, parts: readInline(mark.text, depth + 1) });
    else parts.push(other[0]?.startsWith("\\") === true ? other[0].slice(1) || "\\" : (other[0] ?? ""));
    at += (plain ?? link)?.[0].length ?? code?.length ?? mark?.length ?? other[0]?.length ?? 1;
  }
  return parts;
}

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text) ?? undefined;
}

interface Span {
  readonly text: string;
  /** With its marks. */
  readonly length: number;
}

function codeAt(text: string, at: number): Span | undefined {
  const [mark] = match(/`+/y, text, at) ?? [];
  if (mark === undefined) return undefined;
  for (let end = text.indexOf(mark, at + mark.length); end !== -1; end = text.indexOf(mark, end)) {
    const [found = mark] = match(/`+/y, text, end) ?? [];
    if (found.length === mark.length)
      return { text: text.slice(at + mark.length, end), length: end + mark.length - at };
    end += found.length;
  }
  return undefined;
}

function markAt(
  text: string,
  at: number,
  loose: Set<string>,
): (Span & { readonly type: (typeof MARKS)[number][1] }) | undefined {
  for (const [mark, type] of MARKS) {
    if (!text.startsWith(mark, at)) continue;
    if (loose.has(mark)) return undefined;
    const from = at + mark.length;
    // Within a word these are what they are: snake_case, 2*3*4.
    const isWord = mark.startsWith("_") || mark.length === 1;
    if (/\s|^$/u.test(text[from] ?? "") || (isWord && /\w/u.test(text[at - 1] ?? ""))) return undefined;
    for (let end = from + 1; end < text.length; end++) {
      if (text[end] === "\\") end++;
      else if (text[end] === "`") end += (codeAt(text, end)?.length ?? 1) - 1;
      else if (text.startsWith(mark, end)) {
        const [run = mark] =
          match(mark.startsWith("*") ? /\*+/y : mark.startsWith("_") ? /_+/y : /~+/y, text, end) ?? [];
        // A longer run closes what stands within as well; a shorter mark is none of it.
        const closes = run.length === mark.length || run.length === 3;
        const close = end + run.length - mark.length;
        if (closes && !/\s/u.test(text[end - 1] ?? " ") && !(isWord && /\w/u.test(text[end + run.length] ?? "")))
          return { type, text: text.slice(from, close), length: close + mark.length - at };
        end += run.length - 1;
      }
    }
    loose.add(mark);
    return undefined;
  }
  return undefined;
}
