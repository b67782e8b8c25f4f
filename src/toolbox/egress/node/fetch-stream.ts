import { Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip } from "node:zlib";
import { createDeadline } from "../deadline.ts";
import type { Engine } from "../engine.ts";
import { responseHeaders } from "../headers.ts";
import type { Hop } from "../redirect.ts";
import { ACCEPTED_ENCODINGS } from "./body.ts";
import { follow, type RedirectMode } from "./follow.ts";

const withoutBody = new Set([101, 204, 205, 304]);

/** A request whose body is read as it comes. The deadline is for the headers; the signal is for all of it. */
export async function fetchStream(
  engine: Engine,
  start: Hop,
  signal: AbortSignal,
  redirect: RedirectMode,
): Promise<Response> {
  const deadline = createDeadline(engine.limits.totalMs, signal);
  const ended = new AbortController();
  const stop = () => ended.abort(deadline.signal.reason);
  deadline.signal.addEventListener("abort", stop, { once: true });
  if (deadline.signal.aborted) stop();
  const options = { signal: ended.signal, idleMs: undefined, redirect, encodings: ACCEPTED_ENCODINGS };
  try {
    const { message, hop } = await follow(engine, start, options);
    deadline.clear();
    const status = message.statusCode ?? 502;
    const headers = responseHeaders(message.headers);
    const unpack = decoderOf(headers["content-encoding"]);
    if (unpack !== undefined) for (const name of ["content-encoding", "content-length"]) delete headers[name];
    const empty = hop.method === "HEAD" || withoutBody.has(status);
    if (empty) message.destroy();
    const cut = () => message.destroy(signal.reason instanceof Error ? signal.reason : undefined);
    signal.addEventListener("abort", cut, { once: true });
    message.once("close", () => signal.removeEventListener("abort", cut));
    const source =
      unpack === undefined ? message : message.once("error", (error) => unpack.destroy(error)).pipe(unpack);
    const body = empty ? null : (Readable.toWeb(source) as unknown as BodyInit);
    const response = new Response(body, { status, statusText: message.statusMessage ?? "", headers });
    Object.defineProperty(response, "url", { value: hop.target.url.href });
    Object.defineProperty(response, "redirected", { value: hop.target.url.href !== start.target.url.href });
    return response;
  } finally {
    deadline.clear();
  }
}

function decoderOf(encoding: string | undefined): Transform | undefined {
  if (encoding === "gzip") return createGunzip();
  return encoding === "br" ? createBrotliDecompress() : undefined;
}
