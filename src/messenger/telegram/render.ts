import { type Block, type Inline, readMarkdown } from "../markdown.ts";

/*
 * Markdown as Telegram shows it
 *
 * The text is sent plain, with what is bold, code or a link beside it. So nothing needs escaping, and half a text, while an
 * answer grows, is as good as a whole one. What is rendered is never longer than its source.
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

/** What Telegram is sent for a text in Markdown. */
export function render(markdown: string): Rendered {
  const writer = new Writer();
  for (const block of readMarkdown(markdown)) writer.line(() => write(writer, block));
  // All of it was marks: better these than nothing, which Telegram refuses.
  return writer.text.trim() === "" ? { text: markdown, entities: [] } : writer.done();
}

const FORMS = { quote: "blockquote", heading: "bold" } as const;

function write(writer: Writer, block: Block): void {
  if (block.type === "code") {
    const { text, language } = block;
    return writer.as("pre", () => writer.put(text), language && { language });
  }
  if (block.type === "item") writer.put(`${block.indent}•${block.gap}`);
  if (block.type === "text" || block.type === "item") return inline(writer, block.parts);
  writer.as(FORMS[block.type], () => inline(writer, block.parts));
}

function inline(writer: Writer, parts: readonly Inline[]): void {
  for (const part of parts) {
    if (typeof part === "string") writer.put(part);
    else if (part.type === "code") writer.as("code", () => writer.put(part.text));
    else if (part.type === "link") writer.as("text_link", () => inline(writer, part.parts), { url: part.url });
    else writer.as(part.type, () => inline(writer, part.parts));
  }
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
