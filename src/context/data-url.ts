import type { Part } from "../message/types.ts";

const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/**
 * A part as it can be given to a model. The AI SDK takes what a data URL holds for base64, marked so or not, and throws
 * when it is none: a file that is written out becomes base64, and one that cannot be read a text that says so.
 */
export function withReadableData(part: Part): Part {
  if (part.type !== "file" || !part.url?.startsWith("data:")) return part;
  const at = part.url.indexOf(",");
  const head = part.url.slice(0, at);
  const data = part.url.slice(at + 1);
  if (at === -1) return unreadable(part.filename);
  if (/;base64$/i.test(head)) return BASE64.test(data) && data.length % 4 !== 1 ? part : unreadable(part.filename);
  try {
    return { ...part, url: `${head};base64,${toBase64(decodeURIComponent(data))}` };
  } catch {
    return unreadable(part.filename);
  }
}

function toBase64(text: string): string {
  let bytes = "";
  for (const byte of new TextEncoder().encode(text)) bytes += String.fromCharCode(byte);
  return btoa(bytes);
}

function unreadable(filename: string | undefined): Part {
  return { type: "text", text: `[The file${filename === undefined ? "" : ` ${filename}`} cannot be read.]` };
}
