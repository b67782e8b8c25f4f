import type { CDPSession } from "playwright-core";
import type { ReadFormat } from "../browser-options.ts";

const READ_MS = 10_000;

/** The text of a page in a format, cut in the page at `most` characters. The page cannot change the code that reads it. */
export async function readPage(
  cdp: CDPSession,
  format: ReadFormat,
  most: number,
): Promise<{ text: string; length: number }> {
  const { frameTree } = await cdp.send("Page.getFrameTree");
  const { executionContextId } = await cdp.send("Page.createIsolatedWorld", {
    frameId: frameTree.frame.id,
    worldName: "perdure",
  });
  const { result, exceptionDetails } = await cdp.send("Runtime.evaluate", {
    expression: `(${READER})(${JSON.stringify(format)}, ${most})`,
    contextId: executionContextId,
    returnByValue: true,
    timeout: READ_MS,
  });
  const value: unknown = result.value;
  if (exceptionDetails !== undefined || typeof value !== "object" || value === null)
    throw new Error("The page could not be read.");
  const { text, length } = value as { text?: unknown; length?: unknown };
  return { text: String(text).slice(0, most), length: Number(length) || 0 };
}

/** Runs in the page, in a world of its own. Plain text: it is sent as it is. */
const READER = String.raw`(format, most) => {
  const hidden = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SVG", "HEAD", "IFRAME", "OBJECT", "CANVAS"]);
  const blocks = new Set(["P", "DIV", "SECTION", "ARTICLE", "HEADER", "FOOTER", "MAIN", "ASIDE", "NAV", "UL", "OL", "TABLE", "FORM", "FIGURE", "DL", "DT", "DD", "FIELDSET", "ADDRESS"]);
  const isShown = (element) => element.checkVisibility === undefined || element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const body = document.body ?? document.documentElement;
  if (body === null) return { text: "", length: 0 };
  if (format === "text") {
    const all = body.innerText ?? "";
    return { text: all.slice(0, most), length: all.length };
  }
  if (format === "links") {
    const lines = [];
    const seen = new Set();
    for (const link of document.querySelectorAll("a[href]")) {
      if (!/^https?:/.test(link.href) || seen.has(link.href) || !isShown(link)) continue;
      seen.add(link.href);
      lines.push("- [" + (link.innerText.trim().replace(/\s+/g, " ").slice(0, 200) || link.title || "link") + "](" + link.href + ")");
      if (lines.length >= 2000) break;
    }
    const all = lines.join("\n");
    return { text: all.slice(0, most), length: all.length };
  }
  let out = "";
  let budget = 200000;
  const write = (node, list) => {
    if (budget-- <= 0 || out.length > most * 2) return;
    if (node.nodeType === 3) { out += node.data.replace(/\s+/g, " "); return; }
    if (node.nodeType !== 1 || hidden.has(node.tagName.toUpperCase()) || !isShown(node)) return;
    const name = node.tagName;
    const children = () => { for (const child of node.childNodes) write(child, list); };
    if (/^H[1-6]$/.test(name)) { out += "\n\n" + "#".repeat(Number(name[1])) + " "; children(); out += "\n\n"; return; }
    if (name === "BR") { out += "\n"; return; }
    if (name === "HR") { out += "\n\n---\n\n"; return; }
    if (name === "LI") { out += "\n" + "  ".repeat(Math.max(0, list)) + "- "; for (const child of node.childNodes) write(child, list + 1); return; }
    if (name === "A" && /^https?:/.test(node.href)) { out += "["; children(); out += "](" + node.href + ")"; return; }
    if (name === "IMG") { if (node.alt) out += "![" + node.alt + "]"; return; }
    if (name === "STRONG" || name === "B") { out += "**"; children(); out += "**"; return; }
    if (name === "EM" || name === "I") { out += "*"; children(); out += "*"; return; }
    if (name === "PRE") { out += "\n\n" + "~~~\n" + node.innerText + "\n~~~\n\n"; return; }
    if (name === "CODE") { out += "\u0060"; children(); out += "\u0060"; return; }
    if (name === "BLOCKQUOTE") { out += "\n\n> "; children(); out += "\n\n"; return; }
    if (name === "TR") { out += "\n| "; for (const cell of node.cells) { write(cell, list); out += " | "; } return; }
    if (["input", "textarea", "select"].includes(name.toLowerCase())) { if (node.type !== "hidden" && node.type !== "password") out += "[" + (node.value ?? "") + "]"; return; }
    if (blocks.has(name)) { out += "\n\n"; children(); out += "\n\n"; return; }
    children();
  };
  write(body, 0);
  const all = out.replace(/[ \t]+\n/g, "\n").replace(/\n[ \t]+(?=[^\s-])/g, "\n").replace(/\n{3,}/g, "\n\n").trim();
  return { text: all.slice(0, most), length: all.length };
}`;
