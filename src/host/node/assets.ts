import { createReadStream, realpathSync, statSync, type Stats } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { extname, join, sep } from "node:path";
import { Readable } from "node:stream";
import { PerdureError } from "../../base/error.ts";

/** Answers a request with a file, or with nothing when there is none for it. Never rejects. */
export type Assets = (request: Request) => Promise<Response | undefined>;

const INDEX = "index.html";
const YEAR_SECONDS = 31_536_000;

/**
 * Serves a directory's files, for pages that a bundler built. GET and HEAD; ETag and 304; files with a hash in their name under
 * `/assets/` are cached for ever, others revalidated. A page address without a file (opened by a browser, no extension) gets
 * `index.html`. Names that start with a dot, and links that lead out, are not served.
 * @throws PerdureError `bad_config` when there is no such directory.
 */
export function openAssets(dir: string): Assets {
  const root = rootOf(dir);
  return async (request) => {
    if (request.method !== "GET" && request.method !== "HEAD") return undefined;
    const names = toNames(new URL(request.url).pathname);
    if (names === undefined) return undefined;
    const found = (await find(root, names)) ?? (isNavigation(request, names) ? await find(root, [INDEX]) : undefined);
    return found === undefined ? undefined : respond(request, found);
  };
}

interface Found {
  readonly path: string;
  /** From the root, with `/` in between. */
  readonly name: string;
  readonly stats: Stats;
}

function rootOf(dir: string): string {
  try {
    const root = realpathSync(dir);
    if (statSync(root).isDirectory()) return root;
  } catch {
    // Told below.
  }
  throw new PerdureError(
    "bad_config",
    `\`assets\` must be a directory of files to serve, and "${dir}" is not a directory.`,
  );
}

/** The names on the way to a file, or nothing when the path cannot be one. A path that ends in a slash means its index. */
function toNames(pathname: string): string[] | undefined {
  const encoded = pathname.slice(1).split("/");
  if (encoded.at(-1) === "") encoded[encoded.length - 1] = INDEX;
  const names: string[] = [];
  for (const one of encoded) {
    const name = decode(one);
    // `..` starts with a dot too. What is encoded must not become a separator.
    if (name === undefined || name === "" || name.startsWith(".") || /[/\\\0]/.test(name)) return undefined;
    names.push(name);
  }
  return names;
}

function decode(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

async function find(root: string, names: readonly string[]): Promise<Found | undefined> {
  try {
    const path = await realpath(join(root, ...names));
    if (!path.startsWith(root.endsWith(sep) ? root : root + sep)) return undefined;
    const stats = await stat(path);
    return stats.isFile() ? { path, name: names.join("/"), stats } : undefined;
  } catch {
    // Not there, not readable, a name that is too long: for the client it is all the same.
    return undefined;
  }
}

/** A browser opens an address, and it is not one of a file. */
function isNavigation(request: Request, names: readonly string[]): boolean {
  return extname(names.at(-1) ?? "") === "" && (request.headers.get("accept") ?? "").includes("text/html");
}

function respond(request: Request, { path, name, stats }: Found): Response {
  const etag = `W/"${stats.size.toString(16)}-${Math.trunc(stats.mtimeMs).toString(16)}"`;
  const headers = new Headers({
    "content-type": CONTENT_TYPES[extname(name).toLowerCase()] ?? "application/octet-stream",
    "cache-control": isHashed(name) ? `public, max-age=${YEAR_SECONDS}, immutable` : "no-cache",
    "x-content-type-options": "nosniff",
    etag,
  });
  if (matches(request.headers.get("if-none-match"), etag)) return new Response(null, { status: 304, headers });
  headers.set("content-length", String(stats.size));
  return new Response(request.method === "HEAD" || stats.size === 0 ? null : read(path, stats.size), { headers });
}

/** Not more than was announced: the file may grow meanwhile. */
function read(path: string, size: number): ReadableStream<Uint8Array<ArrayBuffer>> {
  const stream = Readable.toWeb(createReadStream(path, { end: size - 1 }));
  return stream as ReadableStream<Uint8Array<ArrayBuffer>>;
}

function matches(wanted: string | null, etag: string): boolean {
  if (wanted === null) return false;
  const bare = (tag: string): string => tag.trim().replace(/^W\//, "");
  return wanted.trim() === "*" || wanted.split(",").some((tag) => bare(tag) === bare(etag));
}

/** Whether a name has a content hash, as in `main-Bx7Kq2_d.js`, and not just a word or a date: it is cached for ever. */
function isHashed(name: string): boolean {
  const hash = /^assets\/.*[-.]([\w-]{8}|[0-9a-f]{16,64})\.\w+$/.exec(name)?.[1];
  return hash !== undefined && /[a-z]/.test(hash) && /[A-Z0-9]/.test(hash);
}

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".avif": "image/avif",
  ".css": "text/css; charset=utf-8",
  ".csv": "text/csv; charset=utf-8",
  ".gif": "image/gif",
  ".htm": "text/html; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".jpeg": "image/jpeg",
  ".jpg": "image/jpeg",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".map": "application/json; charset=utf-8",
  ".md": "text/markdown; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".mp3": "audio/mpeg",
  ".mp4": "video/mp4",
  ".otf": "font/otf",
  ".pdf": "application/pdf",
  ".png": "image/png",
  ".svg": "image/svg+xml; charset=utf-8",
  ".ttf": "font/ttf",
  ".txt": "text/plain; charset=utf-8",
  ".wasm": "application/wasm",
  ".wav": "audio/wav",
  ".webm": "video/webm",
  ".webmanifest": "application/manifest+json; charset=utf-8",
  ".webp": "image/webp",
  ".woff": "font/woff",
  ".woff2": "font/woff2",
  ".xml": "application/xml; charset=utf-8",
};
