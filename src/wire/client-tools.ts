import type { ClientTool } from "./frames.ts";
import { isJsonObject } from "./json.ts";

/**
 * Reads the tools that a client says it can run. Absent and null give `undefined`, which is not the same as an
 * empty list: that one clears the stored set.
 */
export function parseClientTools(value: unknown, maxName: number): readonly ClientTool[] | undefined | "malformed" {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return "malformed";
  const tools: ClientTool[] = [];
  for (const item of value as unknown[]) {
    if (!isJsonObject(item)) return "malformed";
    const { name } = item;
    const description = item.description ?? undefined;
    const parameters = item.parameters ?? undefined;
    if (typeof name !== "string" || name === "" || name.length > maxName || !name.isWellFormed()) return "malformed";
    if (description !== undefined && typeof description !== "string") return "malformed";
    if (parameters !== undefined && !isJsonObject(parameters)) return "malformed";
    tools.push({
      name,
      ...(description !== undefined && { description }),
      ...(parameters !== undefined && { parameters }),
    });
  }
  return tools;
}
