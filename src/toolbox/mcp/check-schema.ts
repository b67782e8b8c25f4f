import { isRecord } from "../../base/json.ts";

/** Schemas come from servers: one that refers to itself, or nests without end, must not either. */
const MAX_DEPTH = 64;
/**
 * How much is looked at: schemas, fields, items, choices, and texts by their length. What is behind is the server's to
 * check. Whoever writes both the schema and the value must not make this take long.
 */
const MAX_WORK = 50_000;
/** Characters of a text that cost as much as one field. */
const CHARS_PER_UNIT = 64;
/** More would not help a model to correct itself. */
const MAX_CHOICES_SHOWN = 20;
/** There are seven. */
const MAX_TYPES = 16;

/**
 * Looks whether a JSON value fits a JSON schema of a stranger, and says in one sentence what is wrong. It knows types,
 * required and unknown fields, choices, bounds and combinations; keywords that it does not know pass, because whoever
 * wrote the schema checks again. Patterns and formats are not tried: a pattern from outside can take for ever. Libraries
 * try them, or make code of the schema, and bound no work; so this is ours. Never
 * throws, runs no code made from the schema, and gives up (passing) on schemas without end.
 * @returns what is wrong, or undefined
 */
export function checkSchema(schema: unknown, value: unknown, what = "the input"): string | undefined {
  return check(schema, value, what, { root: schema, left: MAX_WORK, keys: new WeakMap() }, 0);
}

interface Run {
  readonly root: unknown;
  left: number;
  /** Listing the fields of a large object takes long: it is done once, however many schemas look at it. */
  readonly keys: WeakMap<object, readonly string[]>;
}

function keysOf(value: object, run: Run): readonly string[] {
  const known = run.keys.get(value);
  if (known !== undefined) return known;
  const keys = Object.keys(value);
  run.keys.set(value, keys);
  return keys;
}

/** Whether there is still time for so much work. */
function affords(run: Run, work: number): boolean {
  run.left -= work;
  return run.left >= 0;
}

function check(schema: unknown, value: unknown, at: string, run: Run, depth: number): string | undefined {
  if (schema === false) return `${at} is not allowed`;
  if (!isRecord(schema) || depth > MAX_DEPTH || !affords(run, 1)) return undefined;
  const target = typeof schema.$ref === "string" ? follow(run, schema.$ref) : undefined;
  return (
    (target === undefined ? undefined : check(target, value, at, run, depth + 1)) ??
    checkType(schema, value, at) ??
    checkChoice(schema, value, at, run) ??
    checkBounds(schema, value, at, run) ??
    checkFields(schema, value, at, run, depth) ??
    checkItems(schema, value, at, run, depth) ??
    checkCombined(schema, value, at, run, depth)
  );
}

function checkType(schema: Record<string, unknown>, value: unknown, at: string): string | undefined {
  const types = (Array.isArray(schema.type) ? schema.type.slice(0, MAX_TYPES) : [schema.type]).filter(
    (type) => typeof type === "string",
  );
  if (types.length === 0 || types.some((type) => isOfType(value, type))) return undefined;
  return `${at} must be ${types.map(withArticle).join(" or ")}, not ${withArticle(typeOf(value))}`;
}

