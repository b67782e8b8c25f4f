import { PerdureError } from "../../base/error.ts";

/** What the front matter of a `SKILL.md` can hold: texts, lists of texts, and one level of names with texts. */
export type FrontValue = string | readonly string[] | Readonly<Record<string, string>>;

/** A document that begins with front matter. */
interface FrontMatter {
  readonly fields: Readonly<Record<string, FrontValue>>;
  /** What follows it. */
  readonly body: string;
}

const KEY = /^([A-Za-z_][A-Za-z0-9_.-]*)\s*:(?:\s+(.*))?$/;
const BLOCK = /^([|>])([+-]?)$/;
const MAX_LINES = 500;
/** The patterns here take time with the square of a line's length. */
const MAX_LINE_CHARS = 4_000;

interface Line {
  readonly number: number;
  readonly indent: number;
  readonly text: string;
}

/**
 * Reads the YAML that front matter uses: `key: value`, quoted texts, blocks (`|` and `>`), lists (`- x` and `[a, b]`) and maps of
 * one level. Every value is text as written. Other YAML (anchors, tags, deeper maps, several documents) is refused, never
 * guessed; a YAML library would add a megabyte to every agent and have to be kept from just that.
 * @throws PerdureError `bad_input` that names the line
 */
export function parseFrontMatter(text: string): FrontMatter {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== "---") throw new PerdureError("bad_input", "It does not begin with a line `---`.");
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === "---");
  if (end === -1) throw new PerdureError("bad_input", "Its front matter has no closing line `---`.");
  if (end > MAX_LINES) throw new PerdureError("bad_input", `Its front matter has more than ${MAX_LINES} lines.`);
  const long = lines.findIndex((line, index) => index < end && line.length > MAX_LINE_CHARS);
  if (long !== -1) {
    throw new PerdureError(
      "bad_input",
      `Line ${long + 1} has more than ${MAX_LINE_CHARS} characters. Use \`>\` or \`|\`.`,
    );
  }
  const fields = readFields(lines.slice(1, end));
  return {
    fields,
    body: lines
      .slice(end + 1)
      .join("\n")
      .trim(),
  };
}

