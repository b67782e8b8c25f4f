import { isRecord } from "../../base/json.ts";

/** Schemas come from servers: one that refers to itself, or nests without end, must not either. */
const MAX_DEPTH = 64;
/**
 * How much is checked: schemas, fields, items, choices, text by length. The server checks the rest. A stranger who writes both
 * schema and value must not make this slow.
 */
const MAX_WORK = 50_000;
/** Characters of a text that cost as much as one field. */
const CHARS_PER_UNIT = 64;
/** More would not help a model to correct itself. */
const MAX_CHOICES_SHOWN = 20;
/** There are seven. */
const MAX_TYPES = 16;

/**
 * Checks a JSON value against a stranger's JSON schema, and says in one sentence what is wrong. Knows types, required and unknown
 * fields, choices, bounds and combinations; unknown keywords pass, because the schema's author checks again. Patterns and formats
 * are not tried: a foreign pattern can take forever. Libraries try them, or compile the schema, and bound no work; so this is
 * ours. Never throws, runs no code made from the schema, and gives up (passing) on endless schemas.
 * @returns what is wrong, or undefined
 */
export function checkSchema(schema: unknown, value: unknown, what = "the input"): string | undefined {
  return new SchemaCheck(schema).check(schema, value, what, 0);
}

type Schema = Readonly<Record<string, unknown>>;

/** One look at one value. Its methods say what is wrong, or undefined. */
class SchemaCheck {
  readonly #root: unknown;
  #left = MAX_WORK;
  /** Listing the fields of a large object takes long: it is done once, however many schemas look at it. */
  readonly #keys = new WeakMap<object, readonly string[]>();

  constructor(root: unknown) {
    this.#root = root;
  }

  check(schema: unknown, value: unknown, at: string, depth: number): string | undefined {
    if (schema === false) return `${at} is not allowed`;
    if (!isRecord(schema) || depth > MAX_DEPTH || !this.#affords(1)) return undefined;
    const target = typeof schema.$ref === "string" ? this.#follow(schema.$ref) : undefined;
    return (
      (target === undefined ? undefined : this.check(target, value, at, depth + 1)) ??
      checkType(schema, value, at) ??
      this.#choice(schema, value, at) ??
      this.#bounds(schema, value, at) ??
      this.#fields(schema, value, at, depth) ??
      this.#items(schema, value, at, depth) ??
      this.#combined(schema, value, at, depth)
    );
  }

  /** Whether there is still time for so much work. */
  #affords(work: number): boolean {
    this.#left -= work;
    return this.#left >= 0;
  }

