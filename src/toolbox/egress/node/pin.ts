import { lookup } from "node:dns/promises";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { untilAborted } from "../../../base/abort.ts";
import { PerdureError } from "../../../base/error.ts";
import { addressKind, canonicalAddress } from "../address.ts";
import { type EgressDecision, tell } from "../decision.ts";
import type { Engine } from "../egress.ts";
import type { Verdict } from "../policy.ts";
import type { Target } from "../target.ts";

/** What a host was resolved to, once, and all of it looked at. */
export interface Pinned {
  readonly addresses: readonly string[];
  /** Answers with these addresses alone, whatever it is asked. */
  readonly lookup: LookupFunction;
}

/** What a decision is about. */
type About = Pick<EgressDecision, "via" | "method" | "url" | "hop">;

/**
 * Decides on a connection that the rules say `verdict` of, by what its host resolves to as well, and tells of it.
 * @throws PerdureError `not_allowed`, `call_failed` for a name that cannot be resolved; the signal's reason
 */
export async function admit(
  engine: Engine,
  verdict: Verdict,
  place: Pick<Target, "host" | "port">,
  about: About,
  signal: AbortSignal,
): Promise<Pinned> {
  const pinned = verdict.allowed ? await pin(engine, place, signal) : verdict.reason;
  if (typeof pinned === "string") throw refusal(engine, about, pinned);
  const { rule } = verdict as Extract<Verdict, { allowed: true }>;
  tell(engine.onDecision, { ...about, allowed: true, rule, address: pinned.addresses[0] });
  return pinned;
}

/** Tells that something is refused. @returns the error to throw */
export function refusal(engine: Engine, about: About, reason: string): PerdureError {
  tell(engine.onDecision, { ...about, allowed: false, reason });
  return new PerdureError("not_allowed", reason);
}

/** Resolves a host once and checks every answer. @returns the reason to refuse it, as a text */
async function pin(
  engine: Engine,
  { host, port }: Pick<Target, "host" | "port">,
  signal: AbortSignal,
): Promise<Pinned | string> {
  const addresses = addressKind(host) === undefined ? await resolveAll(engine, host, signal) : [host];
  const reason = engine.policy.addresses(host, port, addresses);
  if (reason !== undefined) return reason;
  const found = addresses.map((address) => ({ address, family: isIP(address) }));
  const [first] = found;
  if (first === undefined || found.some(({ family }) => family === 0)) return `${host} has no usable address.`;
  return {
    addresses,
    lookup: (_host, options, callback) => {
      if (options.all === true) callback(null, found);
      else callback(null, first.address, first.family);
    },
  };
}

/** Ends a socket that is connected to anything else. The second wall: the first is that it was never told of anything else. */
export function holdTo(socket: Socket, { addresses }: Pinned): void {
  const allowed = new Set(addresses.map(canonicalAddress));
  socket.once("connect", () => {
    if (!allowed.has(canonicalAddress(socket.remoteAddress ?? ""))) {
      socket.destroy(
        new PerdureError("not_allowed", "The connection went to another address than the one that was checked."),
      );
    }
  });
}

async function resolveAll({ resolve }: Engine, host: string, signal: AbortSignal): Promise<readonly string[]> {
  try {
    return await untilAborted((resolve ?? systemResolve)(host), signal);
  } catch (thrown) {
    signal.throwIfAborted();
    throw new PerdureError("call_failed", `The name ${host} could not be resolved.`, { cause: thrown });
  }
}

async function systemResolve(host: string): Promise<readonly string[]> {
  const answers = await lookup(host, { all: true });
  return answers.map(({ address }) => address);
}
