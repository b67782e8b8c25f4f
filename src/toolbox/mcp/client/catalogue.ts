import { isRecord } from "../../../base/json.ts";

/** Limits of what a server may put before a model, and before every client that connects. */
export const MAX_TOOLS = 512;
const MAX_OTHERS = 1_000;
const MAX_NAME = 128;
const MAX_URI = 2_000;
const MAX_DESCRIPTION = 4_000;
const MAX_SCHEMA_CHARS = 32_000;
const MAX_SCHEMA_DEPTH = 32;
/** All tools of a server together. */
const MAX_CATALOGUE_CHARS = 1_000_000;
/** All prompts, or resources, or templates of a server together: every client is sent them. */
const MAX_OTHERS_CHARS = 500_000;
const MAX_CAPABILITIES_CHARS = 8_000;
const MAX_WARNINGS = 20;
const MAX_INSTRUCTIONS = 8_000;

/** What a server offers, without the parts that no model and no client should have to carry. */
export interface Catalogue {
  readonly tools: readonly CatalogueTool[];
  readonly prompts: readonly Described[];
  readonly resources: readonly Described[];
  readonly resourceTemplates: readonly Described[];
  /** What was left out, and why. */
  readonly warnings: readonly string[];
}

/** A tool of a catalogue. */
export interface CatalogueTool extends Described {
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly outputSchema?: Readonly<Record<string, unknown>>;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

/** Anything that a server lists. */
interface Described {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly [field: string]: unknown;
}

export const EMPTY_CATALOGUE: Catalogue = {
  tools: [],
  prompts: [],
  resources: [],
  resourceTemplates: [],
  warnings: [],
};

/** One list of a catalogue. */
interface Listed<T> {
  readonly items: readonly T[];
  readonly warnings: readonly string[];
}

/** Tools that can be shown: named once, described in bounds, with schemas that a model can read. Never throws. */
export function boundTools(tools: readonly unknown[]): Listed<CatalogueTool> {
  const found = new Map<string, CatalogueTool>();
  const warnings = new Warnings();
  let room = MAX_CATALOGUE_CHARS;
  for (const tool of tools) {
    const base = describe(tool);
    if (base === undefined || !isRecord(tool)) {
      warnings.add("A tool without a name was left out.");
      continue;
    }
    const fault = found.has(base.name)
      ? "its name is there twice; the first one counts"
      : found.size >= MAX_TOOLS
        ? `more than ${MAX_TOOLS} tools`
        : schemaFault(tool.inputSchema);
    if (fault !== undefined) {
      warnings.add(`The tool "${base.name}" was left out: ${fault}.`);
      continue;
    }
    const inputSchema = { type: "object", ...(tool.inputSchema as Record<string, unknown>) };
    const bounded: CatalogueTool = {
      ...base,
      inputSchema,
      ...(isRecord(tool.outputSchema) &&
        schemaFault(tool.outputSchema) === undefined && { outputSchema: tool.outputSchema }),
      ...(isRecord(tool.annotations) && { annotations: hintsOf(tool.annotations) }),
    };
    room -= JSON.stringify(bounded).length;
    if (room < 0) {
      warnings.add(
        `The tool "${base.name}" and what follows were left out: the server's tools are too large together.`,
      );
      break;
    }
    found.set(base.name, bounded);
  }
  return { items: [...found.values()], warnings: warnings.list };
}

/** Prompts, resources or templates in bounds. `key`: what each must have, and have once. Never throws. */
export function boundOthers(items: readonly unknown[], key: "name" | "uri" | "uriTemplate"): Listed<Described> {
  const found = new Map<string, Described>();
  const warnings = new Warnings();
  let room = MAX_OTHERS_CHARS;
  for (const item of items) {
    const id = isRecord(item) ? item[key] : undefined;
    const base = describe(isRecord(item) && typeof item.name !== "string" ? { ...item, name: id } : item);
    if (base === undefined || !isRecord(item) || typeof id !== "string" || id.length > MAX_URI || found.has(id)) {
      warnings.add(`Something without a usable ${key}, or with one that was there before, was left out.`);
      continue;
    }
    if (found.size >= MAX_OTHERS) {
      warnings.add(`Only the first ${MAX_OTHERS} of what has a ${key} are kept.`);
      break;
    }
    const bounded = {
      ...base,
      [key]: id,
      ...(typeof item.mimeType === "string" && { mimeType: item.mimeType.slice(0, MAX_NAME) }),
      ...(Array.isArray(item.arguments) && { arguments: argumentsOf(item.arguments) }),
    };
    room -= JSON.stringify(bounded).length;
    if (room < 0) {
      warnings.add(`What follows "${base.name}" was left out: what has a ${key} is too large together.`);
      break;
    }
    found.set(id, bounded);
  }
  return { items: [...found.values()], warnings: warnings.list };
}

/** What a server says that it can do: as it is, or only the names when it says too much. */
export function boundCapabilities(given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (JSON.stringify(given).length <= MAX_CAPABILITIES_CHARS) return { ...given };
  const names = ["tools", "prompts", "resources", "logging", "completions", "tasks"].filter((name) =>
    Object.hasOwn(given, name),
  );
  return Object.fromEntries(names.map((name) => [name, {}]));
}

/** The server's own words on how it is used. */
export function boundInstructions(text: string | undefined): string | null {
  return text === undefined || text === "" ? null : plain(text, MAX_INSTRUCTIONS);
}

function describe(item: unknown): Described | undefined {
  if (!isRecord(item) || typeof item.name !== "string" || item.name === "" || item.name.length > MAX_NAME)
    return undefined;
  return {
    name: plain(item.name, MAX_NAME),
    ...(typeof item.title === "string" && { title: plain(item.title, MAX_NAME) }),
    ...(typeof item.description === "string" && { description: plain(item.description, MAX_DESCRIPTION) }),
  };
}

function schemaFault(schema: unknown): string | undefined {
  if (schema === undefined || schema === null) return "it has no schema";
  if (!isRecord(schema)) return "its schema is not an object";
  if (schema.type !== undefined && schema.type !== "object") return "its schema does not describe an object";
  if (depthOf(schema, 0) > MAX_SCHEMA_DEPTH) return "its schema is too deep";
  const { length } = JSON.stringify(schema);
  return length > MAX_SCHEMA_CHARS ? `its schema has ${length} characters; at most ${MAX_SCHEMA_CHARS}` : undefined;
}

function depthOf(value: unknown, depth: number): number {
  if (typeof value !== "object" || value === null || depth > MAX_SCHEMA_DEPTH) return depth;
  let deepest = depth;
  for (const item of Object.values(value)) deepest = Math.max(deepest, depthOf(item, depth + 1));
  return deepest;
}

function hintsOf(annotations: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const hints = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"].flatMap((name) =>
    typeof annotations[name] === "boolean" ? [[name, annotations[name]] as const] : [],
  );
  const title = typeof annotations.title === "string" ? { title: plain(annotations.title, MAX_NAME) } : {};
  return { ...title, ...Object.fromEntries(hints) };
}

function argumentsOf(list: readonly unknown[]): Described[] {
  return list.slice(0, MAX_OTHERS).flatMap((item) => {
    const base = describe(item);
    return base === undefined ? [] : [{ ...base, ...(isRecord(item) && item.required === true && { required: true }) }];
  });
}

/** Texts of a server go before models and people: no control characters, no end of words in the middle of a pair. */
function plain(text: string, max: number): string {
  const clean = text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu, (one) => (one === "\n" || one === "\t" ? one : " "));
  return clean.length <= max ? clean : `${clean.slice(0, max - 1).toWellFormed()}…`;
}

class Warnings {
  readonly list: string[] = [];

  add(text: string): void {
    if (this.list.length < MAX_WARNINGS) this.list.push(text);
    else if (this.list.length === MAX_WARNINGS) this.list.push("More was left out.");
  }
}
