import type { CallToolResult, JsonSchemaValidator, McpServerFactory } from "@modelcontextprotocol/server";
import type { Tool } from "ai";
import { loadAiSdk } from "../../../base/ai-sdk.ts";
import { errorText, PerdureError } from "../../../base/error.ts";
import { newId } from "../../../base/id.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { isRecord } from "../../../base/json.ts";
import { toolOptionsOf } from "../../../tool/define.ts";
import { toPlainJson } from "../../../tool/plain-json.ts";
import { withoutTurn } from "../../../tool/runner.ts";
import { checkSchema } from "../check-schema.ts";
import { loadServerSdk, type ServerSdk } from "../load-sdk.ts";

/** A method of an agent as a tool. */
export interface McpMethod {
  readonly description?: string;
  /** The JSON schema of the tool's input, an object. Default: `{ args: [...] }`. */
  readonly inputSchema?: Readonly<Record<string, unknown>>;
  /** The method's arguments from the tool's input. Default: `input.args`, or the input itself if there is a schema. */
  readonly args?: (input: Readonly<Record<string, unknown>>) => readonly unknown[];
  /** It changes nothing. */
  readonly readOnly?: boolean;
}

/** What an agent shows as an MCP server. Nothing is shown that is not named here. */
export interface AgentMcpServerOptions {
  readonly name?: string;
  readonly version?: string;
  /** How the server is used, for the models of its clients. */
  readonly instructions?: string;
  /** AI SDK tools, by name. A call that needs a person's approval is refused: there is nobody to ask. */
  readonly tools?: Readonly<Record<string, Tool>> | (() => Readonly<Record<string, Tool>>);
  /** Methods, by name; or `callable` for all that clients of the agent may call, except those that stream. */
  readonly methods?: "callable" | Readonly<Record<string, McpMethod>>;
}

const agentMcpServerOptionsNames = namesOf<AgentMcpServerOptions>()("name version instructions tools methods");

const anyArgs = {
  type: "object",
  properties: { args: { type: "array", description: "The arguments of the method, in order.", items: {} } },
  additionalProperties: false,
};

const unasked = (name: string) => `"${name}" needs a person's approval, and nobody can be asked here.`;

type Part = CallToolResult["content"][number];

/**
 * A factory of MCP servers from an agent (or a stub): its tools and methods are the server's tools. Outputs and times are bounded
 * as for the agent's own model; errors are results that a model can read.
 * @throws PerdureError `bad_config` when two things have one name, or a method is not there (when the server is made)
 */
export function agentMcpServer(agent: object, options: AgentMcpServerOptions): McpServerFactory {
  refuseUnknown(options, agentMcpServerOptionsNames, "agentMcpServer()");
  return async () => {
    const sdk = await loadServerSdk();
    const { name = "perdure", version = "1.0.0", instructions, tools = {} } = options;
    const server = new sdk.McpServer({ name, version }, instructions === undefined ? {} : { instructions });
    const entries = [
      ...Object.entries(typeof tools === "function" ? tools() : tools).map(([key, tool]) => fromTool(sdk, key, tool)),
      ...Object.entries(methodsOf(agent, options.methods)).map(([key, method]) => fromMethod(sdk, agent, key, method)),
    ];
    const seen = new Set<string>();
    for (const entry of await Promise.all(entries)) {
      if (seen.has(entry.name)) throw new PerdureError("bad_config", `Two MCP tools are called "${entry.name}".`);
      seen.add(entry.name);
      server.registerTool(entry.name, entry.config, async (input, context) => entry.run(input, context.mcpReq.signal));
    }
    return server;
  };
}

async function fromTool(sdk: ServerSdk, name: string, tool: Tool) {
  const { replay } = toolOptionsOf(tool);
  const { asSchema } = await loadAiSdk();
  const schema = await asSchema(tool.inputSchema).jsonSchema;
  const { description } = tool;
  return {
    name,
    config: {
      ...(typeof description === "string" && { description }),
      // The tool checks its input itself.
      inputSchema: anyInput(sdk, schema as Record<string, unknown>),
      ...(replay === "safe" && { annotations: { idempotentHint: true } }),
    },
    run: async (input: unknown, abortSignal: AbortSignal): Promise<CallToolResult> => {
      const toolCallId = newId("mcp");
      const outer = { toolCallId, name: "a call over MCP", idempotencyKey: toolCallId };
      const turn = withoutTurn(unasked, { abortSignal }).nested(outer, []);
      const outcome = await turn.runNested({ toolName: name, tool, input, index: 0 });
      if (outcome.kind === "output") return toResult(tool, toolCallId, input, outcome.output);
      return failed(outcome.kind === "error" ? outcome.errorText : "Stopped.");
    },
  };
}

