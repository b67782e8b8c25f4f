/** One piece of an HTML text. */
type HtmlToken =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "open"; readonly name: string; readonly attributes: ReadonlyMap<string, string> }
  | { readonly type: "close"; readonly name: string };

/** Their content is no markup, up to their closing tag. */
const rawElements = new Set(["script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp"]);
const MAX_ATTRIBUTES = 64;
const none: ReadonlyMap<string, string> = new Map();
const tagStart = /<(\/?)([a-z][a-z0-9:-]{0,63})/iy;
const attribute = /[\s/]*(=[^\s/>=]*|[^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?/y;
const tagEnd = /[\s/]*>/y;

/** Reads HTML piece by piece, as forgiving as browsers. Looks at each character a bounded number of times; the rest is text. */
export function* htmlTokens(html: string): Generator<HtmlToken> {
  let at = 0;
  while (at < html.length) {
    const open = html.indexOf("<", at);
    if (open === -1) break;
    if (open > at) yield { type: "text", text: html.slice(at, open) };
    const next = html[open + 1];
    if (next === "!" || next === "?") {
      at = skipDeclaration(html, open);
      continue;
    }
    tagStart.lastIndex = open;
    const start = tagStart.exec(html);
    if (start === null) {
      yield { type: "text", text: "<" };
      at = open + 1;
      continue;
    }
    const name = (start[2] ?? "").toLowerCase();
    const { attributes, end } = readAttributes(html, tagStart.lastIndex);
    at = end;
    if (start[1] === "/") {
      yield { type: "close", name };
      continue;
    }
    yield { type: "open", name, attributes };
    if (!rawElements.has(name)) continue;
    const closing = new RegExp(`</${name}(?=[\\s/>])`, "gi");
    closing.lastIndex = at;
    const closed = closing.exec(html)?.index ?? html.length;
    if (closed > at) yield { type: "text", text: html.slice(at, closed) };
    at = closed;
  }
  if (at < html.length) yield { type: "text", text: html.slice(at) };
}

function skipDeclaration(html: string, open: number): number {
  const isComment = html.startsWith("<!--", open);
  const isData = html.startsWith("<![CDATA[", open);
  const end = html.indexOf(isComment ? "-->" : isData ? "]]>" : ">", open + (isComment ? 4 : 2));
  // Without an end all that follows belongs to it.
  return end === -1 ? html.length : end + (isComment || isData ? 3 : 1);
}

function readAttributes(html: string, from: number): { attributes: ReadonlyMap<string, string>; end: number } {
  if (html[from] === ">") return { attributes: none, end: from + 1 };
  const attributes = new Map<string, string>();
  let at = from;
  while (at < html.length) {
    tagEnd.lastIndex = at;
    if (tagEnd.test(html)) return { attributes, end: tagEnd.lastIndex };
    attribute.lastIndex = at;
    const match = attribute.exec(html);
    if (match === null) break;
    at = attribute.lastIndex;
    const name = (match[1] ?? "").toLowerCase();
    const value = match[2] ?? match[3] ?? match[4] ?? "";
    if (attributes.size < MAX_ATTRIBUTES && !attributes.has(name)) attributes.set(name, value);
  }
  return { attributes, end: html.length };
}
