import type { EgressRequest, EgressResponse } from "../../sandbox/sandbox.ts";
import { createDeadline } from "../deadline.ts";
import type { Engine } from "../engine.ts";
import { responseHeaders } from "../headers.ts";
import type { Hop } from "../redirect.ts";
import { ACCEPTED_ENCODINGS, readBody } from "./body.ts";
import { reasonOf } from "./exchange.ts";
import { follow } from "./follow.ts";

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
