import { asSchema, type Tool } from "ai";
import { isRecord } from "../../../base/json.ts";
import { commentText, keyText, typeText } from "./type-text.ts";

/** A tool that code can call, as the model reads about it. */
export interface CatalogEntry {
  readonly name: string;
  readonly summary: string;
  /** One member of a TypeScript type, with a comment in front. */
  readonly declaration: string;
}

const LONGEST_SUMMARY = 300;
const LONGEST_DECLARATION = 4_000;
const MOST_FOUND = 10;
/** How much of the room goes to names when not all declarations fit. */
const SHARE_OF_NAMES = 0.25;

/** What can be said about tools. A schema that is still loading, or cannot be read, is `object`. Never throws. */
export function catalogOf(tools: Readonly<Record<string, Tool>>): CatalogEntry[] {
  return Object.entries(tools)
    .filter(([, tool]) => typeof tool.execute === "function")
    .map(([name, tool]) => entryOf(name, tool));
}

function entryOf(name: string, tool: Tool): CatalogEntry {
  const summary = commentText(typeof tool.description === "string" ? tool.description : "", LONGEST_SUMMARY);
  const input = schemaText(tool.inputSchema, "object");
  const output = schemaText((tool as { outputSchema?: unknown }).outputSchema, "unknown");
  const args = input === "{}" ? "args?: {}" : `args: ${input}`;
  const head = summary === "" ? "" : `  /** ${summary} */\n`;
  const full = `${head}  ${keyText(name)}(${args}): Promise<${output}>;`;
  const declaration =
    full.length <= LONGEST_DECLARATION ? full : `${head}  ${keyText(name)}(args: object): Promise<unknown>;`;
  return { name, summary, declaration };
}

function schemaText(schema: unknown, otherwise: string): string {
  if (schema === undefined || schema === null) return otherwise;
  try {
    const json: unknown = asSchema(schema as never).jsonSchema;
    return isRecord(json) && !("then" in json) ? typeText(json) : otherwise;
  } catch {
    return otherwise;
  }
}

/** The declarations, and whether all of them are there. */
export interface Declared {
  readonly text: string;
  readonly complete: boolean;
}

/** The declarations of tools in at most `room` characters; of those that do not fit, names only. */
export function declareTools(catalog: readonly CatalogEntry[], room: number): Declared {
  const all = catalog.map((entry) => entry.declaration).join("\n");
  if (all.length <= room) return { text: all, complete: true };
  const shown: string[] = [];
  const names: string[] = [];
  let left = Math.floor(room * (1 - SHARE_OF_NAMES));
  let leftForNames = room - left;
  let hidden = 0;
  for (const { name, declaration } of catalog) {
    if (declaration.length < left) {
      shown.push(declaration);
      left -= declaration.length + 1;
    } else if (name.length + 2 < leftForNames) {
      names.push(name);
      leftForNames -= name.length + 2;
    } else {
      hidden += 1;
    }
  }
  const more = hidden === 0 ? "" : ` and ${hidden} more`;
  return { text: `${shown.join("\n")}\n  // Also: ${names.join(", ")}${more}.`, complete: false };
}

/** The tools whose name or summary have most of the words, best first. */
export function searchCatalog(catalog: readonly CatalogEntry[], query: string): readonly CatalogEntry[] {
  const words = query
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
  return catalog
    .map((entry) => {
      const name = entry.name.toLowerCase();
      const text = entry.summary.toLowerCase();
      const score = words.reduce((sum, word) => sum + (name.includes(word) ? 2 : 0) + (text.includes(word) ? 1 : 0), 0);
      return { entry, score };
    })
    .filter(({ score }) => score > 0 || words.length === 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, MOST_FOUND)
    .map(({ entry }) => entry);
}