function isOfType(value: unknown, type: string): boolean {
  if (type === "integer") return Number.isInteger(value);
  const known = ["null", "boolean", "number", "string", "array", "object"].includes(type);
  return !known || typeOf(value) === type;
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

function withArticle(type: string): string {
  if (type === "null") return type;
  return `${/^[aeio]/.test(type) ? "an" : "a"} ${type}`;
}

function checkChoice(schema: Record<string, unknown>, value: unknown, at: string, run: Run): string | undefined {
  const choices = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : undefined;
  if (choices === undefined || !affords(run, choices.length)) return undefined;
  const own = jsonOf(value, run);
  if (own === undefined) return undefined;
  for (const choice of choices) {
    const text = jsonOf(choice, run);
    if (text === undefined || text === own) return undefined;
  }
  const shown = choices.slice(0, MAX_CHOICES_SHOWN).map((choice) => JSON.stringify(choice));
  return `${at} must be ${choices.length === 1 ? "" : "one of "}${shown.join(", ")}${choices.length > shown.length ? ", …" : ""}`;
}

/** A value as JSON, or undefined when that would be too much work. */
function jsonOf(value: unknown, run: Run): string | undefined {
  if (!affords(run, sizeOf(value, run, run.left, 0))) return undefined;
  return JSON.stringify(value);
}

/** What writing a value costs, or more than `most`. */
function sizeOf(value: unknown, run: Run, most: number, depth: number): number {
  if (typeof value === "string") return Math.ceil(value.length / CHARS_PER_UNIT);
  if (typeof value !== "object" || value === null) return 1;
  if (depth > MAX_DEPTH) return most + 1;
  let size = 1;
  for (const key of keysOf(value, run)) {
    size += 1 + Math.ceil(key.length / CHARS_PER_UNIT);
    if (size > most) return size;
    size += sizeOf((value as Record<string, unknown>)[key], run, most - size, depth + 1);
    if (size > most) return size;
  }
  return size;
}

function checkBounds(schema: Record<string, unknown>, value: unknown, at: string, run: Run): string | undefined {
  const measured = typeof value === "string" && ("minLength" in schema || "maxLength" in schema);
  if (measured && !affords(run, Math.ceil(value.length / CHARS_PER_UNIT))) return undefined;
  const bounds: readonly [string, number | undefined, string][] =
    typeof value === "number"
      ? [
          ["minimum", value, "be at least"],
          ["maximum", value, "be at most"],
        ]
      : typeof value === "string"
        ? [
            ["minLength", measured ? lengthOf(value) : undefined, "have a length of at least"],
            ["maxLength", measured ? lengthOf(value) : undefined, "have a length of at most"],
          ]
        : Array.isArray(value)
          ? [
              ["minItems", value.length, "have at least this many items:"],
              ["maxItems", value.length, "have at most this many items:"],
            ]
          : [];
  for (const [keyword, size, words] of bounds) {
    const bound = schema[keyword];
    if (typeof bound !== "number" || size === undefined) continue;
    if (keyword.startsWith("min") ? size < bound : size > bound) return `${at} must ${words} ${bound}`;
  }
  return undefined;
}

/** In code points, as schemas count. */
function lengthOf(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length - 1; at++) if ((text.codePointAt(at) ?? 0) > 0xffff) length--;
  return length;
}

function checkFields(
  schema: Record<string, unknown>,
  value: unknown,
  at: string,
  run: Run,
  depth: number,
): string | undefined {
  if (!isRecord(value)) return undefined;
  const properties = isRecord(schema.properties) ? schema.properties : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const name of required) {
    if (!affords(run, 1)) return undefined;
    if (typeof name === "string" && !Object.hasOwn(value, name)) return `${at} needs the field "${name}"`;
  }
  const others = schema.additionalProperties;
  if (!isRecord(schema.properties) && others !== false && !isRecord(others)) return undefined;
  for (const name of keysOf(value, run)) {
    if (!affords(run, 1)) return undefined;
    const item = value[name];
    const field = `${at === "the input" ? "" : `${at}.`}${name}`;
    if (Object.hasOwn(properties, name)) {
      const fault = check(properties[name], item, field, run, depth + 1);
      if (fault !== undefined) return fault;
    } else if (others === false && !isRecord(schema.patternProperties)) {
      const known = Object.keys(properties).slice(0, MAX_CHOICES_SHOWN).join(", ");
      return `${at} must not have the field "${name}"${known === "" ? "" : ` (known fields: ${known})`}`;
    } else if (isRecord(others) && !isRecord(schema.patternProperties)) {
      const fault = check(others, item, field, run, depth + 1);
      if (fault !== undefined) return fault;
    }
  }
  return undefined;
}

function checkItems(
  schema: Record<string, unknown>,
  value: unknown,
  at: string,
  run: Run,
  depth: number,
): string | undefined {
  if (!Array.isArray(value)) return undefined;
  const first = Array.isArray(schema.prefixItems)
    ? schema.prefixItems
    : Array.isArray(schema.items)
      ? schema.items
      : [];
  const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
  for (const [index, item] of value.entries()) {
    if (!affords(run, 1)) return undefined;
    const fault = check(index < first.length ? first[index] : rest, item, `${at}[${index}]`, run, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function checkCombined(
  schema: Record<string, unknown>,
  value: unknown,
  at: string,
  run: Run,
  depth: number,
): string | undefined {
  for (const part of Array.isArray(schema.allOf) ? schema.allOf : []) {
    const fault = check(part, value, at, run, depth + 1);
    if (fault !== undefined) return fault;
  }
  // That more than one of `oneOf` fits is left to the server: it does not make a value wrong for what follows.
  for (const choices of [schema.anyOf, schema.oneOf]) {
    if (!Array.isArray(choices) || choices.length === 0) continue;
    const faults = choices.map((choice) => check(choice, value, at, run, depth + 1));
    if (!faults.includes(undefined)) return faults.length === 1 ? faults[0] : `${faults[0]} (or fit another choice)`;
  }
  return undefined;
}

/** What a reference within the same schema points at. Others are not followed: nothing is loaded. */
function follow(run: Run, ref: string): unknown {
  if (!ref.startsWith("#") || !affords(run, Math.ceil(ref.length / CHARS_PER_UNIT))) return undefined;
  let at: unknown = run.root;
  for (const part of ref.slice(1).split("/").slice(1)) {
    const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