  #keysOf(value: object): readonly string[] {
    const keys = this.#keys.get(value) ?? Object.keys(value);
    this.#keys.set(value, keys);
    return keys;
  }

  #choice(schema: Schema, value: unknown, at: string): string | undefined {
    const choices = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : undefined;
    if (choices === undefined || !this.#affords(choices.length)) return undefined;
    const own = this.#json(value);
    if (own === undefined) return undefined;
    for (const choice of choices) {
      const text = this.#json(choice);
      if (text === undefined || text === own) return undefined;
    }
    const shown = choices.slice(0, MAX_CHOICES_SHOWN).map((choice) => JSON.stringify(choice));
    return `${at} must be ${choices.length === 1 ? "" : "one of "}${shown.join(", ")}${choices.length > shown.length ? ", …" : ""}`;
  }

  /** A value as JSON, or undefined when that would be too much work. */
  #json(value: unknown): string | undefined {
    return this.#affords(this.#size(value, this.#left, 0)) ? JSON.stringify(value) : undefined;
  }

  /** What writing a value costs, or more than `most`. */
  #size(value: unknown, most: number, depth: number): number {
    if (typeof value === "string") return Math.ceil(value.length / CHARS_PER_UNIT);
    if (typeof value !== "object" || value === null) return 1;
    if (depth > MAX_DEPTH) return most + 1;
    let size = 1;
    for (const key of this.#keysOf(value)) {
      size += 1 + Math.ceil(key.length / CHARS_PER_UNIT);
      if (size > most) return size;
      size += this.#size((value as Schema)[key], most - size, depth + 1);
      if (size > most) return size;
    }
    return size;
  }

  #bounds(schema: Schema, value: unknown, at: string): string | undefined {
    const bounds = boundsOf(value).filter(([keyword]) => typeof schema[keyword] === "number");
    // To count the characters of a text is work.
    const isCounted = typeof value === "string" && bounds.length > 0;
    if (isCounted && !this.#affords(Math.ceil(value.length / CHARS_PER_UNIT))) return undefined;
    for (const [keyword, size, words] of bounds) {
      const bound = Number(schema[keyword]);
      if (keyword.startsWith("min") ? size() < bound : size() > bound) return `${at} must ${words} ${bound}`;
    }
    return undefined;
  }

  #fields(schema: Schema, value: unknown, at: string, depth: number): string | undefined {
    if (!isRecord(value)) return undefined;
    const properties = isRecord(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required : [];
    for (const name of required) {
      if (!this.#affords(1)) return undefined;
      if (typeof name === "string" && !Object.hasOwn(value, name)) return `${at} needs the field "${name}"`;
    }
    // What the patterns of names say is the server's to check.
    const others = isRecord(schema.patternProperties) ? undefined : schema.additionalProperties;
    if (!isRecord(schema.properties) && others !== false && !isRecord(others)) return undefined;
    for (const name of this.#keysOf(value)) {
      if (!this.#affords(1)) return undefined;
      const isKnown = Object.hasOwn(properties, name);
      if (!isKnown && others === false) {
        const known = Object.keys(properties).slice(0, MAX_CHOICES_SHOWN).join(", ");
        return `${at} must not have the field "${name}"${known === "" ? "" : ` (known fields: ${known})`}`;
      }
      const field = `${at === "the input" ? "" : `${at}.`}${name}`;
      const fault = this.check(isKnown ? properties[name] : others, value[name], field, depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #items(schema: Schema, value: unknown, at: string, depth: number): string | undefined {
    if (!Array.isArray(value)) return undefined;
    const old = Array.isArray(schema.items) ? schema.items : [];
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : old;
    const rest = Array.isArray(schema.items) ? schema.additionalItems : schema.items;
    for (const [index, item] of value.entries()) {
      if (!this.#affords(1)) return undefined;
      const fault = this.check(index < first.length ? first[index] : rest, item, `${at}[${index}]`, depth + 1);
      if (fault !== undefined) return fault;
    }
    return undefined;
  }

  #combined(schema: Schema, value: unknown, at: string, depth: number): string | undefined {
    for (const part of Array.isArray(schema.allOf) ? schema.allOf : []) {
      const fault = this.check(part, value, at, depth + 1);
      if (fault !== undefined) return fault;
    }
    // That more than one of `oneOf` fits is left to the server: it does not make a value wrong for what follows.
    for (const choices of [schema.anyOf, schema.oneOf]) {
      if (!Array.isArray(choices) || choices.length === 0) continue;
      const faults = choices.map((choice) => this.check(choice, value, at, depth + 1));
      if (!faults.includes(undefined)) return faults.length === 1 ? faults[0] : `${faults[0]} (or fit another choice)`;
    }
    return undefined;
  }

  /** What a reference within the same schema points at. Others are not followed: nothing is loaded. */
  #follow(ref: string): unknown {
    if (!ref.startsWith("#") || !this.#affords(Math.ceil(ref.length / CHARS_PER_UNIT))) return undefined;
    let at = this.#root;
    for (const part of ref.slice(1).split("/").slice(1)) {
      const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
      if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
      at = (at as Schema)[name];
    }
    return at;
  }
}

function checkType(schema: Schema, value: unknown, at: string): string | undefined {
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

/** What bounds there are for such a value, and how large it is. */
function boundsOf(value: unknown): readonly (readonly [keyword: string, size: () => number, words: string])[] {
  if (typeof value === "number") {
    const size = () => value;
    return [["minimum", size, "be at least"] as const, ["maximum", size, "be at most"] as const];
  }
  if (typeof value === "string") {
    const size = () => lengthOf(value);
    const words = "have a length of at";
    return [["minLength", size, `${words} least`] as const, ["maxLength", size, `${words} most`] as const];
  }
  if (!Array.isArray(value)) return [];
  const size = () => value.length;
  const least = ["minItems", size, "have at least this many items:"] as const;
  return [least, ["maxItems", size, "have at most this many items:"] as const];
}

/** In code points, as schemas count. */
function lengthOf(text: string): number {
  let length = text.length;
  for (let at = 0; at < text.length - 1; at++) if ((text.codePointAt(at) ?? 0) > 0xffff) length--;
  return length;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
