import { type Inline, readMarkdown } from "../markdown.ts";

/*
 * Markdown as Slack shows it
 *
 * Sent as rich text: each piece with its looks, and none of it read as a mark, a link or a mention. So nothing needs escaping,
 * and `<!channel>` in a model's text is just that.
 */

interface Style {
  readonly bold?: true;
  readonly italic?: true;
  readonly strike?: true;
  readonly code?: true;
}

/** Some words that look alike. */
type Piece =
  | { readonly type: "text"; readonly text: string; readonly style?: Style }
  | { readonly type: "link"; readonly url: string; readonly text?: string; readonly style?: Style };

interface Section {
  readonly type: "rich_text_section";
  readonly elements: readonly Piece[];
}

/** What a message is made of, from above. */
type Element =
  | Section
  | { readonly type: "rich_text_quote" | "rich_text_preformatted"; readonly elements: readonly Piece[] }
  | {
      readonly type: "rich_text_list";
      readonly style: "bullet";
      readonly indent: number;
      readonly elements: readonly Section[];
    };

const STYLES = { bold: { bold: true }, italic: { italic: true }, strikethrough: { strike: true } } as const;
/** An address that stands in a text as it is. */
const ADDRESS = /<(https?:\/\/[^\s<>]+)>|https?:\/\/[^\s<>"'`]*[^\s<>"'`.,;:!?)\]}*_~]/g;
const DEEPEST_ITEM = 8;

/** What Slack is sent for a text in Markdown. Empty: there is nothing to show but marks. */
export function render(markdown: string): Element[] {
  let elements: Element[] = [];
  let lines: Piece[][] = [];
  const end = () => {
    const pieces = trimmed(lines.flatMap((line, i) => (i === 0 ? line : [{ type: "text", text: "\n" }, ...line])));
    if (pieces.length > 0) elements.push({ type: "rich_text_section", elements: pieces });
    lines = [];
  };
  for (const block of readMarkdown(markdown)) {
    if (block.type === "text" || block.type === "heading") {
      lines.push(piecesOf(block.parts, block.type === "heading" ? { bold: true } : {}));
      continue;
    }
    end();
    if (block.type === "code") {
      if (block.text.trim() !== "")
        elements.push({ type: "rich_text_preformatted", elements: [{ type: "text", text: block.text }] });
      continue;
    }
    const pieces = trimmed(piecesOf(block.parts, {}));
    if (pieces.length === 0) continue;
    if (block.type === "item") elements = withItem(elements, block.indent, pieces);
    else elements.push({ type: "rich_text_quote", elements: pieces });
  }
  end();
  return elements;
}

/** Items that are equally deep are one list. */
function withItem(elements: readonly Element[], space: string, pieces: readonly Piece[]): Element[] {
  const indent = Math.min(Math.floor(space.replaceAll("\t", "  ").length / 2), DEEPEST_ITEM);
  const item = { type: "rich_text_section", elements: pieces } as const;
  const last = elements.at(-1);
  if (last?.type === "rich_text_list" && last.indent === indent)
    return [...elements.slice(0, -1), { ...last, elements: [...last.elements, item] }];
  return [...elements, { type: "rich_text_list", style: "bullet", indent, elements: [item] }];
}

function piecesOf(parts: readonly Inline[], style: Style): Piece[] {
  return merged(parts.flatMap((part) => pieceOf(part, style))).flatMap(linked);
}

function pieceOf(part: Inline, style: Style): Piece[] {
  if (typeof part === "string") return [styled({ type: "text", text: part }, style)];
  if (part.type === "code") return [styled({ type: "text", text: part.text }, { ...style, code: true })];
  if (part.type !== "link") return part.parts.flatMap((one) => pieceOf(one, { ...style, ...STYLES[part.type] }));
  const label = merged(part.parts.flatMap((one) => pieceOf(one, style)));
  return label.map(({ text = "", style: own = {} }) => styled({ type: "link", url: part.url, text }, own));
}

function styled(piece: Piece, style: Style): Piece {
  return Object.keys(style).length === 0 ? piece : { ...piece, style };
}

/** Words that look alike are one piece, and Slack takes none without words. */
function merged(pieces: readonly Piece[]): Piece[] {
  const list: Piece[] = [];
  for (const piece of pieces) {
    const last = list.at(-1);
    const isSame = JSON.stringify(last?.style) === JSON.stringify(piece.style);
    if (last?.type === "text" && piece.type === "text" && isSame)
      list.splice(-1, 1, { ...last, text: last.text + piece.text });
    else if (piece.text !== "") list.push(piece);
  }
  return list;
}

/** Addresses in a text can be followed, as everywhere at Slack. */
function linked(piece: Piece): Piece[] {
  if (piece.type === "link" || piece.style?.code === true) return [piece];
  const { text, style = {} } = piece;
  const pieces: Piece[] = [];
  let from = 0;
  const put = (to: number) => {
    if (to > from) pieces.push(styled({ type: "text", text: text.slice(from, to) }, style));
  };
  for (const { 0: found, 1: inner, index } of text.matchAll(ADDRESS)) {
    put(index);
    pieces.push(styled({ type: "link", url: inner ?? found }, style));
    from = index + found.length;
  }
  put(text.length);
  return pieces;
}

/** Empty lines at the edges are what stands between elements anyway. */
function trimmed(pieces: readonly Piece[]): Piece[] {
  const list = merged(pieces);
  const cut = (at: 0 | -1, pattern: RegExp) => {
    const piece = list.at(at);
    if (piece?.type !== "text") return;
    const text = piece.text.replace(pattern, "");
    list.splice(at, 1, ...(text === "" ? [] : [{ ...piece, text }]));
  };
  cut(0, /^(?:[^\S\n]*\n)+/);
  cut(-1, /\s+$/);
  return list;
}

/** A text as it is: nothing in it is read. Between its sections is a line break. */
export function plainSections(text: string): object[] {
  const sections: object[] = [];
  for (let from = 0; from < text.length;) {
    const line = text.lastIndexOf("\n", from + SECTION_CHARS);
    const fits = text.length - from <= SECTION_CHARS;
    const isLow = (text.charCodeAt(from + SECTION_CHARS) & 0xfc00) === 0xdc00;
    const to = fits ? text.length : line > from ? line : from + SECTION_CHARS - (isLow ? 1 : 0);
    sections.push({ type: "section", text: { type: "plain_text", text: text.slice(from, to), emoji: false } });
    from = to + (text[to] === "\n" ? 1 : 0);
  }
  return sections;
}

const SECTION_CHARS = 3_000;

/** The same words for notifications, where marks are read: those that mean something to Slack are taken from them. */
export function fallbackText(text: string, limit: number): string {
  let shown = "";
  for (const sign of text) {
    const next = ESCAPES[sign] ?? sign;
    if (shown.length + next.length >= limit) return `${shown}…`;
    shown += next;
  }
  return shown;
}

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
