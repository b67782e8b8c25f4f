import { answerOperator, roleOf } from "../../admin/door.ts";
import { ADMIN_PREFIX, type AdminHouse } from "../../admin/house.ts";
import { createMask } from "../../admin/mask.ts";
import { PerdureError } from "../../base/error.ts";
import { refuseUnknown } from "../../base/known-options.ts";
import type { AdminRole } from "../../door/authorize.ts";
import { hostGate, type Hosts } from "../host-names.ts";
import { misdirected } from "../route.ts";

/** No token is guessed that is as long as this. */
const MIN_TOKEN_LENGTH = 32;

/** How operators come in over HTTP, at `/_perdure/`. */
export interface AdminOptions {
  /**
   * What they show as `Authorization: Bearer …`, at least 32 characters. One token may do everything; with one for each role,
   * `read` only looks, `operate` also talks, answers and stops, `erase` also deletes.
   */
  readonly token: string | Readonly<Partial<Record<AdminRole, string>>>;
  /** Names by which operators may call this host, beside those of this machine. Default: none. */
  readonly hosts?: Hosts;
  /** Names of fields whose values are hidden, beside those of keys, tokens and passwords. */
  readonly redact?: readonly string[];
}

/** Answers what is at the operators' addresses; undefined: something else. */
export type AdminHttp = (request: Request) => Promise<Response> | undefined;

/** Reads the options. @returns what opens a house @throws PerdureError `bad_config` for options that would let strangers in */
export function openAdminHttp(options: AdminOptions): (house: AdminHouse) => AdminHttp {
  refuseUnknown(options, { token: true, hosts: true, redact: true }, "serve(): admin");
  const tokens = readTokens(options.token);
  if (options.hosts === "any")
    throw new PerdureError(
      "bad_config",
      'admin.hosts cannot be "any": list the names that operators use, as in ["app.example"].',
    );
  const answersTo = hostGate(options.hosts ?? []);
  const mask = createMask(options.redact, Object.values(tokens));
  const answer = async (house: AdminHouse, request: Request): Promise<Response> => {
    if (!answersTo(request))
      return new Response(misdirected(request).replace("`hosts:", "`admin.hosts:"), { status: 421 });
    // No page asks here: what a browser sends in the name of one is somebody else's idea.
    if (request.headers.has("origin") || (request.headers.get("sec-fetch-site") ?? "none") !== "none")
      return refused(403, "not_allowed", "Pages may not ask here.");
    const role = await roleOf(tokens, request);
    if (role === undefined)
      return refused(401, "not_allowed", "Show a token of this host's `admin.token`, as `Authorization: Bearer …`.");
    return answerOperator(house, mask, { via: "http", role }, request);
  };
  return (house) => (request) =>
    new URL(request.url).pathname.startsWith(ADMIN_PREFIX) ? answer(house, request) : undefined;
}

function refused(status: number, code: string, message: string): Response {
  const headers = { "cache-control": "no-store", ...(status === 401 && { "www-authenticate": "Bearer" }) };
  return Response.json({ error: { code, message } }, { status, headers });
}

function readTokens(given: AdminOptions["token"]): Partial<Record<AdminRole, string>> {
  const tokens = typeof given === "string" ? { erase: given } : given;
  refuseUnknown(tokens, { read: true, operate: true, erase: true }, "serve(): admin.token");
  const all = Object.values(tokens ?? {});
  const isToken = (token: unknown) =>
    typeof token === "string" && token.length >= MIN_TOKEN_LENGTH && /^\S+$/.test(token);
  if (all.length === 0 || !all.every(isToken) || new Set(all).size < all.length) {
    throw new PerdureError(
      "bad_config",
      `admin.token must be a secret of at least ${MIN_TOKEN_LENGTH} characters without blanks, or one of its own for each of read, operate and erase. ` +
        "Make one with `openssl rand -hex 32`, and keep it in the environment.",
    );
  }
  return tokens;
}
