import { isRecord } from "../../../base/json.ts";

const DEEPEST = 5;
const MOST_FIELDS = 40;
const MOST_CHOICES = 24;
const LONGEST_COMMENT = 160;
/** Schemas that are read for one type. References make a short schema a large one: each level multiplies. */
const MOST_SCHEMAS = 2_000;
const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** A JSON schema as a one-line TypeScript type for a model: short, `unknown` where it says nothing or goes deep. Never throws. */
export function typeText(schema: unknown): string {
  return typeOf(schema, { root: schema, depth: 0, refs: [], left: { schemas: MOST_SCHEMAS } });
}

/** A text that can stand in a comment: one line, not too long, and unable to end the comment. */
export function commentText(text: unknown, most = LONGEST_COMMENT): string {
  if (typeof text !== "string") return "";
  const line = text.replace(/\s+/g, " ").replaceAll("*/", "* /").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** A name as the key of an object. */
export function keyText(name: string): string {
  return IDENTIFIER.test(name) ? name : JSON.stringify(name);
}

interface Position {
  readonly root: unknown;
  readonly depth: number;
  /** The references that led here. */
  readonly refs: readonly string[];
  /** Shared by all positions of one schema. */
  readonly left: { schemas: number };
}

function typeOf(schema: unknown, position: Position): string {
  if (!isRecord(schema)) return schema === false ? "never" : "unknown";
  if (position.depth > DEEPEST || --position.left.schemas < 0) return "unknown";
  const inside: Position = { ...position, depth: position.depth + 1 };
  if (typeof schema.$ref === "string") return referred(schema.$ref, inside);
  if ("const" in schema) return literal(schema.const);
  if (Array.isArray(schema.enum)) return choices(schema.enum.map(literal));
  for (const key of ["anyOf", "oneOf"]) {
    const list = schema[key];
    if (Array.isArray(list)) return choices(list.map((one: unknown) => typeOf(one, inside)));
  }
  if (Array.isArray(schema.allOf)) {
    return [...new Set(schema.allOf.map((one: unknown) => grouped(typeOf(one, inside))))].join(" & ") || "unknown";
  }
  if (Array.isArray(schema.type)) {
    return choices(schema.type.map((type: unknown) => typeOf({ ...schema, type }, position)));
  }
  switch (schema.type) {
    case "string":
    case "boolean":
    case "number":
    case "null":
      return schema.type;
    case "integer":
      return "number";
    case "array":
      return listText(schema, inside);
    case "object":
      return objectText(schema, inside);
    default:
      return isRecord(schema.properties) ? objectText(schema, inside) : "unknown";
  }
}

function referred(ref: string, position: Position): string {
  if (!ref.startsWith("#/") || position.refs.includes(ref)) return "unknown";
  let found: unknown = position.root;
  for (const step of ref.slice(2).split("/")) {
    const key = decodeStep(step);
    found = isRecord(found) && Object.hasOwn(found, key) ? found[key] : undefined;
  }
  return typeOf(found, { ...position, refs: [...position.refs, ref] });
}

function decodeStep(step: string): string {
  return step.replaceAll("~1", "/").replaceAll("~0", "~");
}

function listText(schema: Record<string, unknown>, position: Position): string {
  const tuple = Array.isArray(schema.prefixItems) ? schema.prefixItems : schema.items;
  if (Array.isArray(tuple)) return `[${tuple.map((one: unknown) => typeOf(one, position)).join(", ")}]`;
  return `${grouped(typeOf(schema.items, position))}[]`;
}

function objectText(schema: Record<string, unknown>, position: Position): string {
  const { properties, additionalProperties } = schema;
  const fields = isRecord(properties) ? Object.entries(properties) : [];
  if (fields.length === 0) {
    return isRecord(additionalProperties) ? `Record<string, ${typeOf(additionalProperties, position)}>` : "{}";
  }
  const required = new Set(Array.isArray(schema.required) ? (schema.required as unknown[]) : []);
  const shown = fields.slice(0, MOST_FIELDS).map(([name, field]) => {
    const comment = isRecord(field) ? commentText(field.description) : "";
    const optional = required.has(name) ? "" : "?";
    return `${keyText(name)}${optional}: ${typeOf(field, position)}${comment === "" ? "" : ` /* ${comment} */`}`;
  });
  if (fields.length > MOST_FIELDS) shown.push(`/* ${fields.length - MOST_FIELDS} more */`);
  return `{ ${shown.join("; ")} }`;
}

function choices(texts: readonly string[]): string {
  const different = [...new Set(texts)];
  if (different.length === 0 || different.includes("unknown")) return "unknown";
  const shown = different.slice(0, MOST_CHOICES);
  if (different.length > MOST_CHOICES) shown.push(`/* ${different.length - MOST_CHOICES} more */ string`);
  return shown.join(" | ");
}

function grouped(text: string): string {
  return / [|&] /.test(text) && !text.startsWith("{") ? `(${text})` : text;
}

function literal(value: unknown): string {
  const text = JSON.stringify(value) ?? "unknown";
  return text.length > LONGEST_COMMENT ? "unknown" : text;
}
