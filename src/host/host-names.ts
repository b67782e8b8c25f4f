import { PerdureError } from "../base/error.ts";
import { yesOrNo } from "../base/yes-or-no.ts";

/**
 * The names that a host answers to, as they stand in the `Host` header: all, those listed beside those of this machine, or
 * those that a function lets in. In a list, a name with a port stands for that port alone. The function is given the name
 * in lower case, without a port; it may throw, which answers 500, and must answer at once.
 */
export type Hosts = "any" | readonly string[] | ((name: string, request: Request) => boolean);

/** Whether a request is for one of the host's own names. @throws what the app's function throws. */
export type HostGate = (request: Request) => boolean;

/**
 * The gate of a host. A page of a stranger whose name was made to lead to this machine is of the same origin as the host
 * to every browser; that name in the `Host` header is all that tells.
 * @throws PerdureError `bad_config` for what is no such setting.
 */
export function hostGate(hosts: Hosts | undefined): HostGate {
  if (hosts === undefined || hosts === "any") return () => true;
  if (typeof hosts === "function") {
    return (request) => {
      const name = nameOf(request);
      return name !== undefined && (isLoopback(name) || yesOrNo(hosts(name, request), "The function `hosts`"));
    };
  }
  if (!Array.isArray(hosts)) {
    throw new PerdureError("bad_config", 'hosts must be a list of names, as in ["app.example"], a function, or "any".');
  }
  const listed = new Set(hosts.map(checked));
  return (request) => {
    const name = nameOf(request);
    return name !== undefined && (isLoopback(name) || listed.has(name) || listed.has(hostOf(request).toLowerCase()));
  };
}

/** What a request calls the host, with the port; from its URL where there is no header, as in code. */
export function hostOf(request: Request): string {
  return request.headers.get("host") ?? new URL(request.url).host;
}

/** Whether a name stands for this machine wherever it is looked up. In the spelling of `URL.hostname`. */
export function isLoopback(name: string): boolean {
  return /^(?:(?:.+\.)?localhost\.?|127\.\d+\.\d+\.\d+|\[::1\])$/.test(name);
}

/** Undefined for what is no name: nobody answers to that. */
function nameOf(request: Request): string | undefined {
  return URL.parse(`http://${hostOf(request)}`)?.hostname;
}

function checked(host: unknown): string {
  const url = typeof host === "string" ? URL.parse(`http://${host}`) : null;
  const name = typeof host === "string" ? host.toLowerCase() : "";
  // Other spellings of the same name are no use here: browsers send this one.
  if (url !== null && url.hostname === name.replace(/:\d+$/, "") && !name.includes("*")) return name;
  throw new PerdureError(
    "bad_config",
    `hosts: ${JSON.stringify(host)} is not a host name. Use one like "app.example" or "10.0.0.5:8787".`,
  );
}
