/** What becomes of an element. */
export const voidElements = new Set([
  ...["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"],
]);

/** Not for reading. */
export const skippedElements = new Set([
  ...["script", "style", "template", "svg", "math", "canvas", "iframe", "object", "embed", "video", "audio", "map"],
  ...["button", "select", "textarea", "input", "datalist", "dialog", "noembed", "noframes", "xmp"],
]);

/** The frame around what a page is about. */
export const frameElements = new Set(["nav", "footer", "aside", "menu"]);

/** They begin and end a paragraph. */
export const blockElements = new Set([
  ...["address", "article", "aside", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption"],
  ...["figure", "footer", "form", "header", "hgroup", "legend", "main", "nav", "p", "section", "summary", "caption"],
]);

/** Their closing tag is often left out: another one of them ends them. */
export const looseElements = new Set(["p", "li", "dt", "dd", "td", "th", "tr", "option"]);

/** Hidden from readers, so a place for instructions that only a model reads. */
export function isHidden(attributes: ReadonlyMap<string, string>): boolean {
  if (attributes.has("hidden") || attributes.get("aria-hidden") === "true") return true;
  const style = attributes.get("style");
  return (
    style !== undefined &&
    /display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])|opacity\s*:\s*0(?![.\d])/i.test(style)
  );
}
