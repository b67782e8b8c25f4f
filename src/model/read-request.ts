import type { ModelMessage } from "ai";
import { isRecord, tryParseJson } from "../base/json.ts";
import { toModelMessages } from "../context/model-messages.ts";
import { parseMessage } from "../message/validate.ts";
import type { Sql } from "../port.ts";
import { readFrame, readRequest, readRequestAt, type RequestRow } from "../store/frame.ts";
import { readMessage, readMessageAt } from "../store/message.ts";
import { checksOf, digestOf, hashOfMessage } from "./request-book.ts";

/* Shows what a model was sent with a call of the past. The store is read at once, and what it says is converted after that. */

/**
 * Whether what is shown is what was sent. `exact`: its digest is the stored one. `edited`: messages were changed or deleted since.
 * `code-changed`: the stored messages are as they were, but are made into a request in another way now. `opaque`: not all of it was
 * stored.
 */
type RequestProof = "exact" | "edited" | "code-changed" | "opaque";

/** A request as it was sent. */
export interface ShownRequest {
  readonly call: string;
  readonly turn: string | null;
  readonly step: number;
  readonly attempt: number;
  readonly model: string;
  readonly status: string;
  readonly startedAt: number;
  readonly digest: string | null;
  readonly proof: RequestProof;
  /** What is not as it was: ids of messages, or a sentence. */
  readonly changed: readonly string[];
  readonly instructions: unknown;
  readonly tools: unknown;
  readonly settings: unknown;
  /** The bound of the answer that a budget has set. */
  readonly cap: number | null;
  readonly messages: readonly ModelMessage[];
}

/** One place of a list, with what is stored there. */
type Found =
  | { readonly kind: "text"; readonly message: ModelMessage | undefined }
  | { readonly kind: "instead"; readonly at: number; readonly message: ModelMessage | undefined }
  | {
      readonly kind: "stored";
      readonly id: string;
      readonly checks: string;
      readonly body: string | undefined;
      readonly parts: readonly [number, number] | undefined;
    };

/** What is stored of a request. */
export interface FoundRequest {
  readonly row: RequestRow;
  readonly frame: readonly [unknown, unknown, unknown];
  readonly places: readonly Found[] | undefined;
  readonly cap: number | null;
  readonly missing: readonly string[];
}

/** Reads what is stored of the request of a call; undefined where there is no such call. Synchronous. */
export function findRequest(rows: Sql, id: string): FoundRequest | undefined {
  const row = readRequest(rows, id);
  if (row === undefined) return undefined;
  const missing: string[] = [];
  const text = (hash: string, session = "") => {
    const found = readFrame(rows, hash, session);
    if (found === undefined) missing.push(`A text of it is not stored any more: ${hash}.`);
    return found === undefined ? undefined : tryParseJson(found.body);
  };
  const parts = row.frame === null ? undefined : text(row.frame);
  const [instructions, tools, settings] = (Array.isArray(parts) ? parts : []).map((hash) => text(String(hash)));
  const list = placesOf(rows, row);
  if (row.frame === null) missing.push("Nothing was stored of what it was sent.");
  else if (list === undefined) missing.push("Where its messages are was not stored.");
  const found = list && {
    places: toFound(rows, row.session, [...list.base, ...list.own], text),
    cap: list.cap,
  };
  return {
    ...{ row, missing, frame: [instructions, tools, settings] },
    ...{ places: found?.places, cap: found?.cap ?? null },
  };
}

interface PlaceList {
  readonly base: readonly string[];
  readonly own: readonly string[];
  readonly cap: number | null;
}

/** The places of a request: its own list, behind what it shares with calls before it. */
function placesOf(rows: Sql, row: RequestRow): PlaceList | undefined {
  const first = parseList(row);
  if (first === undefined) return undefined;
  const pieces: string[][] = [];
  let list: ReturnType<typeof parseList> = first;
  let most = Number.POSITIVE_INFINITY;
  for (let at = row; list !== undefined;) {
    const before: number = list.kept;
    // Of what this call has added, those behind it may share less than all.
    pieces.push(list.more.slice(0, Math.max(0, most - before)));
    most = Math.min(most, before);
    if (most === 0) break;
    const next = readRequestAt(rows, list.before);
    if (next === undefined || next.seq >= at.seq) return undefined;
    at = next;
    list = parseList(next);
  }
  return list && { base: pieces.reverse().flat(), own: first.own, cap: first.cap };
}

