import { PerdureError } from "../base/error.ts";
import { yesOrNo } from "../base/yes-or-no.ts";

/**
 * The names that a host answers to in the `Host` header: all, a list beside those of this machine, or a function. A listed name
 * with a port means that port alone. The function gets the name in lower case without a port; it must answer at once, and
 * throwing answers 500.
 */
export type Hosts = "any" | readonly string[] | ((name: string, request: Request) => boolean);

/** Whether a request is for one of the host's own names. @throws what the app's function throws. */
export type HostGate = (request: Request) => boolean;

/**
 * The gate of a host against DNS rebinding: to browsers a stranger's page whose name leads here is of the same origin, and only
 * the `Host` header tells. @throws PerdureError `bad_config` for what is no such setting.
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