async function fromMethod(sdk: ServerSdk, agent: object, name: string, method: McpMethod) {
  const { description, inputSchema = anyArgs, readOnly, args } = method;
  const target: unknown = Reflect.get(agent, name);
  if (typeof target !== "function")
    throw new PerdureError("bad_config", `The agent has no method "${name}" to show over MCP.`);
  return {
    name,
    config: {
      ...(description !== undefined && { description }),
      inputSchema: anyInput(sdk, { type: "object", ...inputSchema }),
      ...(readOnly === true && { annotations: { readOnlyHint: true } }),
    },
    run: async (input: unknown): Promise<CallToolResult> => {
      const given = isRecord(input) ? input : {};
      const fault = checkSchema(inputSchema, given);
      if (fault !== undefined) return failed(`${fault}. Correct it and call the tool again.`);
      const listed = Array.isArray(given.args) ? given.args : [];
      const handed = args?.(given) ?? (method.inputSchema === undefined ? listed : [given]);
      try {
        return await toResult(undefined, "", given, await Reflect.apply(target, agent, [...handed]));
      } catch (thrown) {
        return failed(errorText(thrown));
      }
    },
  };
}

function methodsOf(agent: object, methods: AgentMcpServerOptions["methods"]): Readonly<Record<string, McpMethod>> {
  if (methods !== "callable") return methods ?? {};
  const list: unknown = Reflect.get(agent, "getCallableMethods");
  if (typeof list !== "function") {
    throw new PerdureError(
      "bad_config",
      'methods: "callable" needs the agent itself, not a stub of it. Name the methods.',
    );
  }
  const callables = Reflect.apply(list, agent, []) as Map<string, { streaming?: boolean; description?: string }>;
  const shown = [...callables].filter(([, { streaming }]) => streaming !== true);
  return Object.fromEntries(
    shown.map(([name, { description }]) => [name, description === undefined ? {} : { description }]),
  );
}

/** A schema that clients are shown and everything fits. */
function anyInput(sdk: ServerSdk, schema: Record<string, unknown>) {
  return sdk.fromJsonSchema<Record<string, unknown>>(schema, {
    getValidator:
      <T>(): JsonSchemaValidator<T> =>
      (input) => ({ valid: true, data: input as T, errorMessage: undefined }),
  });
}

function failed(text: string): CallToolResult {
  return { content: [{ type: "text", text }], isError: true };
}

/** An output as an MCP client reads it: what the tool shows to models, or the value itself. */
async function toResult(
  tool: Tool | undefined,
  toolCallId: string,
  input: unknown,
  output: unknown,
): Promise<CallToolResult> {
  if (tool?.toModelOutput !== undefined) {
    const shown = await tool.toModelOutput({ toolCallId, input: input as never, output: output as never });
    switch (shown.type) {
      case "text":
        return { content: [text(shown.value)] };
      case "error-text":
        return { content: [text(shown.value)], isError: true };
      case "error-json":
        return { content: [text(JSON.stringify(shown.value))], isError: true };
      case "content":
        return { content: shown.value.map((part) => partOf(part)) };
      default:
        break;
    }
  }
  const value = toPlainJson(output, "The output");
  if (typeof value === "string") return { content: [text(value)] };
  const json = text(JSON.stringify(value ?? null));
  return isRecord(value) ? { content: [json], structuredContent: value } : { content: [json] };
}

/** Pictures stay pictures; what has no counterpart is named. */
function partOf(part: Readonly<Record<string, unknown>>): Part {
  if (part.type === "text" && typeof part.text === "string") return text(part.text);
  const { mediaType } = part;
  const data = isRecord(part.data) ? part.data.data : part.data;
  if (typeof data === "string" && typeof mediaType === "string" && mediaType.startsWith("image/")) {
    return { type: "image", data, mimeType: mediaType };
  }
  return text(`[${[part.type, mediaType].filter((fact) => typeof fact === "string").join(", ")}]`);
}

function text(value: string): Part {
  return { type: "text", text: value };
}
