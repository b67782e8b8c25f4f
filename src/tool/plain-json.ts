import { toBase64 } from "../base/bytes.ts";
import { PerdureError } from "../base/error.ts";
import { readJson, writeJson } from "../wire/json.ts";

/** Outputs travel inside messages, and nothing that stores or sends those follows deeper nesting. */
export const MAX_OUTPUT_DEPTH = 64;
/** Arguments that are nested deeper are refused: whoever compares, stores or shows them goes down level by level. */
export const MAX_INPUT_DEPTH = 256;
const PROTO_JSON = '"__proto__"';
/** What is said of a value that {@link hasProtoField}. */
export const PROTO_TEXT = 'has a field called "__proto__", which is not taken. Leave it out, or give it another name.';

/**
 * A copy of a tool's result as plain JSON. `undefined` becomes null, big integers text, maps objects, sets lists, bytes base64,
 * errors their name and message; JSON nested too deep to store becomes its text.
 * @throws PerdureError `bad_input` for what JSON cannot hold: functions, cycles; and for a field called `__proto__`
 */
export function toPlainJson(value: unknown, what: string): unknown {
  if (value === undefined) return null;
  if (typeof value === "string") return value;
  const text = writeJson(value, what, plain);
  if (text.includes(PROTO_JSON) && hasProtoField(JSON.parse(text) as unknown))
    throw new PerdureError("bad_input", `${what} ${PROTO_TEXT}`);
  const read = readJson(text, MAX_OUTPUT_DEPTH);
  return read.ok ? read.value : text;
}

/** Whether JSON has a `__proto__` field anywhere. Assigning it sets a prototype, so tools neither get nor give one. */
export function hasProtoField(root: unknown): boolean {
  // Level by level, so that depth costs no stack.
  for (let level = [root]; level.length > 0;) {
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value !== "object" || value === null) continue;
      if (!Array.isArray(value) && Object.hasOwn(value, "__proto__")) return true;
      for (const item of Object.values(value)) if (typeof item === "object" && item !== null) next.push(item);
    }
    level = next;
  }
  return false;
}

/** Whether JSON is nested deeper than so many levels. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((item) => isDeeperThan(item, levels - 1));
}

function plain(this: unknown, key: string, value: unknown): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object" || value === null) return value;
  // Buffers have turned themselves into lists of numbers before this is asked.
  const original = (this as Record<string, unknown>)[key];
  if (original instanceof Uint8Array) return toBase64(original);
  if (value instanceof ArrayBuffer) return toBase64(new Uint8Array(value));
  if (value instanceof Map) return isNamed(value) ? Object.fromEntries(value) : [...value];
  if (value instanceof Set) return [...value];
  if (value instanceof Error) return { name: value.name, message: value.message };
  return value;
}

function isNamed(map: ReadonlyMap<unknown, unknown>): map is ReadonlyMap<string, unknown> {
  return [...map.keys()].every((key) => typeof key === "string");
}
