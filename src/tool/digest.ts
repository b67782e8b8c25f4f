import { sha256 } from "../base/hash.ts";
import { writeJson } from "../wire/json.ts";

/**
 * JSON with sorted keys and no spaces: values stored as the same JSON give the same text. `undefined` is null.
 * @throws PerdureError `bad_input` for what JSON cannot hold
 */
export function canonicalJson(value: unknown): string {
  // What `toJSON`, undefined fields and odd numbers come to is JSON's business; only the order of keys is ours.
  return sortedJson(JSON.parse(writeJson(value ?? null, "The value")) as unknown);
}

/** The same of a value that was read from JSON, and so holds nothing else. */
export function sortedJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  // `sort` compares UTF-16 units: the same order on every machine, whatever its locale.
  const fields = Object.entries(value as Record<string, unknown>).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${sortedJson(item)}`).join(",")}}`;
}

/**
 * The fingerprint of a call: SHA-256, in hex, of its tool and its input. An approval is bound to it.
 * Rejects with PerdureError `bad_input` for an input that JSON cannot hold.
 */
export async function digestOf(toolName: string, input: unknown): Promise<string> {
  return sha256(canonicalJson([toolName, input]));
}
