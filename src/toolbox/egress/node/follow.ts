import type { IncomingMessage } from "node:http";
import { PerdureError } from "../../../base/error.ts";
import { shownUrl, tell } from "../decision.ts";
import type { Engine } from "../egress.ts";
import { type Hop, nextHop } from "../redirect.ts";
import { exchange } from "./exchange.ts";
import { admit } from "./pin.ts";

/** What the host can undo, and so asks for. */
const ACCEPTED_ENCODINGS = "gzip, br";

/** How redirects are treated: followed, returned as they are, or refused. */
export type RedirectMode = "follow" | "manual" | "error";

/**
 * Sends a request and follows redirects. Each hop is decided, resolved and pinned alone, with its own injected headers.
 * @throws PerdureError `not_allowed`, `limit`, `call_failed`, `timeout`; the signal's reason
 */
export async function follow(
  engine: Engine,
  start: Hop,
  { signal, idleMs, redirect }: { signal: AbortSignal; idleMs?: number; redirect: RedirectMode },
): Promise<{ readonly message: IncomingMessage; readonly hop: Hop }> {
  let hop = start;
  for (let count = 0; ; count++) {
    const message = await send(engine, hop, count, signal, idleMs);
    if (redirect === "manual") return { message, hop };
    let next: Hop | undefined;
    try {
      next = nextHop(hop, message.statusCode ?? 0, message.headers.location);
    } catch (thrown) {
      message.destroy();
      const reason = thrown instanceof Error ? thrown.message : "";
      const url = shownUrl(message.headers.location ?? "");
      tell(engine.onDecision, { ...about(hop, count + 1), url, allowed: false, reason });
      throw thrown;
    }
    if (next === undefined) return { message, hop };
    message.destroy();
    if (redirect === "error") throw new PerdureError("not_allowed", "The answer is a redirect, and redirects are off.");
    if (count >= engine.limits.redirects) {
      throw new PerdureError("limit", `The request was redirected more than ${engine.limits.redirects} times.`);
    }
    hop = next;
  }
}

async function send(
  engine: Engine,
  hop: Hop,
  count: number,
  signal: AbortSignal,
  idleMs: number | undefined,
): Promise<IncomingMessage> {
  const { target, method } = hop;
  const verdict = engine.policy.request(target, method);
  const pinned = await admit(engine, verdict, target, about(hop, count), signal).catch((thrown: unknown) => {
    if (count === 0 || !PerdureError.is(thrown, "not_allowed")) throw thrown;
    throw new PerdureError("not_allowed", `It redirects to ${shownUrl(target.url)}. ${thrown.message}`);
  });
  const headers = await engine.inject(target, { ...hop.headers, "accept-encoding": ACCEPTED_ENCODINGS });
  return exchange({ target, pinned, method, headers, body: hop.body, idleMs, signal, ca: engine.ca });
}

function about({ target, method }: Hop, hop: number) {
  return { via: "fetch", method, url: shownUrl(target.url), hop } as const;
}
