import { PerdureError } from "../../base/error.ts";
import type { AgentHost } from "../../port.ts";
import { filesOf } from "../../media/files.ts";
import type { Route } from "../../door/routes.ts";

/*
 * What was too large for messages, under the agent's own address:
 *
 *   GET …/files/{hash}   the bytes; 404 when there is no such file, 410 when its time is over
 *
 * Names are SHA-256 in hex and never change meaning. Nobody can guess one: whoever has it was shown the message, or was
 * told by somebody who was. So sessions are not checked.
 */

/** What a browser may show by itself. Everything else is offered as a download. */
const SHOWN = /^(?:image|audio|video)\/|^(?:text\/plain|application\/pdf)\b/i;

const FOREVER = "private, max-age=31536000, immutable";

/** The routes of files. */
export const FILE_ROUTES: readonly Route<{ readonly host: AgentHost }>[] = (["GET", "HEAD"] as const).map((method) => ({
  method,
  shape: "files/{hash}",
  acts: ["file.read"],
  ask: ({ params }) => ({ act: "file.read", on: { file: params.hash } }),
  answer: ({ request, params }, { host }) => answerFile(host, request, params.hash ?? ""),
}));

async function answerFile(host: AgentHost, request: Request, name: string): Promise<Response> {
  const files = filesOf(host);
  const info = host.blank ? undefined : files.info(name);
  if (info?.expired === true) return gone(info.mediaType);
  const etag = `"${name}"`;
  if (info !== undefined && request.headers.get("if-none-match") === etag)
    return new Response(null, { status: 304, headers: { etag, "cache-control": FOREVER } });
  const file = info && (await files.read(name));
  if (file === undefined) throw new PerdureError("not_found", "There is no such file.");
  return new Response(request.method === "HEAD" ? null : new Uint8Array(file.bytes), {
    headers: {
      "content-type": file.mediaType,
      "content-length": String(file.bytes.length),
      "content-disposition": SHOWN.test(file.mediaType) ? "inline" : "attachment",
      "cache-control": FOREVER,
      etag,
      ...HARMLESS,
    },
  });
}

/** A file comes from whoever wrote the message: it may not act in the name of the page's origin. */
const HARMLESS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
};

const GONE_PICTURE =
  '<svg xmlns="http://www.w3.org/2000/svg" width="240" height="60"><rect width="240" height="60" fill="#eee"/>' +
  '<text x="120" y="35" font-family="sans-serif" font-size="14" fill="#555" text-anchor="middle">' +
  "This file was deleted.</text></svg>";

/** Pages that still show the message see a picture that says so, not a broken one. */
function gone(mediaType: string): Response {
  if (!mediaType.startsWith("image/")) {
    const message = "This file was deleted when its retention ended.";
    return Response.json({ error: { code: "not_found", message } }, { status: 410 });
  }
  return new Response(GONE_PICTURE, {
    status: 410,
    headers: { "content-type": "image/svg+xml", "cache-control": "no-store", ...HARMLESS },
  });
}
