import { htmlTokens } from "./html-tokens.ts";
import { createMarkdownWriter, type MarkdownWriter } from "./markdown-writer.ts";

/** A page, as text to read. */
interface ReadablePage {
  readonly title: string | undefined;
  readonly markdown: string;
}

/** A main part of fewer characters is not believed to be all there is. */
const MIN_MAIN_CHARS = 200;
const MAX_TITLE_CHARS = 300;
const MAX_LINK_CHARS = 500;
const MAX_COLUMNS = 40;
/** A text is decoded in pieces of about as many characters. */
const PIECE_CHARS = 64 * 1024;
/** No entity that is known is longer. */
const MAX_ENTITY_CHARS = 16;
/** Pieces of markup that are read before others have their turn: some milliseconds. */
const BREATH_TOKENS = 4_000;

/** What becomes of an element. */
const voidElements = new Set([
  ...["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"],
]);

/** Not for reading. */
const skippedElements = new Set([
  ...["script", "style", "template", "svg", "math", "canvas", "iframe", "object", "embed", "video", "audio", "map"],
  ...["button", "select", "textarea", "input", "datalist", "dialog", "noembed", "noframes", "xmp"],
]);

/** The frame around what a page is about. */
const frameElements = new Set(["nav", "footer", "aside", "menu"]);

