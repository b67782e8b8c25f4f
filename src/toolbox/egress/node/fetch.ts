import type { IncomingMessage } from "node:http";
import { Readable, type Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { readUpTo } from "../../../base/bytes.ts";
import { PerdureError } from "../../../base/error.ts";
import type { EgressRequest, EgressResponse } from "../../sandbox/sandbox.ts";
import { createDeadline } from "../deadline.ts";
import type { Engine } from "../egress.ts";
import { responseHeaders } from "../headers.ts";
import type { Hop } from "../redirect.ts";
import { reasonOf } from "./exchange.ts";
import { follow, type RedirectMode } from "./follow.ts";

const withoutBody = new Set([101, 204, 205, 304]);

/** One whole request of a guest. Rejects as `Egress.fetch` says. */
export async function fetchWhole(engine: Engine, start: Hop, request: EgressRequest): Promise<EgressResponse> {
  const { limits } = engine;
  const deadline = createDeadline(limits.totalMs, request.signal);
  try {
    const leave = await engine.enter(deadline.signal);
    try {
      const options = { signal: deadline.signal, idleMs: limits.idleMs, redirect: "follow" } as const;
      const { message, hop } = await follow(engine, start, options);
      const status = message.statusCode ?? 0;
      const hasBody = hop.method !== "HEAD" && status !== 204 && status !== 304;
      try {
        const unpack = hasBody ? decoderOf(message) : undefined;
        if (!hasBody) message.destroy();
        const body = hasBody ? await readBody(message, limits.responseBytes, unpack) : new Uint8Array();
        return { status, headers: headersOf(message, unpack), url: hop.target.url.href, body };
      } catch (thrown) {
        throw reasonOf(thrown, hop.target, deadline.signal);
      }
    } finally {
      leave();
    }
  } finally {
    deadline.clear();
  }
}

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
  try {
    const { message, hop } = await follow(engine, start, { signal: ended.signal, redirect });
    deadline.clear();
    const status = message.statusCode ?? 502;
    const unpack = decoderOf(message);
    const headers = headersOf(message, unpack);
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

/** The headers of a body in the form that they tell of: of one that was unpacked, they do not say how it was packed. */
function headersOf(message: IncomingMessage, unpack: Transform | undefined): Record<string, string> {
  const headers = responseHeaders(message.headers);
  if (unpack !== undefined) for (const name of ["content-encoding", "content-length"]) delete headers[name];
  return headers;
}

/**
 * Reads a body to its end, decompressed. Stops as soon as it is too large, so a decompression bomb costs no more than the limit.
 * @throws PerdureError `limit` over `maxBytes`, `call_failed` for what cannot be decompressed
 */
async function readBody(message: IncomingMessage, maxBytes: number, unpack?: Transform): Promise<Uint8Array> {
  const announced = Number(message.headers["content-length"] ?? 0);
  if (announced > maxBytes) {
    message.destroy();
    throw tooLarge(maxBytes);
  }
  const collect = (source: AsyncIterable<Uint8Array>) => readUpTo(source, maxBytes, () => tooLarge(maxBytes));
  try {
    return await (unpack === undefined ? pipeline(message, collect) : pipeline(message, unpack, collect));
  } catch (thrown) {
    if (!isZlib(thrown)) throw thrown;
    throw new PerdureError("call_failed", "The response could not be decompressed.", { cause: thrown });
  }
}

/** What unpacks a body; undefined for one that is not packed. */
function decoderOf(message: IncomingMessage): Transform | undefined {
  const encoding = (message.headers["content-encoding"] ?? "").toLowerCase().trim();
  if (encoding.includes(",")) {
    // Packed several times is how bombs are built.
    message.destroy();
    throw new PerdureError("call_failed", "The response is compressed more than once.");
  }
  if (encoding === "gzip" || encoding === "x-gzip") return createGunzip();
  if (encoding === "deflate") return createInflate();
  return encoding === "br" ? createBrotliDecompress() : undefined;
}

function isZlib(thrown: unknown): boolean {
  const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? String(thrown.code) : "";
  return code.startsWith("Z_") || code.startsWith("ERR__ERROR_");
}

function tooLarge(maxBytes: number): PerdureError {
  return new PerdureError("limit", `The response is larger than ${maxBytes} bytes.`);
}
