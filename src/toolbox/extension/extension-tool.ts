import type { Tool } from "ai";
import { toSchema } from "../../base/json-schema.ts";
import { PerdureError } from "../../base/error.ts";
import { isRecord } from "../../base/json.ts";
import type { Json } from "../sandbox/sandbox.ts";
import { durableTool } from "../../tool/define.ts";
import { toPlainJson } from "../../tool/plain-json.ts";
import type { ExtensionTool } from "./guest.ts";
import { type ExtensionVm, faultOf, TOOL_LIMITS } from "./vm.ts";

const MAX_OUTPUT_CHARS = 20_000;
/** Above what the guest is given, so that it is the guest's limit that speaks. */
const TIMEOUT_MS = (TOOL_LIMITS.wallMs ?? 0) * 2;

/** The AI SDK tool for a tool of an extension. What goes wrong inside is told to the model. */
export function extensionTool(extension: string, described: ExtensionTool, vm: () => ExtensionVm | undefined): Tool {
  const made: Tool<Record<string, unknown>, unknown> = {
    description: `[extension ${extension}] ${described.description}`,
    inputSchema: toSchema<Record<string, unknown>>(described.schema, {
      validate: (value) => checkArguments(described, value),
    }),
    async execute(input, { abortSignal }) {
      const guest = vm();
      if (guest === undefined) throw new PerdureError("not_found", `The extension "${extension}" is no longer loaded.`);
      const args = toPlainJson(input, "The arguments") as Json;
      const result = await guest.tool(described.name, args, abortSignal);
      if (result.status === "ok") return result.value ?? null;
      throw new PerdureError(
        "call_failed",
        `The extension "${extension}" failed in ${described.name}. ${faultOf(result)}`,
      );
    },
  };
  return durableTool(made as Tool, { timeoutMs: TIMEOUT_MS, maxOutputChars: MAX_OUTPUT_CHARS });
}

const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: (value) => Array.isArray(value),
  object: isRecord,
  null: (value) => value === null,
};

/** The first level alone: the source does with the rest what it likes, and says what it does not. */
function checkArguments(
  { name, schema }: ExtensionTool,
  value: unknown,
): { success: true; value: Record<string, unknown> } | { success: false; error: Error } {
  const fail = (text: string) => ({
    success: false as const,
    error: new PerdureError("bad_input", `${name}: ${text}`),
  });
  if (!isRecord(value)) return fail("the arguments must be an object.");
  const required = Array.isArray(schema.required) ? (schema.required as unknown[]) : [];
  const missing = required.filter((key) => value[String(key)] === undefined);
  if (missing.length > 0) return fail(`${missing.join(", ")} must be given.`);
  for (const [key, property] of Object.entries(isRecord(schema.properties) ? schema.properties : {})) {
    const given = value[key];
    const type = isRecord(property) && typeof property.type === "string" ? property.type : undefined;
    const fits = type === undefined ? undefined : TYPES[type];
    if (given !== undefined && fits?.(given) === false) return fail(`${key} must be of type ${type}.`);
  }
  return { success: true, value };
}
