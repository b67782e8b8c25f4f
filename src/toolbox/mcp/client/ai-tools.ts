import { jsonSchema, type Schema, type Tool } from "ai";
import { withOrigin } from "../../../context/capabilities.ts";
import { PerdureError } from "../../../base/error.ts";
import { durableTool } from "../../../tool/define.ts";
import { checkSchema } from "../check-schema.ts";
import type { CatalogueTool } from "./catalogue.ts";
import { nameTool } from "./tool-name.ts";
import { textOf, toModelOutput } from "./tool-output.ts";
import type { McpCallOptions, McpCallResult } from "./types.ts";

/** Runs a tool of a server. */
export type RunTool = (tool: CatalogueTool, input: unknown, options: McpCallOptions) => Promise<McpCallResult>;

/** One server and its tools. */
export interface ToolSource {
  readonly serverId: string;
  readonly serverName: string;
  readonly tools: readonly CatalogueTool[];
  readonly run: RunTool;
}

/** A catalogue that stays the same is not converted again. */
const converted = new WeakMap<CatalogueTool, Schema<Record<string, unknown>>>();

/**
 * AI SDK tools for the tools of servers. New objects each time; the schemas are kept as long as the catalogue is. Always in
 * the same order, whichever server was added or answered first: a request that begins otherwise is read anew by its model.
 * @param ids of all servers that the agent has, also of those that cannot be used now
 */
export function aiToolsOf(sources: readonly ToolSource[], ids: readonly string[] = []): Record<string, Tool> {
  const tools: Record<string, Tool> = {};
  const taken = new Set<string>();
  for (const { serverId, serverName, tools: list, run } of sorted(sources, (source) => source.serverId)) {
    for (const tool of sorted(list, (one) => one.name))
      tools[nameTool(serverId, tool.name, taken, ids)] = withOrigin(aiTool(tool, serverName, run), {
        kind: "mcp",
        name: serverName,
      });
  }
  return tools;
}

function sorted<T>(items: readonly T[], by: (item: T) => string): T[] {
  return items.toSorted((a, b) => (by(a) < by(b) ? -1 : 1));
}

/** Whether the server says that running a tool twice does what running it once does. */
export function isRepeatable({ annotations }: CatalogueTool): boolean {
  return annotations?.readOnlyHint === true || annotations?.idempotentHint === true;
}

function aiTool(tool: CatalogueTool, serverName: string, run: RunTool): Tool {
  const made: Tool<Record<string, unknown>, McpCallResult> = {
    type: "dynamic",
    description: tool.description ?? tool.title ?? `The tool "${tool.name}" of ${serverName}.`,
    inputSchema: schemaOf(tool),
    async execute(input, { abortSignal }) {
      const result = await run(tool, input, abortSignal === undefined ? {} : { signal: abortSignal });
      if (result.isError === true) {
        throw new PerdureError("call_failed", textOf(result) || `The tool "${tool.name}" failed and did not say why.`);
      }
      return result;
    },
    toModelOutput: ({ output }) => toModelOutput(output),
  };
  return durableTool(made as Tool, { replay: isRepeatable(tool) ? "safe" : "never" });
}

function schemaOf(tool: CatalogueTool): Schema<Record<string, unknown>> {
  const kept = converted.get(tool);
  if (kept !== undefined) return kept;
  const { inputSchema } = tool;
  const made = jsonSchema<Record<string, unknown>>(inputSchema, {
    validate: (value) => {
      const fault = checkSchema(inputSchema, value);
      if (fault === undefined) return { success: true, value: value as Record<string, unknown> };
      return { success: false, error: new PerdureError("bad_input", `${fault}. Correct it and call the tool again.`) };
    },
  });
  converted.set(tool, made);
  return made;
}
