import { isRecord } from "../message/json.ts";

/** Schemas come from servers: one that refers to itself, or nests without end, must not either. */
const MAX_DEPTH = 64;
/** A list of a million items is looked at this far. What is behind is the server's to check. */
const MAX_CHECKS = 20_000;
/** More would not help a model to correct itself. */
const MAX_CHOICES_SHOWN = 20;

/**
 * Looks whether a JSON value fits a JSON schema of a stranger, and says in one sentence what is wrong. It knows types,
 * required and unknown fields, choices, bounds and combinations; keywords that it does not know pass, because whoever
 * wrote the schema checks again. Patterns and formats are not tried: a pattern from outside can take for ever. Never
 * throws, runs no code made from the schema, and gives up (passing) on schemas without end.
 * @returns what is wrong, or undefined
 */
export function checkSchema(schema: unknown, value: unknown, what = "the input"): string | undefined {
  return check(schema, value, what, { root: schema, left: MAX_CHECKS }, 0);
}

interface Run {
  readonly root: unknown;
  left: number;
}

function check(schema: unknown, value: unknown, at: string, run: Run, depth: number): string | undefined {
  if (schema === false) return `${at} is not allowed`;
  if (!isRecord(schema) || depth > MAX_DEPTH || --run.left < 0) return undefined;
  const target = typeof schema.$ref === "string" ? follow(run.root, schema.$ref) : undefined;
  return (
    (target === undefined ? undefined : check(target, value, at, run, depth + 1)) ??
    checkType(schema, value, at) ??
    checkChoice(schema, value, at) ??
    checkBounds(schema, value, at) ??
    checkFields(schema, value, at, run, depth) ??
    checkItems(schema, value, at, run, depth) ??
    checkCombined(schema, value, at, run, depth)
  );
}

function checkType(schema: Record<string, unknown>, value: unknown, at: string): string | undefined {
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => typeof type === "string");
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

function checkChoice(schema: Record<string, unknown>, value: unknown, at: string): string | undefined {
  const choices = Array.isArray(schema.enum) ? schema.enum : "const" in schema ? [schema.const] : undefined;
  if (choices === undefined) return undefined;
  const own = JSON.stringify(value);
  if (choices.some((choice) => JSON.stringify(choice) === own)) return undefined;
  const shown = choices.slice(0, MAX_CHOICES_SHOWN).map((choice) => JSON.stringify(choice));
  return `${at} must be ${choices.length === 1 ? "" : "one of "}${shown.join(", ")}${choices.length > shown.length ? ", …" : ""}`;
}

function checkBounds(schema: Record<string, unknown>, value: unknown, at: string): string | undefined {
  const bounds: readonly [string, number | undefined, string][] =
    typeof value === "number"
      ? [
          ["minimum", value, "be at least"],
          ["maximum", value, "be at most"],
        ]
      : typeof value === "string"
        ? [
            ["minLength", lengthOf(value), "have a length of at least"],
            ["maxLength", lengthOf(value), "have a length of at most"],
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
    if (typeof name === "string" && !Object.hasOwn(value, name)) return `${at} needs the field "${name}"`;
  }
  const others = schema.additionalProperties;
  for (const [name, item] of Object.entries(value)) {
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
    if (run.left < 0) return undefined;
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
function follow(root: unknown, ref: string): unknown {
  if (!ref.startsWith("#")) return undefined;
  let at: unknown = root;
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