/** They begin and end a paragraph. */
const blockElements = new Set([
  ...["address", "article", "aside", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption"],
  ...["figure", "footer", "form", "header", "hgroup", "legend", "main", "nav", "p", "section", "summary", "caption"],
]);

/** Their closing tag is often left out: another one of them ends them. */
const looseElements = new Set(["p", "li", "dt", "dd", "td", "th", "tr", "option"]);

/** The ones that pages really use, each with its character. Others stay as they are written. */
const named = new Map(
  (
    `amp & lt < gt > quot " apos ' copy © reg ® trade ™ hellip … mdash — ndash – lsquo ‘ rsquo ’ ldquo “ rdquo ” sbquo ‚ ` +
    "bdquo „ laquo « raquo » bull • middot · sect § para ¶ deg ° plusmn ± times × divide ÷ frac12 ½ frac14 ¼ frac34 ¾ " +
    "euro € pound £ yen ¥ cent ¢ micro µ larr ← rarr → uarr ↑ darr ↓ harr ↔ le ≤ ge ≥ ne ≠ asymp ≈ infin ∞ sup1 ¹ sup2 ² " +
    "sup3 ³ ordm º ordf ª iexcl ¡ iquest ¿ check ✓ auml ä ouml ö uuml ü Auml Ä Ouml Ö Uuml Ü szlig ß eacute é egrave è " +
    "ecirc ê agrave à aacute á acirc â ccedil ç ntilde ñ iacute í oacute ó ocirc ô uacute ú aring å Aring Å aelig æ " +
    "oslash ø Oslash Ø"
  )
    .split(/(?<=\S \S) /)
    .map((pair) => pair.split(" ") as [string, string]),
);
for (const name of ["nbsp", "ensp", "emsp", "thinsp"]) named.set(name, " ");
for (const name of ["shy", "zwnj", "zwj"]) named.set(name, "");

/**
 * The readable part of a page as Markdown: headings, paragraphs, lists, links, tables, code. Scripts, styles, controls and hidden
 * parts are left out; so are menus and footers, and all around the main part when the page marks one. Takes any text, never
 * rejects, and costs time and room in proportion to its length. Hence no library: turndown needs a DOM of the whole page in one
 * step, and deep nesting overflows its stack.
 * @param breathe is awaited every few milliseconds, so that others have their turn. Default: a timer.
 */
export async function htmlToMarkdown(
  html: string,
  baseUrl?: string,
  breathe: () => Promise<void> = rest,
): Promise<ReadablePage> {
  const whole = await convert(html, baseUrl, undefined, breathe);
  for (const name of ["main", "article"]) {
    if (!new RegExp(`<${name}[\\s>]`, "i").test(html)) continue;
    const part = await convert(html, baseUrl, name, breathe);
    if (part.markdown.length >= MIN_MAIN_CHARS) return { ...part, title: whole.title };
  }
  return whole;
}

/** Tables in tables in tables are layout. Deeper ones are read as text. */
const MAX_TABLES = 4;

interface Table {
  readonly rows: string[][];
  row: string[] | undefined;
  inCell: boolean;
  /** Tables in it that are read as text. */
  ignored: number;
}

async function convert(
  html: string,
  baseUrl: string | undefined,
  within: string | undefined,
  breathe: () => Promise<void>,
): Promise<ReadablePage> {
  const writer = createMarkdownWriter();
  const state: Open = { tables: [], links: [], marks: new Map(), baseUrl };
  const { tables } = state;
  let title: string | undefined;
  let inTitle = false;
  let inside = within === undefined ? 1 : 0;
  let skip: { name: string; depth: number } | undefined;
  let pre: { text: string; language: string; depth: number } | undefined;

  let tokens = 0;
  for (const token of htmlTokens(html)) {
    if (writer.isFull()) break;
    if (++tokens % BREATH_TOKENS === 0) await breathe();
    if (token.type === "text") {
      if (inTitle) title ??= oneLine(decodeEntities(token.text.slice(0, PIECE_CHARS))).slice(0, MAX_TITLE_CHARS);
      if (inTitle || skip !== undefined || inside === 0) continue;
      for (const piece of piecesOf(token.text)) {
        if (piece.length > PIECE_CHARS / 2) await breathe();
        if (pre !== undefined) pre.text += decodeEntities(piece);
        else writer.text(decodeEntities(piece));
      }
      continue;
    }
    const { name } = token;
    if (name === "title") {
      inTitle = token.type === "open" && title === undefined && skip === undefined;
      continue;
    }
    if (skip !== undefined) {
      skip = stillSkipping(skip, token);
      if (skip !== undefined || token.type === "close") continue;
    }
    if (name === within) {
      inside = Math.max(0, inside + (token.type === "open" ? 1 : -1));
      continue;
    }
    if (inside === 0) continue;
    if (token.type === "open") {
      const unread =
        skippedElements.has(name) || (within === undefined && frameElements.has(name)) || isHidden(token.attributes);
      if (unread) {
        if (blockElements.has(name)) writer.endBlock();
        if (!voidElements.has(name)) skip = { name, depth: 1 };
        continue;
      }
      if (name === "pre") {
        writer.endBlock();
        pre =
          pre === undefined
            ? { text: "", language: languageOf(token.attributes), depth: 1 }
            : { ...pre, depth: pre.depth + 1 };
      } else if (pre !== undefined) {
        if (name === "br") pre.text += "\n";
        if (name === "code" && pre.language === "") pre.language = languageOf(token.attributes);
      } else open(writer, name, token.attributes, state);
    } else if (pre !== undefined) {
      if (name !== "pre") continue;
      pre.depth -= 1;
      if (pre.depth > 0) continue;
      writer.lines(fenced(pre.text, pre.language));
      pre = undefined;
    } else close(writer, name, state);
  }
  if (pre !== undefined) writer.lines(fenced(pre.text, pre.language));
  for (const table of tables) table.ignored = 0;
  while (tables.length > 0) close(writer, "table", state);
  return { title: title === "" ? undefined : title, markdown: writer.result() };
}

/** A long text in pieces, none of which begins inside of an entity. */
function* piecesOf(text: string): Generator<string> {
  let at = 0;
  while (text.length - at > PIECE_CHARS + MAX_ENTITY_CHARS) {
    let end = at + PIECE_CHARS;
    const entity = text.indexOf("&", end - MAX_ENTITY_CHARS);
    if (entity !== -1 && entity < end) end = text.lastIndexOf("&", end);
    yield text.slice(at, end);
    at = end;
  }
  yield text.slice(at);
}

interface Open {
  readonly tables: Table[];
  readonly links: { at: number; href: string | undefined }[];
  readonly marks: Map<string, number[]>;
  readonly baseUrl: string | undefined;
}

const inlineMarks: Readonly<Record<string, string>> = {
  ...{ b: "**", strong: "**", i: "_", em: "_", code: "`", kbd: "`", samp: "`", del: "~~", s: "~~" },
};
const heading = /^h[1-6]$/;

function open(writer: MarkdownWriter, name: string, attributes: ReadonlyMap<string, string>, state: Open): void {
  if (name === "br") writer.lineBreak();
  else if (name === "hr") writer.lines(["---"]);
  else if (name === "img") {
    const alt = oneLine(decodeEntities(attributes.get("alt") ?? "")).slice(0, MAX_TITLE_CHARS);
    if (alt !== "") writer.text(`[image: ${alt}]`);
  } else if (name === "a")
    state.links.push({ at: writer.position(), href: hrefOf(attributes.get("href"), state.baseUrl) });
  else if (name === "ul" || name === "ol") writer.openList(name === "ol");
  else if (name === "li") writer.openItem();
  else if (name === "blockquote") writer.openQuote();
  else if (name === "table") {
    writer.endBlock();
    const table = state.tables.at(-1);
    if (table === undefined || state.tables.length < MAX_TABLES)
      state.tables.push({ rows: [], row: undefined, inCell: false, ignored: 0 });
    else table.ignored += 1;
  } else if (name === "tr" || name === "td" || name === "th") openInTable(writer, name, state);
  else if (Object.hasOwn(inlineMarks, name)) {
    const at = state.marks.get(name) ?? [];
    at.push(writer.position());
    state.marks.set(name, at);
  } else if (blockElements.has(name) || heading.test(name)) writer.endBlock();
}

function close(writer: MarkdownWriter, name: string, state: Open): void {
  if (name === "a") {
    const link = state.links.pop();
    if (link?.href !== undefined) writer.wrap(link.at, (text) => `[${text}](${link.href})`);
  } else if (name === "ul" || name === "ol") writer.closeList();
  else if (name === "blockquote") writer.closeQuote();
  else if (name === "td" || name === "th") endCell(writer, state.tables.at(-1));
  else if (name === "table") {
    if ((state.tables.at(-1)?.ignored ?? 0) > 0) return endIgnored(writer, state.tables.at(-1));
    const table = state.tables.pop();
    endCell(writer, table);
    if (table !== undefined) writer.lines(tableLines(table.rows));
  } else if (heading.test(name)) writer.endBlock(`${"#".repeat(Number(name[1]))} `);
  else if (Object.hasOwn(inlineMarks, name)) {
    const at = state.marks.get(name)?.pop();
    const sign = inlineMarks[name] ?? "";
    if (at !== undefined && at <= writer.position()) writer.wrap(at, (text) => `${sign}${text}${sign}`);
  } else if (blockElements.has(name) || name === "li") writer.endBlock();
}

function openInTable(writer: MarkdownWriter, name: string, { tables }: Open): void {
  const table = tables.at(-1);
  if (table === undefined || table.ignored > 0) return writer.endBlock();
  endCell(writer, table);
  if (name === "tr" || table.row === undefined) {
    table.row = [];
    table.rows.push(table.row);
  }
  if (name === "tr") return;
  writer.startCell();
  table.inCell = true;
}

function endCell(writer: MarkdownWriter, table: Table | undefined): void {
  if (table?.inCell !== true || table.ignored > 0) return;
  table.inCell = false;
  const text = writer.endCell();
  if (table.row !== undefined && table.row.length < MAX_COLUMNS) table.row.push(text);
}

function endIgnored(writer: MarkdownWriter, table: Table | undefined): void {
  writer.endBlock();
  if (table !== undefined) table.ignored -= 1;
}

function tableLines(rows: readonly (readonly string[])[]): string[] {
  const filled = rows.filter((row) => row.some((cell) => cell !== ""));
  // One column is how pages were laid out, not a table.
  if (filled.every((row) => row.length < 2)) return filled.flat();
  const [head = [], ...rest] = filled.map((row) => `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`);
  const columns = filled[0]?.length ?? 0;
  return [String(head), `|${" --- |".repeat(columns)}`, ...rest];
}

function stillSkipping(
  skip: { name: string; depth: number },
  token: { readonly type: "open" | "close"; readonly name: string },
): { name: string; depth: number } | undefined {
  if (token.name !== skip.name) return skip;
  if (token.type === "close") return skip.depth === 1 ? undefined : { ...skip, depth: skip.depth - 1 };
  return looseElements.has(skip.name) ? undefined : { ...skip, depth: skip.depth + 1 };
}

function hrefOf(href: string | undefined, base: string | undefined): string | undefined {
  if (href === undefined || href.length > MAX_LINK_CHARS || href.startsWith("#")) return undefined;
  const decoded = decodeEntities(href).trim();
  try {
    const url = new URL(decoded, base);
    if (url.protocol !== "http:" && url.protocol !== "https:" && url.protocol !== "mailto:") return undefined;
    const text = url.href.replaceAll("(", "%28").replaceAll(")", "%29");
    return text.length > MAX_LINK_CHARS ? undefined : text;
  } catch {
    return undefined;
  }
}

function languageOf(attributes: ReadonlyMap<string, string>): string {
  return /(?:language|lang)-([a-z0-9+#-]{1,20})/i.exec(attributes.get("class") ?? "")?.[1] ?? "";
}

function fenced(text: string, language: string): string[] {
  const body = text.replace(/^\n/, "").trimEnd();
  if (body === "") return [];
  let fence = "```";
  for (const [run] of body.matchAll(/`{3,}/g)) if (run.length >= fence.length) fence = "`".repeat(run.length + 1);
  return [`${fence}${language}`, ...body.split("\n"), fence];
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 0));
}

/** Hidden from readers, so a place for instructions that only a model reads. */
function isHidden(attributes: ReadonlyMap<string, string>): boolean {
  if (attributes.has("hidden") || attributes.get("aria-hidden") === "true") return true;
  const style = attributes.get("style");
  return (
    style !== undefined &&
    /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])/i.test(style)
  );
}

/** Undoes `&amp;`, `&#65;`, `&#x41;` and the like. */
function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]{1,12}));?/gi, (whole, hex, decimal, name) => {
    if (typeof name === "string") return named.get(name) ?? whole;
    const code = typeof hex === "string" ? Number.parseInt(hex, 16) : Number(decimal);
    const isCharacter = code >= 0x20 && code <= 0x10_ffff && !(code >= 0xd800 && code <= 0xdfff) && code !== 0x7f;
    return isCharacter ? String.fromCodePoint(code) : " ";
  });
}
