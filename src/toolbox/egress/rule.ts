import { PerdureError } from "../../base/error.ts";
import { addressKind, canonicalAddress } from "./address.ts";
import { normalHost, type Target } from "./target.ts";

/** One line of an allow-list. */
export interface EgressRule {
  /** As it was written. */
  readonly text: string;
  /** `undefined`: both. */
  readonly scheme: "http" | "https" | undefined;
  /** Without `*.` */
  readonly host: string;
  /** The names below `host`, and not `host` itself. */
  readonly below: boolean;
  /** `undefined`: the usual one of the scheme. */
  readonly port: number | undefined;
  /** `undefined`: all paths. With `/` at the end: what begins with it. Without: it, and what is below it. */
  readonly path: string | undefined;
}

const MAX_RULE_CHARS = 2_048;
const shapes =
  "`api.example.com`, `api.example.com:8443`, `*.example.com`, `https://api.example.com` or `https://api.example.com/v1/`";

/**
 * Reads a rule: a host (ports 80 and 443), a host with one port, all names below a host (`*.example.com`, without `example.com`
 * itself), or the beginning of a URL. No rule means everything.
 * @throws PerdureError `bad_config` that says what is wrong with it
 */
export function parseRule(text: string): EgressRule {
  const refuse = (why: string) =>
    new PerdureError("bad_config", `The network rule ${JSON.stringify(text).slice(0, 200)} ${why} Write ${shapes}.`);
  if (typeof text !== "string" || text === "" || text.length > MAX_RULE_CHARS) throw refuse("is no text of a rule.");
  if (/[\p{Cc}\s\\]/u.test(text)) throw refuse("has spaces, control characters or backslashes in it.");
  const match = /^(?:([a-z][a-z0-9+.-]*):\/\/)?([^/?#]*)([^?#]*)([?#].*)?$/i.exec(text);
  const [, schemeText, authority = "", path = "", rest] = match ?? [];
  if (match === null || rest !== undefined) throw refuse("has a query or a fragment, which rules cannot have.");
  const scheme = schemeText?.toLowerCase();
  if (scheme !== undefined && scheme !== "http" && scheme !== "https") throw refuse("is not for http or https.");
  if (authority.includes("@")) throw refuse("has a user name or password in it.");
  if (scheme === undefined && path !== "") throw refuse("has a path, so it needs http:// or https:// in front.");

  const below = authority.startsWith("*.");
  const { host, port } = readAuthority(below ? authority.slice(2) : authority, refuse);
  if (below && addressKind(host) !== undefined) throw refuse("has a * in front of an address.");
  if (below && !host.includes(".")) throw refuse("means nearly everything. Name a domain behind the *.");
  return { text, scheme, host, below, port, path: readPath(path, refuse) };
}

type Refuse = (why: string) => PerdureError;

function readAuthority(authority: string, refuse: Refuse): { host: string; port: number | undefined } {
  if (authority.includes("*"))
    throw refuse("has a * where none can be: it stands for whole names in front, as in *.a.b.");
  if (authority.includes("%")) throw refuse("has an encoded host name.");
  const [, name = "", portText] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(authority) ?? [];
  const port = portText === undefined ? undefined : Number(portText);
  if (name === "" || port === 0 || (port ?? 0) > 65_535) throw refuse("has no usable host or port.");
  let hostname: string;
  try {
    hostname = new URL(`http://${name}/`).hostname;
  } catch {
    throw refuse("has no usable host name.");
  }
  const host = normalHost(hostname);
  if (host === undefined) throw refuse("has no usable host name.");
  const isV4 = addressKind(host) !== undefined && !host.includes(":");
  if (isV4 && host !== name) throw refuse(`is an address in disguise: write ${host}.`);
  return { host, port };
}

function readPath(path: string, refuse: Refuse): string | undefined {
  if (path === "" || path === "/") return undefined;
  if (/%(?:25)*(?:2e|2f|5c)/i.test(path)) throw refuse("has an encoded dot or slash in its path.");
  const parsed = new URL(`http://host${path}`).pathname;
  if (parsed !== path) throw refuse(`has a path that is not in its plain form: write ${parsed}.`);
  return path;
}

/** The first rule that lets a request through, or `undefined`. */
export function matchRule(rules: readonly EgressRule[], target: Target): EgressRule | undefined {
  return rules.find((rule) => {
    if (rule.scheme !== undefined && rule.scheme !== target.scheme) return false;
    const usual = target.scheme === "https" ? 443 : 80;
    return (rule.port ?? usual) === target.port && isHost(rule, target.host) && isPath(rule, target);
  });
}

/** The first rule that lets a tunnel through. A tunnel's content is unseen, so a rule with a path opens none. */
export function matchTunnel(rules: readonly EgressRule[], host: string, port: number): EgressRule | undefined {
  return rules.find((rule) => {
    const usual = rule.scheme === undefined ? [80, 443] : rule.scheme === "https" ? [443] : [80];
    const ports = rule.port === undefined ? usual : [rule.port];
    return rule.path === undefined && ports.includes(port) && isHost(rule, host);
  });
}

/** Whether a rule is about this host, whatever else it says. */
export function isHost(rule: EgressRule, host: string): boolean {
  if (rule.below) return host.endsWith(`.${rule.host}`) && host.length > rule.host.length + 1;
  if (rule.host === host) return true;
  const wanted = canonicalAddress(rule.host);
  return wanted !== undefined && host.includes(":") && wanted === canonicalAddress(host);
}

function isPath(rule: EgressRule, target: Target): boolean {
  if (rule.path === undefined) return true;
  if (target.trickyPath) return false;
  const { pathname } = target.url;
  if (rule.path.endsWith("/")) return pathname.startsWith(rule.path);
  return pathname === rule.path || pathname.startsWith(`${rule.path}/`);
}
