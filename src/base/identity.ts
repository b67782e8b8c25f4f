import { errorText, PerdureError, type PerdureErrorCode } from "./error.ts";

/** What JSON can hold. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/**
 * Who somebody is, as the app established it, never as a client claims. JSON of at most {@link MAX_IDENTITY_BYTES}, stored with
 * messages and turns.
 */
export interface Identity {
  /** What the app knows the person by. */
  readonly id: string;
  /** What people call the person. */
  readonly name?: string;
  readonly [claim: string]: JsonValue | undefined;
}

/** The longest identity, as JSON. */
export const MAX_IDENTITY_BYTES = 8 * 1024;

/**
 * An identity as it is stored.
 * @param from who gave it, for the error
 * @throws PerdureError with `code`, `bad_input` where none is given, for what is no identity. Nothing of it is in the text.
 */
export function writeIdentity(given: unknown, from: string, code: PerdureErrorCode = "bad_input"): string {
  const fail = (why: string) => new PerdureError(code, `The identity of ${from} ${why}`);
  if (typeof given !== "object" || given === null || Array.isArray(given))
    throw fail("must be an object with an `id`.");
  const { id, name } = given as Record<string, unknown>;
  if (typeof id !== "string" || id === "") throw fail("must have an `id` that is text and not empty.");
  if (name !== undefined && typeof name !== "string") throw fail("has a `name` that is no text.");
  let text: string;
  try {
    text = JSON.stringify(given);
  } catch (thrown) {
    throw fail(`cannot be written as JSON: ${errorText(thrown).split("\n", 1)[0] ?? ""}`);
  }
  const stray = strayKey(given);
  if (stray !== undefined)
    throw fail(
      `has a claim ${JSON.stringify(stray)} that JSON cannot hold. Use text, numbers, lists and plain objects.`,
    );
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > MAX_IDENTITY_BYTES)
    throw fail(
      `has ${bytes} bytes as JSON; at most ${MAX_IDENTITY_BYTES} are kept. Give an id to look the rest up by.`,
    );
  return text;
}

/** The same for one that was checked when it came in; null for nobody. */
export function storeIdentity(identity: Identity | undefined): string | null {
  return identity === undefined ? null : JSON.stringify(identity);
}

/** An identity that was stored. Frozen: it is shared by all who ask. */
export function readIdentity(json: string | null | undefined): Identity | undefined {
  if (json === null || json === undefined) return undefined;
  const freeze = (_: string, value: unknown): unknown =>
    typeof value === "object" && value !== null ? Object.freeze(value) : value;
  return JSON.parse(json, freeze) as Identity;
}

/** The first claim that would be lost or changed in JSON. There are no cycles. */
function strayKey(value: object): string | undefined {
  for (const [key, claim] of Object.entries(value) as [string, unknown][]) {
    if (claim === undefined || claim === null || typeof claim === "string" || typeof claim === "boolean") continue;
    if (typeof claim === "number" && Number.isFinite(claim)) continue;
    if (typeof claim !== "object") return key;
    const prototype: unknown = Object.getPrototypeOf(claim);
    const isPlain = Array.isArray(claim) || prototype === null || Object.getPrototypeOf(prototype) === null;
    if (!isPlain || strayKey(claim) !== undefined) return key;
  }
  return undefined;
}
