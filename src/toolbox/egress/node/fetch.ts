import { Readable, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip } from "node:zlib";
import type { EgressRequest, EgressResponse } from "../../sandbox/sandbox.ts";
import { createDeadline } from "../deadline.ts";
import type { Engine } from "../engine.ts";
import { responseHeaders } from "../headers.ts";
import type { Hop } from "../redirect.ts";
import { ACCEPTED_ENCODINGS, readBody } from "./body.ts";
import { reasonOf } from "./exchange.ts";
import { follow, type RedirectMode } from "./follow.ts";

const withoutBody = new Set([101, 204, 205, 304]);

/** One whole request of a guest. Rejects as `Egress.fetch` says. */
export async function fetchWhole(engine: Engine, start: Hop, request: EgressRequest): Promise<EgressResponse> {
  const { limits } = engine;
  const deadline = createDeadline(limits.totalMs, request.signal);
  try {
    const leave = await engine.admission.enter(deadline.signal);
    try {
      const options = { signal: deadline.signal, idleMs: limits.idleMs, encodings: ACCEPTED_ENCODINGS };
      const { message, hop } = await follow(engine, start, options);
      const status = message.statusCode ?? 0;
      const hasBody = hop.method !== "HEAD" && status !== 204 && status !== 304;
      try {
        const { bytes, decoded } = await readBody(message, limits.responseBytes, hasBody);
        const headers = responseHeaders(message.headers);
        if (decoded) for (const name of ["content-encoding", "content-length"]) delete headers[name];
        return { status, headers, url: hop.target.url.href, body: bytes };
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
