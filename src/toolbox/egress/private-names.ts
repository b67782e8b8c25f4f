import { PerdureError } from "../../base/error.ts";
import { type AddressKind, addressKind, canonicalAddress } from "./address.ts";
import { normalHost } from "./target.ts";

/** Endings that no public name has. */
const privateEndings = [
  ...["localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "localdomain", "home.arpa"],
];

/** What a name may lead to when it was named. Never link-local or metadata: nobody's service lives there. */
const kindsBehindNames: readonly AddressKind[] = ["loopback", "private", "shared"];

/** One place in the own network that may be reached all the same. */
interface PrivatePlace {
  readonly host: string;
  readonly port: number;
}

/** Whether a name (not an address) can only be one of the own network: `localhost`, `db`, `metadata.google.internal`. */
export function isPrivateName(host: string): boolean {
  if (addressKind(host) !== undefined) return false;
  return !host.includes(".") || privateEndings.some((ending) => host.endsWith(`.${ending}`));
}

/**
 * Reads `127.0.0.1:8080`, `[::1]:8080` or `service.internal:8080`. The port is part of it.
 * @throws PerdureError `bad_config`
 */
export function parsePrivatePlace(text: string): PrivatePlace {
  const [, name = "", portText = ""] = /^(\[[0-9a-f:.]+\]|[^:[\]/@*\s]+):(\d{1,5})$/i.exec(text) ?? [];
  const port = Number(portText);
  const host = normalHost(name);
  if (host === undefined || port < 1 || port > 65_535) {
    throw new PerdureError(
      "bad_config",
      `allowPrivate: ${JSON.stringify(text)} must be a host and a port, such as 127.0.0.1:8080 or service.internal:8080.`,
    );
  }
  return { host, port };
}

/** Whether a connection to `address` for `host` was named. */
export function isNamedPlace(places: readonly PrivatePlace[], host: string, port: number, address: string): boolean {
  const canonical = canonicalAddress(address);
  return places.some((place) => {
    if (place.port !== port) return false;
    if (addressKind(place.host) !== undefined) return canonicalAddress(place.host) === canonical;
    const kind = addressKind(address);
    return place.host === host && kind !== undefined && kindsBehindNames.includes(kind);
  });
}
