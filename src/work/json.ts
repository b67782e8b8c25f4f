import { errorText, PerdureError } from "../base/error.ts";

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