function parseList({ request }: RequestRow) {
  const given = request === null ? undefined : tryParseJson(request);
  if (!Array.isArray(given)) return undefined;
  const [before, kept, more, own, cap] = given as [number, number, string[], string[], number?];
  return { before, kept, more, own, cap: cap ?? null };
}

const STORED = /^(?:(\d+)|>(\d+)-(\d+))\.(.+)$/;
const INSTEAD = /^(\d*)=(.+)$/;

function toFound(
  rows: Sql,
  session: string,
  places: readonly string[],
  text: (hash: string, session: string) => unknown,
): Found[] {
  const found: Found[] = [];
  let answer = "";
  for (const place of places) {
    if (place.startsWith("@")) {
      answer = place.slice(1);
      continue;
    }
    const [, at, hash] = INSTEAD.exec(place) ?? [];
    if (hash !== undefined) {
      const message = text(hash, session) as ModelMessage | undefined;
      found.push(at === "" ? { kind: "text", message } : { kind: "instead", at: Number(at), message });
      continue;
    }
    const [, seq, from, to, checks = ""] = STORED.exec(place) ?? [];
    const row = seq === undefined ? readMessage(rows, answer) : readMessageAt(rows, Number(seq));
    found.push({
      ...{ kind: "stored", checks, body: row?.body, id: row?.id ?? (seq === undefined ? answer : `message ${seq}`) },
      parts: from === undefined ? undefined : [Number(from), Number(to)],
    });
  }
  return found;
}

/** Makes the request again from what is stored, and says whether it is what was sent. */
export async function showRequest({ row, frame, places, cap, missing }: FoundRequest): Promise<ShownRequest> {
  const messages: ModelMessage[] = [];
  const groups: { from: number; to: number; found: Extract<Found, { kind: "stored" }>; stored: string }[] = [];
  const edited: string[] = [];
  for (const found of places ?? []) {
    if (found.kind === "text") {
      if (found.message !== undefined) messages.push(found.message);
      continue;
    }
    if (found.kind === "instead") {
      const from = groups.at(-1)?.from;
      if (found.message !== undefined && from !== undefined) messages[from + found.at] = found.message;
      continue;
    }
    const said = found.body === undefined ? undefined : parseMessage(tryParseJson(found.body));
    if (said === undefined) {
      edited.push(found.id);
      continue;
    }
    const parts = found.parts === undefined ? said.parts : said.parts.slice(...found.parts);
    const made = await toModelMessages({ ...said, parts }, {});
    const from = messages.length;
    groups.push({ from, to: from + made.length, found, stored: checksOf(parts, []).stored });
    messages.push(...made);
  }
  const hashes = messages.map((message) => hashOfMessage(message));
  const isWhole = places !== undefined && missing.length === 0;
  const digest = isWhole && row.frame !== null ? digestOf(row.frame, cap, hashes) : undefined;
  const isExact = digest !== undefined && digest === row.requestDigest && edited.length === 0;
  const remade: string[] = [];
  for (const { from, to, found, stored } of isExact ? [] : groups) {
    const sent = checksOf([], hashes.slice(from, to)).sent;
    if (found.checks === stored + sent) continue;
    (found.checks.startsWith(stored) ? remade : edited).push(found.id);
  }
  const proof = !isWhole ? "opaque" : isExact ? "exact" : edited.length > 0 ? "edited" : "code-changed";
  const [instructions, tools, settings] = frame;
  return {
    ...{ call: row.id, turn: row.turnId, step: row.step, attempt: row.attempt, model: row.model, status: row.status },
    ...{ startedAt: row.startedAt, digest: row.requestDigest, proof },
    changed: [...new Set(isWhole ? [...edited, ...remade] : missing)],
    ...{ instructions: instructions ?? null, tools: toolsIn(tools), settings: settings ?? {}, cap, messages },
  };
}

/** Tools by their names. */
function toolsIn(list: unknown): Record<string, unknown> {
  if (!Array.isArray(list)) return {};
  const named = list.filter((one): one is [string, unknown] => Array.isArray(one) && typeof one[0] === "string");
  return Object.fromEntries(named.map(([name, tool]) => [name, isRecord(tool) ? tool : {}]));
}
