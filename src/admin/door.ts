import { errorText, PerdureError } from "../base/error.ts";
import { sha256 } from "../base/hash.ts";
import { type AdminRole, authorizeAdmin } from "../door/authorize.ts";
import { ADMIN_PREFIX, type AdminHouse, OPERATOR_HEADER } from "./house.ts";
import type { Mask } from "./mask.ts";
import type { AdminAsked, AdminRoute } from "./asked.ts";
import { ADMIN_ROUTES, AdminStream, readAdminBody } from "./routes.ts";

const MAX_NAME_LENGTH = 80;

/** By which way somebody has come, and what they may. */
interface Operator {
  readonly via: "socket" | "http" | "files";
  readonly role: AdminRole;
}

/** The role of a bearer token, found in a time that tells nothing about the tokens. */
export async function roleOf(
  tokens: Readonly<Partial<Record<AdminRole, string>>>,
  request: Request,
): Promise<AdminRole | undefined> {
  const given = /^Bearer (\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
  if (given === undefined) return undefined;
  const hash = await sha256(given);
  let found: AdminRole | undefined;
  for (const role of ["read", "operate", "erase"] as const) {
    const token = tokens[role];
    if (token !== undefined && (await sha256(token)) === hash) found = role;
  }
  return found;
}

/**
 * Answers what an operator asks for: finds the route, asks whether the role is enough, notes what is about to be done, does it,
 * and hides secrets on the way out. Never rejects.
 */
export async function answerOperator(
  house: AdminHouse,
  mask: Mask,
  operator: Operator,
  request: Request,
): Promise<Response> {
  try {
    const url = new URL(request.url);
    const found = findAdminRoute(request.method, url.pathname);
    const refusal = authorizeAdmin(operator.role, found.route.act);
    if (refusal !== undefined) throw refusal;
    const { query, body } = {
      query: url.searchParams,
      body: found.route.isRaw === true ? {} : await readAdminBody(request),
    };
    const who = nameIn(request);
    const asked: AdminAsked = { house, request, params: found.params, query, body, who };
    return await answer(asked, found.route, operator, mask);
  } catch (thrown) {
    return failure(thrown, mask);
  }
}

async function answer(asked: AdminAsked, route: AdminRoute, { via }: Operator, mask: Mask): Promise<Response> {
  const { house, params, who } = asked;
  const detail = route.notes?.(asked);
  // First: whatever becomes of it, that it was asked for is known.
  const note =
    detail === undefined
      ? undefined
      : house.audit?.note({ at: Date.now(), via, who, act: route.act, agent: params.id ?? null, detail });
  const settle = (outcome: string) => {
    if (note !== undefined) house.audit?.settle(note, outcome);
  };
  try {
    const value = await route.answer(asked);
    if (value instanceof Response) {
      settle(value.ok ? "ok" : String(value.status));
      return value;
    }
    if (value instanceof AdminStream) return new Response(toLines(value.items, mask, settle), { headers: LINES });
    settle("ok");
    return Response.json(mask.json(value), { headers: PRIVATE });
  } catch (thrown) {
    settle(PerdureError.is(thrown) ? thrown.code : "failed");
    if (route.isRaw === true) await readAway(asked.request);
    throw thrown;
  }
}

/** Reads what nobody wants any more: whoever is still sending would take the end of the connection for the answer. */
async function readAway({ body, bodyUsed }: Request): Promise<void> {
  if (body === null || bodyUsed || body.locked) return;
  const reader = body.getReader();
  while (!(await reader.read()).done);
}

const PRIVATE = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
const LINES = { ...PRIVATE, "content-type": "application/x-ndjson" };

/** One JSON per line. What goes wrong on the way is the last line. */
function toLines(
  items: AsyncIterable<object>,
  mask: Mask,
  settle: (outcome: string) => void,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const lines = items[Symbol.asyncIterator]();
  const toLine = (value: object) => encoder.encode(`${JSON.stringify(mask.json(value))}\n`);
  return new ReadableStream({
    async pull(controller) {
      try {
        const { value, done } = await lines.next();
        if (done !== true) return controller.enqueue(toLine(value));
        settle("ok");
      } catch (thrown) {
        settle(PerdureError.is(thrown) ? thrown.code : "failed");
        controller.enqueue(toLine({ error: describe(thrown) }));
      }
      controller.close();
    },
    async cancel() {
      await lines.return?.();
    },
  });
}

/** Of an address and a method, what is asked for. @throws PerdureError `not_found` */
function findAdminRoute(method: string, pathname: string): { route: AdminRoute; params: Record<string, string> } {
  const version = `${ADMIN_PREFIX}v1/`;
  const rest = pathname.startsWith(version) ? pathname.slice(version.length).split("/") : [];
  for (const route of ADMIN_ROUTES) {
    const shape = route.shape.split("/");
    if (route.method !== method || shape.length !== rest.length) continue;
    const params: Record<string, string> = {};
    const fits = shape.every((segment, at) => {
      const given = rest[at] ?? "";
      if (!segment.startsWith("{")) return segment === given;
      params[segment.slice(1, -1)] = decoded(given);
      return given !== "";
    });
    if (fits) return { route, params };
  }
  throw new PerdureError(
    "not_found",
    `There is nothing at ${method} ${pathname}. This host may be older than the command.`,
  );
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new PerdureError("bad_input", "The address cannot be decoded.");
  }
}

function nameIn(request: Request): string {
  const said = decoded(request.headers.get(OPERATOR_HEADER) ?? "");
  // Told to people as it is.
  const name = said.replaceAll(/[\p{Cc}\p{Cf}]/gu, "").trim();
  return name.slice(0, MAX_NAME_LENGTH) || "operator";
}

function describe(thrown: unknown): { code: string; message: string } {
  return { code: PerdureError.is(thrown) ? thrown.code : "failed", message: errorText(thrown) };
}

/** The answer to what was thrown. Operators are told what it was. */
function failure(thrown: unknown, mask: Mask): Response {
  const error = describe(thrown);
  const status = PerdureError.is(thrown) ? (STATUS[thrown.code] ?? 500) : 500;
  return Response.json({ error: mask.json(error) }, { status, headers: PRIVATE });
}

const STATUS: Partial<Record<PerdureError["code"], number>> = {
  bad_input: 400,
  not_allowed: 403,
  not_found: 404,
  unknown_agent: 404,
  bad_state: 409,
  conflict: 409,
  not_callable: 409,
  too_large: 413,
  limit: 503,
  host_stopped: 503,
  disk_full: 507,
};
