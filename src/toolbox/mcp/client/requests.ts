import { isRepeatable } from "./ai-tools.ts";
import type { CatalogueTool } from "./catalogue.ts";
import type { McpConnection } from "./connection.ts";
import type { McpCallOptions, McpCallResult } from "./types.ts";

const DEFAULT_CALL_TIMEOUT_MS = 120_000;
/** However much progress a call reports, it ends then. */
const MAX_CALL_MS = 30 * 60 * 1000;

/** Calls a tool; again on a new connection if the old one was gone, and only if the server says so when it broke. */
export async function callTool(
  connection: McpConnection,
  tool: CatalogueTool,
  input: Readonly<Record<string, unknown>>,
  options: McpCallOptions,
): Promise<McpCallResult> {
  const { name } = tool;
  const { outputSchema, inputSchema } = tool;
  const definition = {
    name,
    inputSchema: { ...inputSchema, type: "object" as const },
    ...(outputSchema !== undefined && { outputSchema: { ...outputSchema, type: "object" as const } }),
  };
  const request = { ...requestOptions(connection, options), toolDefinition: definition };
  const result = await connection.use((client) => client.callTool({ name, arguments: { ...input } }, request), {
    safe: isRepeatable(tool),
  });
  const { content, structuredContent, isError } = result;
  return {
    content,
    ...(structuredContent !== undefined && { structuredContent }),
    ...(isError === true && { isError }),
  };
}

/** What a request of a server is made with. */
export function requestOptions({ record }: McpConnection, { signal, timeoutMs }: McpCallOptions) {
  return {
    timeout: timeoutMs ?? record.options.callTimeoutMs ?? DEFAULT_CALL_TIMEOUT_MS,
    maxTotalTimeout: Math.max(MAX_CALL_MS, timeoutMs ?? 0),
    resetTimeoutOnProgress: true,
    // Asks for news, without which a long call cannot be told from a dead one.
    onprogress: () => {},
    ...(signal !== undefined && { signal }),
  };
}