function readFields(raw: readonly string[]): Record<string, FrontValue> {
  const fields = new Map<string, FrontValue>();
  for (let at = 0; at < raw.length;) {
    const line = lineAt(raw, at);
    if (isBlank(line)) {
      at++;
      continue;
    }
    if (line.indent > 0) throw wrong(line, "it is indented, but belongs to no name");
    const [, key, rest = ""] = KEY.exec(line.text) ?? [];
    if (key === undefined) throw wrong(line, "a line must be `name: value`");
    if (fields.has(key)) throw wrong(line, `\`${key}\` is there twice`);
    // What belongs to a name is indented; only list items may stand below it.
    const below = /^(#.*)?$/.test(rest);
    let next = at + 1;
    while (next < raw.length && belongs(lineAt(raw, next), below)) next++;
    const inner = raw.slice(at + 1, next).map((_, index) => lineAt(raw, at + 1 + index));
    fields.set(key, readValue(line, rest, inner));
    at = next;
  }
  return Object.fromEntries(fields);
}

function belongs(line: Line, below: boolean): boolean {
  return line.text === "" || line.indent > 0 || (below && (line.text === "-" || line.text.startsWith("- ")));
}

function readValue(line: Line, rest: string, inner: readonly Line[]): FrontValue {
  const block = BLOCK.exec(stripComment(rest));
  if (block !== null) return readBlock(inner, block[1] === ">", block[2] ?? "");
  const filled = inner.filter((one) => !isBlank(one));
  if (stripComment(rest) !== "") {
    if (rest.startsWith("[")) return readFlowList(line, [rest, ...filled.map((one) => one.text)].join(" "));
    // A plain text may go on in the lines below it.
    if (filled.length > 0 && /^["']/.test(rest))
      throw wrong(line, "a quoted text must end on its line; use `>` or `|`");
    const more = filled.map((one) => one.text);
    return [readScalar(line, rest, true), ...more].join(" ");
  }
  if (filled.length === 0) return "";
  const isItem = (one: Line): boolean => one.text === "-" || one.text.startsWith("- ");
  if (filled.every(isItem)) return filled.map((one) => readScalar(one, one.text.slice(1).trim(), true));
  if (filled.some(isItem)) throw wrong(line, "lists of more than one line for an item are not supported");
  return readMap(filled);
}

function readMap(lines: readonly Line[]): Record<string, string> {
  const map = new Map<string, string>();
  for (const line of lines) {
    const [, key, value = ""] = /^("[^"]*"|'[^']*'|[^\s:#'"[{][^:#]*?)\s*:(?:\s+(.*))?$/.exec(line.text) ?? [];
    if (key === undefined) throw wrong(line, "a line must be `name: value`");
    if (line.indent !== lines[0]?.indent || stripComment(value) === "") {
      throw wrong(line, "only one level of names is supported, each with a text");
    }
    const name = readScalar(line, key, false);
    if (map.has(name)) throw wrong(line, `\`${name}\` is there twice`);
    map.set(name, readScalar(line, value, true));
  }
  return Object.fromEntries(map);
}

function readBlock(lines: readonly Line[], folded: boolean, chomp: string): string {
  const indent = lines.find((one) => one.text !== "")?.indent ?? 0;
  const texts = lines.map((one) => (one.text === "" ? "" : " ".repeat(Math.max(0, one.indent - indent)) + one.text));
  while (texts.at(-1) === "" && chomp !== "+") texts.pop();
  if (!folded) return texts.join("\n");
  // Lines make one paragraph; an empty one ends it; one that is indented further stands alone.
  return texts.reduce((text, line, index) => {
    if (index === 0) return line;
    const before = texts[index - 1] ?? "";
    const alone = line === "" || before === "" || line.startsWith(" ") || before.startsWith(" ");
    return text + (alone ? (line === "" || before !== "" ? "\n" : "") : " ") + line;
  }, "");
}

function readFlowList(line: Line, text: string): string[] {
  const inside = /^\[(.*)\]$/.exec(stripComment(text).trim())?.[1];
  if (inside === undefined) throw wrong(line, "the list has no closing `]`");
  if (inside.trim() === "") return [];
  const items = inside.matchAll(/\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\s][^,]*)/g);
  return [...items].map(([, item = ""]) => readScalar(line, item, false));
}

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  '"': '"',
  "\\": "\\",
  "/": "/",
  "0": "\0",
};

function readScalar(line: Line, raw: string, comments: boolean): string {
  const text = (comments ? stripComment(raw) : raw).trim();
  if (text.startsWith('"')) {
    if (!/^"(?:[^"\\]|\\.)*"$/.test(text)) throw wrong(line, "the quoted text does not end where the line does");
    return text.slice(1, -1).replace(/\\(u[0-9A-Fa-f]{4}|.)/g, (_, escape: string) => {
      if (escape.length === 5) return String.fromCharCode(Number.parseInt(escape.slice(1), 16));
      const meant = escapes[escape];
      if (meant === undefined) throw wrong(line, `\`\\${escape}\` is not supported`);
      return meant;
    });
  }
  if (text.startsWith("'")) {
    if (!/^'(?:[^']|'')*'$/.test(text)) throw wrong(line, "the quoted text does not end where the line does");
    return text.slice(1, -1).replaceAll("''", "'");
  }
  if (/^[&*!%@`{}[\]|>]/.test(text)) throw wrong(line, `a text that begins with \`${text[0]}\` must be in quotes`);
  if (/:\s/.test(text)) throw wrong(line, "a text with `: ` in it must be in quotes, or a block (`>`)");
  return text;
}

/** A `#` after a space begins a comment, but not inside quotes. */
function stripComment(text: string): string {
  const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')/.exec(text)?.[1] ?? "";
  const rest = text.slice(quoted.length);
  const at = rest.startsWith("#") && quoted === "" ? 0 : rest.search(/\s#/);
  return (quoted + (at === -1 ? rest : rest.slice(0, at))).trimEnd();
}

function lineAt(raw: readonly string[], index: number): Line {
  const text = raw[index] ?? "";
  const body = text.trimStart();
  const space = text.slice(0, text.length - body.length);
  const line = { number: index + 2, indent: space.length, text: body.trimEnd() };
  if (space.includes("\t") && line.text !== "") throw wrong(line, "tabs cannot indent; use spaces");
  return line;
}

function isBlank(line: Line): boolean {
  return line.text === "" || line.text.startsWith("#");
}

function wrong(line: Line, what: string): PerdureError {
  return new PerdureError("bad_input", `Line ${line.number} of its front matter cannot be read: ${what}.`);
}
