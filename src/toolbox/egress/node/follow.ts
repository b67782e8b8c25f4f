import type { IncomingMessage } from "node:http";
import { PerdureError } from "../../../base/error.ts";
import { shownUrl, tell } from "../decision.ts";
import type { Engine } from "../engine.ts";
import { type Hop, nextHop } from "../redirect.ts";
import { exchange } from "./exchange.ts";
import { pin } from "./pin.ts";

/** The answer, and where it came from. */
interface Followed {
  readonly message: IncomingMessage;
  readonly hop: Hop;
}

/** How redirects are treated: followed, returned as they are, or refused. */
export type RedirectMode = "follow" | "manual" | "error";

/**
 * Sends a request and follows redirects. Each place is decided, resolved and pinned for itself, and gets its own
 * injected headers.
 * @throws PerdureError `not_allowed`, `limit`, `call_failed`, `timeout`; the signal's reason
 */
export async function follow(
  engine: Engine,
  start: Hop,
  options: {
    readonly signal: AbortSignal;
    readonly idleMs: number | undefined;
    readonly redirect?: RedirectMode;
    readonly encodings?: string;
  },
): Promise<Followed> {
  const { signal, idleMs, redirect = "follow" } = options;
  let hop = start;
  for (let count = 0; ; count++) {
    const message = await send(engine, hop, count, { signal, idleMs, encodings: options.encodings });
    if (redirect === "manual") return { message, hop };
    let next: Hop | undefined;
    try {
      next = nextHop(hop, message.statusCode ?? 0, message.headers.location);
    } catch (thrown) {
      message.destroy();
      const reason = thrown instanceof Error ? thrown.message : "";
      tell(engine.onDecision, {
        ...about(hop, count + 1),
        url: shownUrl(message.headers.location ?? ""),
        allowed: false,
        reason,
      });
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
  { signal, idleMs, encodings }: { signal: AbortSignal; idleMs: number | undefined; encodings: string | undefined },
): Promise<IncomingMessage> {
  const { target, method } = hop;
  const refuse = (reason: string) => {
    tell(engine.onDecision, { ...about(hop, count), allowed: false, reason });
    const prefix = count === 0 ? "" : `It redirects to ${shownUrl(target.url)}. `;
    return new PerdureError("not_allowed", `${prefix}${reason}`);
  };
  const verdict = engine.policy.request(target, method);
  if (!verdict.allowed) throw refuse(verdict.reason);
  const pinned = await pin(engine, target.host, target.port, signal);
  if (typeof pinned === "string") throw refuse(pinned);
  const [address] = pinned.addresses;
  tell(engine.onDecision, {
    ...about(hop, count),
    allowed: true,
    rule: verdict.rule,
    ...(address !== undefined && { address }),
  });
  const own = encodings === undefined ? hop.headers : { ...hop.headers, "accept-encoding": encodings };
  const headers = await engine.inject(target, own);
  return exchange({ target, pinned, method, headers, body: hop.body, idleMs, signal, ca: engine.ca });
}

function about({ target, method }: Hop, hop: number) {
  return { via: "fetch", method, url: shownUrl(target.url), hop } as const;
}
