const MAX_PATH = 300;

/** A path below a skill's directory, with `/`, or undefined for one that is not, or that leads out of it. */
export function resourcePath(path: string): string | undefined {
  if (path.length > MAX_PATH || /[\0\\]/.test(path) || path.startsWith("/")) return undefined;
  const parts = path.split("/").filter((part) => part !== "." && part !== "");
  return parts.length === 0 || parts.includes("..") ? undefined : parts.join("/");
}

const mediaTypes: Readonly<Record<string, string>> = {
  md: "text/markdown",
  txt: "text/plain",
  csv: "text/csv",
  html: "text/html",
  css: "text/css",
  js: "text/javascript",
  mjs: "text/javascript",
  ts: "text/typescript",
  mts: "text/typescript",
  py: "text/x-python",
  sh: "text/x-shellscript",
  bash: "text/x-shellscript",
  json: "application/json",
  yaml: "application/yaml",
  yml: "application/yaml",
  xml: "application/xml",
  svg: "image/svg+xml",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  pdf: "application/pdf",
  zip: "application/zip",
};

/** The ending of a path with its dot, in small letters; empty without one. */
export function extensionOf(path: string): string {
  return /\.[A-Za-z0-9]+$/.exec(path)?.[0].toLowerCase() ?? "";
}

/** The media type that a name stands for. */
export function mediaTypeOf(path: string, text: boolean): string {
  return mediaTypes[extensionOf(path).slice(1)] ?? (text ? "text/plain" : "application/octet-stream");
}

/** The text that bytes hold, or undefined for what is none. */
export function textOfBytes(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}
