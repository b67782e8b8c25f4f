import type { ClientTool } from "./frames.ts";
import { isRecord } from "../base/json.ts";
import { isId } from "./id.ts";

/** The most tools that a client may say it has. */
const MAX_CLIENT_TOOLS = 500;
/** The longest JSON of all of them, in UTF-16 units: it is stored with every turn, and sent to the model. */
const MAX_CLIENT_TOOLS_LENGTH = 1024 * 1024;

/** Reads the tools that a client can run. Absent and null give `undefined`; an empty list instead clears the stored set. */
export function parseClientTools(value: unknown): readonly ClientTool[] | undefined | "malformed" | "too many" {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return "malformed";
  if (value.length > MAX_CLIENT_TOOLS) return "too many";
  const tools: ClientTool[] = [];
  for (const item of value as unknown[]) {
    if (!isRecord(item)) return "malformed";
    const { name } = item;
    const description = item.description ?? undefined;
    const parameters = item.parameters ?? undefined;
    if (!isId(name)) return "malformed";
    if (description !== undefined && typeof description !== "string") return "malformed";
    if (parameters !== undefined && !isRecord(parameters)) return "malformed";
    tools.push({ name, description, parameters });
  }
  return JSON.stringify(tools).length > MAX_CLIENT_TOOLS_LENGTH ? "too many" : tools;
}

/** What is wrong with a client's tools, in words that go on a sentence. */
export function clientToolsProblem(problem: "malformed" | "too many"): string {
  return problem === "malformed"
    ? "is malformed: it must be a list of { name, description?, parameters? }"
    : `holds more than ${MAX_CLIENT_TOOLS} tools, or more than ${MAX_CLIENT_TOOLS_LENGTH} characters of them`;
}
