import { PerdureError } from "../../base/error.ts";
import { guestHeaders } from "./headers.ts";
import { type EgressRule, matchRule, parseRule } from "./rule.ts";
import type { Target } from "./target.ts";

/** Headers that the host adds for some places. */
export interface Injection {
  /** A rule. Without a scheme it means https alone: keys do not go out in the clear by accident. */
  readonly to: string;
  /** Replace the guest's headers of the same names. A function is asked per request; may be slow; a throw fails the request. */
  readonly headers:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);
}

/** Adds what belongs to a target. */
type Inject = (target: Target, headers: Readonly<Record<string, string>>) => Promise<Record<string, string>>;

/** @throws PerdureError `bad_config` for a rule or headers that cannot work */
export function createInject(injections: readonly Injection[]): Inject {
  const known = injections.map(({ to, headers }) => {
    const rule: EgressRule = parseRule(to);
    if (typeof headers !== "function") checked(headers, to);
    return { rule: { ...rule, scheme: rule.scheme ?? "https" } as const, headers, to };
  });
  return async (target, headers) => {
    const added: Record<string, string> = {};
    for (const one of known) {
      if (matchRule([one.rule], target) === undefined) continue;
      Object.assign(added, checked(typeof one.headers === "function" ? await one.headers() : one.headers, one.to));
    }
    return { ...headers, ...added };
  };
}

function checked(headers: Readonly<Record<string, string>>, to: string): Record<string, string> {
  try {
    return guestHeaders(headers, { keepMethod: false, ownEncoding: false });
  } catch {
    // The message would have the value in it, or its name: this one may reach a guest.
    throw new PerdureError("bad_config", `The headers to inject for ${JSON.stringify(to)} cannot be sent.`);
  }
}
