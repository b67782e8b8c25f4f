import { PerdureError } from "../../base/error.ts";
import { firstChars } from "../../message/cut-value.ts";
import { isRecord } from "../../base/json.ts";
import { EXTENSION_HOOKS, type ExtensionHook, type ExtensionManifest } from "./manifest.ts";

/** More than this of source is no extension but a program. */
const MAX_SOURCE_CHARS = 256_000;
/** Each tool costs room in every prompt. */
const MAX_TOOLS = 32;
/** Providers take no longer names. */
const MAX_TOOL_NAME_CHARS = 64;
const MAX_DESCRIPTION_CHARS = 500;
const MAX_SCHEMA_CHARS = 8_000;
const TOOL_NAME = /^[A-Za-z0-9_]+$/;

/** The namespace of the host's functions, inside of the guest. */
export const BRIDGE = "__bridge";
/** The functions of the guest that the host calls. */
export const CALL_TOOL = "callTool";
export const CALL_HOOK = "callHook";

/** A tool as its source describes it. */
export interface ExtensionTool {
  /** As the source calls it. */
  readonly name: string;
  readonly description: string;
  /** JSON schema of an object. */
  readonly schema: Record<string, unknown>;
}

/** What came out of a source that has run. */
export interface Described {
  readonly tools: readonly ExtensionTool[];
  /** Hooks that the source has and the manifest subscribes to. */
  readonly hooks: readonly ExtensionHook[];
}

/**
 * A guest's program. All of it belongs to the extension: the host checks each call again. The source stands first, so that error
 * lines match it.
 */
export function guestProgram(source: string, functions: readonly string[]): string {
  const expression = source
    .trim()
    .replace(/^export\s+default\s+/, "")
    .replace(/[;\s]+$/, "");
  return `const __extension = (${expression}
);
const __host = ${functions.length === 0 ? "null" : "{}"};
for (const name of ${JSON.stringify(functions)}) __host[name] = (...args) => ${BRIDGE}[name](args);
if (__host !== null && typeof fetch === "function") __host.fetch = fetch;
if (__extension === null || typeof __extension !== "object") throw new TypeError("The source must be one object: ({ tools: { … } }).");
const __own = (from, name) => (Object.prototype.hasOwnProperty.call(Object(from), name) ? from[name] : undefined);
const __tools = Object(__extension.tools);
const __hooks = Object(__extension.hooks);
return {
  tools: Object.keys(__tools).map((name) => {
    const { description, parameters, required, execute } = Object(__tools[name]);
    return { name, description, parameters, required, runs: typeof execute === "function" };
  }),
  hooks: Object.keys(__hooks).filter((name) => typeof __hooks[name] === "function"),
  ${CALL_TOOL}: (name, args) => __own(__tools, name).execute(args, __host),
  ${CALL_HOOK}: async (name, snapshot) => {
    const hook = __own(__hooks, name);
    if (name !== "onChunk") return hook.call(__hooks, snapshot, __host);
    for (const chunk of snapshot.chunks) await hook.call(__hooks, chunk, __host);
  },
};`;
}

/**
 * Reads what the program of a guest returned, as if it came from the network.
 * @throws PerdureError `bad_input` that says what to change in the source
 */
export function readDescription(manifest: ExtensionManifest, value: unknown): Described {
  const { tools, hooks } = isRecord(value) ? value : {};
  const given: unknown[] = Array.isArray(tools) ? tools : [];
  const has = Array.isArray(hooks) ? hooks : [];
  if (given.length > MAX_TOOLS) throw fault(`has ${given.length} tools; ${MAX_TOOLS} are allowed`);
  const wanted = manifest.hooks ?? [];
  const missing = wanted.filter((hook) => !has.includes(hook));
  if (missing.length > 0) throw fault(`has no ${missing.join(", ")} in hooks, but its manifest subscribes to it`);
  const unsaid = EXTENSION_HOOKS.filter((hook) => has.includes(hook) && !wanted.includes(hook));
  if (unsaid.length > 0) throw fault(`has the hooks ${unsaid.join(", ")}; list them in hooks of the manifest`);
  if (given.length === 0 && wanted.length === 0) throw fault("has neither tools nor hooks. Write ({ tools: { … } })");
  return { tools: given.map((tool) => readTool(manifest.name, tool)), hooks: [...wanted] };
}

function readTool(extension: string, given: unknown): ExtensionTool {
  const { name, description, parameters, required, runs } = isRecord(given) ? given : {};
  const called = typeof name === "string" ? JSON.stringify(firstChars(name, MAX_TOOL_NAME_CHARS)) : "of no name";
  if (typeof name !== "string" || !TOOL_NAME.test(name)) {
    throw fault(`has a tool ${called}; names of tools have letters, digits and _ alone`);
  }
  const whole = toolNameOf(extension, name);
  if (whole.length > MAX_TOOL_NAME_CHARS) {
    throw fault(
      `has a tool ${called}; with the name of the extension that is more than ${MAX_TOOL_NAME_CHARS} characters`,
    );
  }
  if (runs !== true) throw fault(`has a tool ${called} without execute: async (args, host) => …`);
  if (typeof description !== "string" || description.trim() === "")
    throw fault(`has a tool ${called} without description`);
  return { name, description: plainText(description), schema: readSchema(called, parameters, required) };
}

function readSchema(tool: string, parameters: unknown, required: unknown): Record<string, unknown> {
  const given = parameters ?? {};
  if (!isRecord(given)) throw fault(`has a tool ${tool} whose parameters are no object of JSON schemas`);
  const isWhole = given.type === "object" && isRecord(given.properties);
  const properties = isWhole ? given.properties : given;
  const needed: unknown = required ?? (isWhole ? given.required : undefined) ?? [];
  if (!Object.values(properties as object).every(isRecord)) {
    throw fault(`has a tool ${tool} whose parameters are not all JSON schemas, such as { city: { type: "string" } }`);
  }
  if (
    !Array.isArray(needed) ||
    !needed.every((key) => typeof key === "string" && Object.hasOwn(properties as object, key))
  ) {
    throw fault(`has a tool ${tool} whose required names what is not in parameters`);
  }
  const schema = { type: "object", properties, ...(needed.length > 0 && { required: needed }) };
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS) {
    throw fault(`has a tool ${tool} whose parameters are more than ${MAX_SCHEMA_CHARS} characters as JSON`);
  }
  return schema;
}

/** @throws PerdureError `bad_input`, `limit` */
export function checkSource(source: unknown): void {
  if (typeof source !== "string" || source.trim() === "") {
    throw new PerdureError("bad_input", "The source must be one expression, such as ({ tools: { … } }).");
  }
  if (source.length > MAX_SOURCE_CHARS) {
    throw new PerdureError("limit", `The source has ${source.length} characters; the limit is ${MAX_SOURCE_CHARS}.`);
  }
}

/** What is in front of the names of an extension's tools and context blocks. */
export function prefixOf(extension: string): string {
  return extension.replace(/-/g, "_");
}

/** The name that the model calls a tool by. */
export function toolNameOf(extension: string, tool: string): string {
  return `${prefixOf(extension)}_${tool}`;
}

/** Goes into prompts: no more than it may be, and on one line. */
function plainText(text: string): string {
  const line = oneLine(text);
  return line.length <= MAX_DESCRIPTION_CHARS ? line : `${firstChars(line, MAX_DESCRIPTION_CHARS - 1)}…`;
}

/** A text without what could end its line, or hide in it. */
export function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ").trim();
}

function fault(text: string): PerdureError {
  return new PerdureError("bad_input", `The source ${text}.`);
}
