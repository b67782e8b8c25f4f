import { errorText, PerdureError } from "../base/error.ts";
import { JsonScan } from "./json-scan.ts";

/** How deep arrays and objects may nest. Documents and syntax trees stay below; SQLite's JSON functions end at 1000. */
export const MAX_JSON_DEPTH = 256;
/**
 * How many values a frame or body may hold, lists and objects included. A few megabytes can hold millions, which block for
 * seconds while parsed. Transcripts have their own bound.
 */
export const MAX_JSON_VALUES = 50_000;
/**
 * The longest text that is parsed in one go, in UTF-16 units: undoing escapes takes three times longer than reading plain text.
 * Only transcripts are longer, and are read in pieces: a message at its longest, and what stands before it in its piece.
 */
export const MAX_JSON_LENGTH = 10 * 1024 * 1024;

/** A JSON object of unknown content. */
export type JsonObject = { readonly [key: string]: unknown };

/** What {@link readJson} found. `scan`: what a long text says of itself, if it was looked at. */
type ReadJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly why: NotRead; readonly scan?: JsonScan };

/** Why something was not read. */
export type NotRead = "not-json" | "too-deep" | "too-many" | "too-long";

/** The same in words, which go on a sentence. */
export function notReadWords(why: NotRead, maxDepth = MAX_JSON_DEPTH, maxValues = MAX_JSON_VALUES): string {
  if (why === "not-json") return "is not JSON";
  if (why === "too-long") return `is longer than ${MAX_JSON_LENGTH} characters`;
  return why === "too-deep" ? `is nested deeper than ${maxDepth} levels` : `holds more than ${maxValues} values`;
}

/**
 * Parses JSON of strangers. Never throws. The value is cleaned of what would hurt later:
 *
 * - Keys called `__proto__` are removed at every level, because `Object.assign` and deep merges would set prototypes. Not
 *   refused: a transcript comes back with every request, so one odd tool output would lock its chat for good.
 * - Numbers too large for a double (`1e999`) become `null`, as `JSON.stringify` writes them, so memory equals what is stored and
 *   sent.
 * - Nesting beyond `maxDepth` gives `too-deep`: `JSON.stringify` and every recursive walk fail on it.
 *
 * With `maxValues`, a long text is scanned before it is parsed, only up to where it is too much, JSON or not: `too-many`,
 * `too-long`. One that is neither a list nor an object counts as `not-json`.
 * @param isTold whether what such a text has said of itself so far is enough. If not, the scan goes on.
 */
export function readJson(
  text: string,
  maxDepth: number,
  maxValues = Infinity,
  isTold: (told: JsonScan["told"]) => boolean = () => true,
): ReadJson {
  if (!fitsInValues(text, maxValues)) {
    if (!isContainerText(text)) return { ok: false, why: "not-json" };
    const scan = new JsonScan(text);
    const isTooMuch = () => scan.depth > maxDepth || scan.values > maxValues;
    scan.runUntil(() => isTooMuch() && isTold(scan.told));
    if (isTooMuch()) return { ok: false, why: scan.depth > maxDepth ? "too-deep" : "too-many", scan };
    if (!scan.isClosed) return { ok: false, why: "not-json" };
    if (text.length > MAX_JSON_LENGTH) return { ok: false, why: "too-long", scan };
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    // Engines that parse recursively run out of stack; that is depth, not syntax.
    return { ok: false, why: error instanceof RangeError ? "too-deep" : "not-json" };
  }
  if (isInfinite(value)) return { ok: true, value: null };
  return clean(value, maxDepth) ? { ok: true, value } : { ok: false, why: "too-deep" };
}

/** Whether a text can be a list or an object. */
function isContainerText(text: string): boolean {
  return /^\s*[[{]/.test(text);
}

/** Whether a text is too short to hold more values: each takes two characters at least. */
export function fitsInValues(text: string, maxValues: number): boolean {
  return text.length <= maxValues * 2;
}

/** Level by level, so that depth costs no stack. False when there are more than `maxDepth` levels. */
function clean(root: unknown, maxDepth: number): boolean {
  let level: unknown[] = [root];
  // The root is level 0, so a scalar needs no depth at all.
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const node of level) {
      if (typeof node !== "object" || node === null) continue;
      if (depth === maxDepth) return false;
      if (Array.isArray(node)) cleanArray(node, next);
      else cleanObject(node as Record<string, unknown>, next);
    }
    level = next;
  }
  return true;
}

