import { PerdureError } from "../base/error.ts";
import type { AdminAct } from "../door/authorize.ts";
import { agentId, parseAgentId } from "../wire/agent-path.ts";
import type { AdminHouse } from "./house.ts";

/** The most agents that one page looks at. */
const PAGE_AGENTS = 200;

/** A request that may be answered. */
export interface AdminAsked {
  readonly house: AdminHouse;
  readonly request: Request;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The body, a JSON object; empty if there is none. */
  readonly body: Readonly<Record<string, unknown>>;
  /** What whoever asks is called. */
  readonly who: string;
}

/** A way in for operators. */
export interface AdminRoute {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Behind `/_perdure/v1/`. */
  readonly shape: string;
  readonly act: AdminAct;
  /** The body is bytes, for `answer` to read. */
  readonly isRaw?: true;
  /** What is to be noted of it. Without this it changes nothing, and nothing is noted. */
  readonly notes?: (asked: AdminAsked) => string | null;
  /** JSON, JSON one by one, or an answer of its own, which is not masked. */
  readonly answer: (asked: AdminAsked) => Promise<object> | object;
}

/** Looks at agents one by one, so that others have their turn in between. */
export async function page<T>(
  { house, query }: AdminAsked,
  read: (id: string) => readonly T[] | Promise<readonly T[]>,
): Promise<object> {
  const limit = Math.min(countIn(query, "limit", PAGE_AGENTS), PAGE_AGENTS);
  const only = query.get("class");
  const ids = house.list(query.get("after") ?? "", limit);
  const items: unknown[] = [];
  for (const id of ids) {
    if (only !== null && parseAgentId(id).at(-1)?.className !== only) continue;
    // It may have been deleted since the list was made.
    if (house.has(id)) items.push(...(await read(id)));
    await house.breathe();
  }
  return { items, ...(ids.length === limit && { next: ids.at(-1) }) };
}

const ID_FORM = "An id is Class/name, as `perdure agents` lists them.";

/** The id of an agent in an address, which may be new. */
export function pathOf(params: Readonly<Record<string, string>>): string {
  try {
    return agentId(parseAgentId(params.id ?? ""));
  } catch {
    throw new PerdureError("bad_input", `${JSON.stringify(params.id)} is no agent's id. ${ID_FORM}`);
  }
}

export function known(house: AdminHouse, params: Readonly<Record<string, string>>): string {
  const id = pathOf(params);
  if (house.has(id)) return id;
  throw new PerdureError("not_found", `There is no agent ${id}. ${ID_FORM}`);
}

/** A number of the address. @throws PerdureError `bad_input` */
export function countIn(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  if (text === null) return fallback;
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new PerdureError("bad_input", `\`${name}\` must be a whole number from 1 to 999999.`);
}
