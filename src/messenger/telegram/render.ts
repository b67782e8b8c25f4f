/*
 * Markdown as Telegram shows it
 *
 * The text is sent plain, and beside it where it is bold, code or a link. So there is nothing to escape, and half a text, as it
 * is while an answer grows, is as good as a whole one. What is rendered is never longer than its source.
 */

/** Where a text is something else than plain. Offsets are UTF-16 units, as Telegram counts. */
interface Entity {
  readonly type: "bold" | "italic" | "strikethrough" | "code" | "pre" | "text_link" | "blockquote";
  readonly offset: number;
  readonly length: number;
  readonly url?: string;
  readonly language?: string;
}

/** A text and what it looks like. */
interface Rendered {
  readonly text: string;
  readonly entities: readonly Entity[];
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*).*$/;
const HEADING = /^ {0,3}#{1,6}\s+(.*?)(?:\s+#+)?$/;
const ITEM = /^(\s*)[-*+](\s+)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_ROW = /^\s*\|.*\|\s*$/;
const TABLE_RULE = /^\s*\|[\s:|-]+\|\s*$/;

/** What Telegram is sent for a text in Markdown. */
export function render(markdown: string): Rendered {
  const writer = new Writer();
  const lines = markdown.split("\n");
  const paragraph: string[] = [];
  const end = () => {
    if (paragraph.length === 0) return;
    writer.line(() => inline(writer, paragraph.join("\n")));
    paragraph.length = 0;
  };
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? "";
    const [, mark, language = ""] = FENCE.exec(line) ?? [];
    const [, indent = "", gap = "", item] = ITEM.exec(line) ?? [];
    const heading = HEADING.exec(line)?.[1];
    if (mark !== undefined) {
      end();
      const closes = (one: string) => one.trim().startsWith(mark) && one.trim().replaceAll(mark[0] ?? "", "") === "";
      const from = at + 1;
      for (at = from; at < lines.length && !closes(lines[at] ?? ""); at++);
      writer.line(() => writer.as("pre", () => writer.put(lines.slice(from, at).join("\n")), language && { language }));
    } else if (TABLE_ROW.test(line) && TABLE_RULE.test(lines[at + 1] ?? "")) {
      end();
      const from = at;
      while (TABLE_ROW.test(lines[at + 1] ?? "")) at++;
      writer.line(() => writer.as("pre", () => writer.put(lines.slice(from, at + 1).join("\n"))));
    } else if (QUOTE.test(line)) {
      end();
      const quoted: string[] = [];
      for (; QUOTE.test(lines[at] ?? ""); at++) quoted.push(QUOTE.exec(lines[at] ?? "")?.[1] ?? "");
      at--;
      writer.line(() => writer.as("blockquote", () => inline(writer, quoted.join("\n"))));
    } else if (heading !== undefined) {
      end();
      writer.line(() => writer.as("bold", () => inline(writer, heading)));
    } else if (item !== undefined) {
      end();
      writer.line(() => {
        writer.put(`${indent}•${gap}`);
        inline(writer, item);
      });
    } else if (line.trim() === "") {
      end();
      writer.line(() => writer.put(line));
    } else paragraph.push(line);
  }
  end();
  // All of it was marks: better these than nothing, which Telegram refuses.
  return writer.text.trim() === "" ? { text: markdown, entities: [] } : writer.done();
}

class Writer {
  text = "";
  readonly #entities: Entity[] = [];
  #lines = 0;

  put(text: string): void {
    this.text += text;
  }

  line(write: () => void): void {
    if (this.#lines++ > 0) this.text += "\n";
    write();
  }

  as(type: Entity["type"], write: () => void, more: Pick<Entity, "url" | "language"> | "" = ""): void {
    const offset = this.text.length;
    const at = this.#entities.length;
    write();
    const length = this.text.length - offset;
    // What stands around comes before what stands in it.
    if (this.text.slice(offset).trim() !== "")
      this.#entities.splice(at, 0, { type, offset, length, ...(more === "" ? {} : more) });
  }

  done(): Rendered {
    return { text: this.text, entities: this.#entities };
  }
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

function inline(writer: Writer, text: string, depth = 0): void {
  /** Marks that nothing closes any more. */
  const loose = new Set<string>();
  for (let at = 0; at < text.length;) {
    const plain = match(PLAIN, text, at);
    const code = codeAt(text, at);
    const link = match(LINK, text, at);
    const mark = depth < DEEPEST ? markAt(text, at, loose) : undefined;
    const other = match(OTHER, text, at) ?? [];
    if (plain !== undefined) writer.put(plain[0]);
    else if (code !== undefined) writer.as("code", () => writer.put(code.text));
    else if (link !== undefined) {
      const [, label = "", url = ""] = link;
      writer.as("text_link", () => (label === "" ? writer.put(url) : inline(writer, label, depth + 1)), { url });
    } else if (mark !== undefined) writer.as(mark.type, () => inline(writer, mark.text, depth + 1));
    else writer.put(other[0]?.startsWith("\\") === true ? other[0].slice(1) || "\\" : (other[0] ?? ""));
    at += (plain ?? link)?.[0].length ?? code?.length ?? mark?.length ?? other[0]?.length ?? 1;
  }
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

function markAt(text: string, at: number, loose: Set<string>): (Span & { readonly type: Entity["type"] }) | undefined {
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
