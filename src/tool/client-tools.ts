import type { Tool } from "ai";
import { toSchema } from "../base/json-schema.ts";
import type { ClientTool } from "../wire/frames.ts";

/** Runs a client's tool on its behalf, where the client is another server. */
type ClientToolExecutor = (call: { toolName: string; toolCallId: string; input: unknown }) => unknown;

/**
 * AI SDK tools for what a client can run. Without `execute`: the call goes to the client, and the turn resumes with its answer.
 * With an `executor` they run here.
 */
export function createToolsFromClientSchemas(
  clientTools: readonly ClientTool[] | undefined,
  executor?: ClientToolExecutor,
): Record<string, Tool> {
  const tools: Record<string, Tool> = {};
  for (const { name, description, parameters } of clientTools ?? []) {
    const schema = { description, inputSchema: toSchema<unknown>(parameters ?? { type: "object" }) };
    const value: Tool =
      executor === undefined
        ? { ...schema, outputSchema: toSchema<unknown>({}) }
        : {
            ...schema,
            execute: async (input: unknown, { toolCallId }) => executor({ toolName: name, toolCallId, input }),
          };
    // defineProperty: a tool called __proto__ must stay a tool.
    Object.defineProperty(tools, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return tools;
}
