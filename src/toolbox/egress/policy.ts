import { addressKind, isPrivateAddress } from "./address.ts";
import { isNamedPlace, isPrivateName, parsePrivatePlace } from "./private-names.ts";
import { type EgressRule, isHost, matchRule, matchTunnel, parseRule } from "./rule.ts";
import { hostAndPort, type Target } from "./target.ts";

/** What was decided, and why. */
export type Verdict =
  | { readonly allowed: true; readonly rule: string }
  | { readonly allowed: false; readonly reason: string };

/** What a policy is made of. */
interface PolicyOptions {
  /** `public`: every public host, for clients that are the app's own. */
  readonly allow: readonly string[] | "public";
  readonly methods?: readonly string[];
  readonly allowPrivate?: readonly string[];
}

const usualMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
const PUBLIC_RULE = "any public host";
const MAX_SHOWN = 20;

/** Decides, and asks nothing of the network. @throws PerdureError `bad_config` for rules that are none */
export function createPolicy({ allow, methods = usualMethods, allowPrivate = [] }: PolicyOptions) {
  const rules = allow === "public" ? undefined : allow.map(parseRule);
  const places = allowPrivate.map(parsePrivatePlace);
  const upper = new Set(methods.map((method) => method.toUpperCase()));

  const refuseHost = (host: string, port: number): string | undefined => {
    if (!isPrivateName(host) || places.some((place) => place.host === host && place.port === port)) return undefined;
    return `${host} is a name of a private network.`;
  };

  return {
    /** The rules as they were written. Empty when any public host is allowed. */
    allow: rules?.map(({ text }) => text) ?? [],
    request(target: Target, method: string): Verdict {
      if (!upper.has(method))
        return refused(`The method ${method.slice(0, 20)} is not allowed; ${list([...upper])} are.`);
      const rule = rules === undefined ? PUBLIC_RULE : matchRule(rules, target)?.text;
      if (rule === undefined) return refused(whyNot(rules ?? [], target));
      const reason = refuseHost(target.host, target.port);
      return reason === undefined ? { allowed: true, rule } : refused(reason);
    },
    tunnel(host: string, port: number): Verdict {
      const rule = rules === undefined ? undefined : matchTunnel(rules, host, port)?.text;
      const place = hostAndPort(host, port);
      if (rule === undefined && rules?.some((one) => one.path !== undefined && isHost(one, host)) === true) {
        return refused(`Only some paths of ${host} are allowed, which cannot be checked in a tunnel to ${place}.`);
      }
      if (rule === undefined) return refused(`A tunnel to ${place} is not allowed. ${allowedText(rules ?? [])}`);
      const reason = refuseHost(host, port);
      return reason === undefined ? { allowed: true, rule } : refused(reason);
    },
    /** Looks at all that a name was resolved to. `undefined`: go on. Otherwise the reason to refuse. */
    addresses(host: string, port: number, addresses: readonly string[]): string | undefined {
      if (addresses.length === 0) return `${host} has no address.`;
      // One of several is enough: which one is connected to is not the guest's to choose.
      const found = addresses.find((one) => isPrivateAddress(one) && !isNamedPlace(places, host, port, one));
      if (found === undefined) return undefined;
      return `${host} leads to an address that is not public (${addressKind(found) ?? "no address"}).`;
    },
  };
}

function refused(reason: string): Verdict {
  return { allowed: false, reason };
}

function whyNot(rules: readonly EgressRule[], target: Target): string {
  const place = hostAndPort(target.host, target.port);
  const same = rules.filter((rule) => isHost(rule, target.host));
  if (same.some((rule) => rule.path !== undefined) && target.trickyPath) {
    return `The path has encoded dots or slashes, which are not allowed on ${target.host}.`;
  }
  if (same.length > 0) return `${target.host} is allowed only as ${list(same.map(({ text }) => text))}.`;
  return `${target.scheme}://${place} is not allowed. ${allowedText(rules)}`;
}

function allowedText(rules: readonly EgressRule[]): string {
  return rules.length === 0 ? "Nothing is allowed here." : `Allowed: ${list(rules.map(({ text }) => text))}.`;
}

function list(texts: readonly string[]): string {
  const shown = texts.slice(0, MAX_SHOWN).join(", ");
  return texts.length > MAX_SHOWN ? `${shown} and ${texts.length - MAX_SHOWN} more` : shown;
}
