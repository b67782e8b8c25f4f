import { errorText, PerdureError } from "./error.ts";

/** A JSON object: not null, not an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A whole number from 0. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

/** Keys that must never be assigned from data that came from outside. */
const unsafeKeys: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"]);

/** Whether two values are stored as the same JSON. Key order does not matter; `undefined` fields count as absent. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
  }
  if (!isRecord(a) || !isRecord(b)) return false;
  let fields = 0;
  for (const key of Object.keys(a)) {
    if (a[key] === undefined) continue;
    if (!Object.hasOwn(b, key) || !sameJson(a[key], b[key])) return false;
    fields += 1;
  }
  for (const key of Object.keys(b)) if (b[key] !== undefined) fields -= 1;
  return fields === 0;
}

/** `over` merged onto `base`, object by object, without changing either. `undefined` keeps `base`; prototype keys are skipped. */
export function mergeJson(base: unknown, over: unknown): unknown {
  if (over === undefined) return base;
  if (!isRecord(base) || !isRecord(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === undefined || unsafeKeys.has(key)) continue;
    merged[key] = Object.hasOwn(base, key) ? mergeJson(base[key], value) : value;
  }
  return merged;
}

/** Longer texts are encoded, which is several times faster than to look at each character. */
const ENCODED_CHARS = 4_096;

/** How many bytes `text` takes as UTF-8. */
export function utf8Length(text: string): number {
  if (text.length > ENCODED_CHARS) return new TextEncoder().encode(text).length;
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    if (unit < 0x800) {
      bytes += 1;
    } else if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) {
      bytes += 2;
      at += 1;
    } else {
      bytes += 2;
    }
  }
  return bytes;
}

/** Parses JSON. @returns `undefined` when it is not JSON; never throws. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Durable Objects refuse rows above 2 MB; this leaves room for the other columns. */
const MAX_JSON_BYTES = 1_900_000;
/** A UTF-16 unit is at most this many bytes of UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

/**
 * The JSON of a value that is to be stored; null for `undefined`. `what` names the value in errors.
 * @throws PerdureError `bad_input` for what JSON cannot hold, `limit` for what no row can hold
 */
export function encodeJson(value: unknown, what: string): string | null {
  if (value === undefined) return null;
  let json: string | undefined;
  try {
    json = JSON.stringify(value);
  } catch (error) {
    throw new PerdureError("bad_input", `${what} cannot be stored as JSON: ${errorText(error)}.`, { cause: error });
  }
  if (json === undefined) {
    throw new PerdureError("bad_input", `${what} cannot be stored as JSON: it is a ${typeof value}. Pass plain data.`);
  }
  if (json.length * MAX_BYTES_PER_UNIT > MAX_JSON_BYTES && new TextEncoder().encode(json).length > MAX_JSON_BYTES) {
    throw new PerdureError(
      "limit",
      `${what} is larger than ${MAX_JSON_BYTES} bytes as JSON. Store it elsewhere and pass a reference.`,
    );
  }
  return json;
}

/** The value of stored JSON; `undefined` for null. */
export function decodeJson(json: string | null): unknown {
  return json === null ? undefined : (JSON.parse(json) as unknown);
}