/** Kept apart from objects because the keys of a long array are costly to list. */
function cleanArray(array: unknown[], containers: unknown[]): void {
  for (let i = 0; i < array.length; i++) {
    const value = array[i];
    if (typeof value === "object" && value !== null) containers.push(value);
    else if (isInfinite(value)) array[i] = null;
  }
}

function cleanObject(object: Record<string, unknown>, containers: unknown[]): void {
  if (Object.hasOwn(object, "__proto__")) delete object["__proto__"];
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (typeof value === "object" && value !== null) containers.push(value);
    else if (isInfinite(value)) object[key] = null;
  }
}

function isInfinite(value: unknown): boolean {
  return typeof value === "number" && !Number.isFinite(value);
}

/**
 * `JSON.stringify` that always gives JSON.
 * @param what names the value in the error.
 * @param replacer as `JSON.stringify` takes it.
 * @throws PerdureError `bad_input` for what JSON cannot hold: cycles, BigInt, functions, `undefined`, a `toJSON`
 *   that throws, too many levels.
 */
export function writeJson(
  value: unknown,
  what: string,
  replacer?: (this: unknown, key: string, value: unknown) => unknown,
): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, replacer);
  } catch (error) {
    throw new PerdureError("bad_input", `${what} cannot be written as JSON: ${firstLine(errorText(error))}`, {
      cause: error,
    });
  }
  if (text === undefined)
    throw new PerdureError("bad_input", `${what} cannot be written as JSON: it is ${typeof value}.`);
  return text;
}

/** V8 explains cycles with a drawing of several lines. */
function firstLine(text: string): string {
  return text.split("\n", 1)[0] ?? text;
}

/** Levels below which nobody looks: `JSON.stringify` gives up soon after. */
const MAX_LOOK = 1_000;

/**
 * What JSON would silently drop or change: functions, symbols, BigInt, NaN and infinite numbers, and class instances without
 * `toJSON`, such as `Map` and `Set`. Undefined fields do not count.
 * @returns the first one and where it is, as in "a Set at `tags[2].seen`"; undefined when there is none.
 */
export function lostInJson(value: unknown): string | undefined {
  const found = findLost(value, new Set());
  if (found === undefined) return undefined;
  const { kind, keys } = found;
  return keys.length === 0 ? kind : `${kind} at \`${keys.toReversed().reduce(pathTo, "")}\``;
}

/** Keys are the way to it, from the inside out. */
function findLost(value: unknown, above: Set<unknown>): { kind: string; keys: (string | number)[] } | undefined {
  const kind = kindLost(value);
  if (kind !== undefined) return { kind, keys: [] };
  // A cycle, or too deep: `JSON.stringify` says so.
  if (!isContainer(value) || above.has(value) || above.size > MAX_LOOK || writesItself(value)) return undefined;
  above.add(value);
  for (const [key, item] of Object.entries(value)) {
    const found = findLost(item, above);
    if (found === undefined) continue;
    found.keys.push(Array.isArray(value) ? Number(key) : key);
    return found;
  }
  above.delete(value);
  return undefined;
}

function kindLost(value: unknown): string | undefined {
  if (typeof value === "function") return "a function";
  if (typeof value === "symbol") return "a symbol";
  if (typeof value === "bigint") return "a BigInt";
  if (isInfinite(value)) return String(value);
  if (!isContainer(value) || Array.isArray(value)) return undefined;
  const proto: unknown = Object.getPrototypeOf(value);
  if (proto === null || isRootPrototype(proto) || writesItself(value)) return undefined;
  const { name } = (proto as { constructor: { name?: unknown } }).constructor;
  return typeof name === "string" && name !== "" ? `a ${name}` : "an object of a class";
}

/** Also that of another realm, such as a sandbox's. */
function isRootPrototype(proto: unknown): boolean {
  return Object.getPrototypeOf(proto) === null && Object.hasOwn(proto as object, "isPrototypeOf");
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function writesItself(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === "function";
}

function pathTo(path: string, key: string | number): string {
  if (typeof key === "number") return `${path}[${key}]`;
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${path}[${JSON.stringify(key)}]`;
  return path === "" ? key : `${path}.${key}`;
}
