import { PerdureError } from "../base/error.ts";
import { allowedOrigin, type Cors } from "./cors.ts";
import { hostOf, isLoopback } from "./host-names.ts";
import { yesOrNo } from "../base/yes-or-no.ts";

/** Other origins whose pages may talk to agents: all, a list, or a function, which must answer at once; a throw answers 500. */
export type Origins = "any" | readonly string[] | ((origin: string, request: Request) => boolean);

/** How a page asks. A socket can do all that the page's user may do, with the user's cookies. */
export type Approach = "request" | "socket";

/** What becomes of a request, as far as its page is concerned. `existing`: it may read what is there, and make nothing. */
export type Admission = "yes" | "no" | "existing";

/** Says of a request whether it may come in. @throws what the app's function throws. */
export type OriginGate = (request: Request, approach: Approach) => Admission;

/** What browsers send for pages without an origin: files, sandboxed frames. */
const OPAQUE = "null";

/** Methods that change nothing; without cross-origin access a page cannot read what they answer. */
const READING = new Set(["GET", "HEAD", "OPTIONS"]);

/**
 * The gate of a host. It asks only of what a browser sends for a page (it has `Origin`) and could change something: an upgrade,
 * or any method but GET, HEAD and OPTIONS. A page gets in from the host's own address, from this machine to this machine, or when
 * the app says so. Other pages may read, but what they load unseen (a picture, a frame, a script) wakes no new agent.
 * @throws PerdureError `bad_config` when a listed origin is none, or `origins` is of another kind.
 */
export function originGate(origins: Origins | undefined, cors: Cors | undefined): OriginGate {
  checkKind(origins);
  const allowed = allowedOrigin(cors);
  const listed = new Set(typeof origins === "object" ? origins.map(checked) : []);
  if (allowed !== undefined && allowed !== "*") listed.add(normal(allowed));
  const welcomes = (request: Request, approach: Approach, origin: string): boolean => {
    if (origins === "any" || listed.has(normal(origin)) || isAtHome(origin, request)) return true;
    // An open door for requests. It was never one for cookies, and a socket has no such rules in the browser.
    if (allowed === "*" && approach === "request" && !request.headers.has("cookie")) return true;
    return typeof origins === "function" && yesOrNo(origins(origin, request), "The function `origins`");
  };
  return (request, approach) => {
    const said = request.headers.get("origin");
    // Browsers send a bare origin; one with a user name or a path does not come from a browser.
    const origin = said === null || isPlain(said) ? said : OPAQUE;
    if (approach === "request" && READING.has(request.method)) {
      const open = origins === "any" || allowed === "*" || !isUnseen(request);
      return open || (origin !== null && welcomes(request, approach, origin)) ? "yes" : "existing";
    }
    return origin === null || welcomes(request, approach, origin) ? "yes" : "no";
  };
}

/** Whether it is an origin alone, without a user, a path or anything else that an address may have. */
function isPlain(origin: string): boolean {
  const url = URL.parse(origin);
  return url === null || `${url.username}${url.password}${url.search}${url.hash}` + url.pathname.slice(1) === "";
}

/** A page of another site loads it, and not as the page that its user goes to. Browsers say so; other programs do not. */
function isUnseen({ headers }: Request): boolean {
  return headers.get("sec-fetch-site") === "cross-site" && headers.get("sec-fetch-dest") !== "document";
}

/** The page is the host's own, whatever TLS a proxy took away; or page and host are both on this machine. */
function isAtHome(origin: string, request: Request): boolean {
  const page = URL.parse(origin);
  if (page === null || (page.protocol !== "http:" && page.protocol !== "https:")) return false;
  const own = URL.parse(`${page.protocol}//${hostOf(request)}`);
  if (own === null) return false;
  return own.host === page.host || (isLoopback(own.hostname) && isLoopback(page.hostname));
}

function checkKind(origins: unknown): void {
  if (origins === undefined || origins === "any" || typeof origins === "function" || Array.isArray(origins)) return;
  throw new PerdureError(
    "bad_config",
    'origins must be a list of origins, as in ["https://app.example"], a function, or "any".',
  );
}

function checked(origin: unknown): string {
  if (origin === OPAQUE) return OPAQUE;
  const url = typeof origin === "string" ? URL.parse(origin) : null;
  // `localhost:5173` is a URL too, of the scheme `localhost:`.
  const isOrigin = url !== null && url.host !== "" && `${url.pathname}${url.search}${url.hash}`.length <= 1;
  if (isOrigin && typeof origin === "string") return normal(origin);
  const hint = origin === "*" ? ' Say `origins: "any"` for all.' : "";
  throw new PerdureError(
    "bad_config",
    `origins: ${JSON.stringify(origin)} is not an origin. Use one like "https://app.example" or "null".${hint}`,
  );
}

/** One spelling for each: lower case, without a port that goes without saying. */
function normal(origin: string): string {
  const url = URL.parse(origin);
  if (url === null) return origin;
  // The platform knows no origin of schemes that are an app's own.
  return url.origin === OPAQUE ? `${url.protocol}//${url.host}` : url.origin;
}
