import type { Tool, ToolSet } from "ai";
import { PerdureError } from "../base/error.ts";
import { objectInput } from "../base/json-schema.ts";
import { firstChars } from "../message/cut-value.ts";
import { isRecord } from "../base/json.ts";
import { askProvider, textFrom, WORK_MS } from "./ask-provider.ts";
import { type Definition, isKeyed, isWritable, MAX_CONTENT_CHARS } from "./definition.ts";
import { loadedKeys, noteLoaded, noteUnloaded } from "./loaded.ts";
import type { ContextHit } from "./provider.ts";
import { type BlockWrite, checkKey, type BlockStore } from "./write.ts";

/** What the tools need of the blocks. */
export interface ToolBlocks extends BlockStore {
  definitions(): readonly Definition[];
  /** As `writeBlock`. @returns what the model is told */
  write(definition: Definition, write: BlockWrite): Promise<string>;
}

/** What the AI SDK says about a call, and what the step loop of `Think` adds. */
interface CallOptions {
  readonly toolCallId: string;
  readonly idempotencyKey?: string;
}

const MAX_HITS = 10;
const MAX_HIT_CHARS = 2_000;
const MAX_FOUND_CHARS = 20_000;
const MAX_QUERY_CHARS = 1_000;

const label = { type: "string", description: "The name of the block." } as const;
const key = { type: "string", description: "The key of the entry." } as const;
const keyed = objectInput<unknown>(["label", "key"], { label, key });

/** Tools for the blocks there are. They name no block, so that they stay the same; errors are sentences a model can act on. */
export function contextTools(blocks: ToolBlocks): ToolSet {
  const definitions = blocks.definitions();
  const tools: ToolSet = {};
  if (definitions.some(isWritable)) tools.set_context = setContext(blocks);
  if (definitions.some(canLoad)) {
    tools.load_context = loadContext(blocks);
    tools.unload_context = unloadContext(blocks);
  }
  if (definitions.some(canSearch)) tools.search_context = searchContext(blocks);
  return tools;
}

function setContext(blocks: ToolBlocks) {
  return {
    description:
      "Writes to a writable context block, to remember something. It is kept when the conversation moves on. " +
      "Write facts, briefly; correct what is there instead of repeating it.",
    inputSchema: objectInput<unknown>(["label", "content"], {
      label,
      content: { type: "string", description: "The text." },
      action: {
        type: "string",
        enum: ["replace", "append"],
        description: "replace: the text is all that the block holds then (default). append: it is added at the end.",
      },
      key: { type: "string", description: "Which entry. Only for loadable and searchable blocks." },
      description: { type: "string", description: "What the entry is about, for the list of a loadable block." },
    }),
    execute: async (input: unknown, { idempotencyKey }: CallOptions) => {
      const given = argumentsOf(input);
      const definition = blockOf(blocks, given, isWritable, "can be written");
      const action = text(given, "action") ?? "replace";
      if (action !== "replace" && action !== "append")
        throw new PerdureError("bad_input", `"action" must be "replace" or "append", not ${JSON.stringify(action)}.`);
      return blocks.write(definition, {
        content: needed(given, "content"),
        action,
        // Models fill in what they need not: an empty key is none.
        key: text(given, "key") || undefined,
        description: text(given, "description"),
        call: idempotencyKey,
      });
    },
  } satisfies Tool<unknown>;
}

function loadContext(blocks: ToolBlocks) {
  return {
    description: "Reads the text behind a key of a loadable context block.",
    inputSchema: keyed,
    execute: async (input: unknown, { toolCallId, idempotencyKey }: CallOptions) => {
      const given = argumentsOf(input);
      const definition = blockOf(blocks, given, canLoad, "can be loaded from");
      const { label, source } = definition;
      const key = checkKey(label, text(given, "key"));
      const what = `Loading ${JSON.stringify(key)} of the block "${label}"`;
      const found = await askProvider(blocks.host.clock, WORK_MS, what, () => source?.load?.(key));
      if (found === undefined || found === null) throw noSuchKey(label, key);
      noteLoaded(blocks.host, blocks.session, { label, key, call: idempotencyKey ?? toolCallId });
      return cut(textFrom(what, found), MAX_CONTENT_CHARS);
    },
  } satisfies Tool<unknown>;
}

function unloadContext(blocks: ToolBlocks) {
  return {
    description:
      "Says that a text which load_context gave is not needed any more. It leaves the conversation when that is " +
      "compacted next; the block keeps it.",
    inputSchema: keyed,
    execute: async (input: unknown) => {
      const given = argumentsOf(input);
      const { label } = blockOf(blocks, given, canLoad, "can be loaded from");
      const key = checkKey(label, text(given, "key"));
      if (noteUnloaded(blocks.host, blocks.session, label, key) > 0)
        return `${JSON.stringify(key)} of "${label}" leaves the conversation when it is compacted next.`;
      const loaded = loadedKeys(blocks.host, blocks.session).filter((one) => one.label === label);
      const keys = [...new Set(loaded.map((one) => JSON.stringify(one.key)))].join(", ");
      throw new PerdureError(
        "not_found",
        `${JSON.stringify(key)} of the block "${label}" is not loaded. ` +
          (keys === "" ? "Nothing of that block is." : `Loaded are: ${keys}.`),
      );
    },
  } satisfies Tool<unknown>;
}

function searchContext(blocks: ToolBlocks) {
  return {
    description: `Looks through a searchable context block. Gives the ${MAX_HITS} entries that fit best.`,
    inputSchema: objectInput<unknown>(["label", "query"], {
      label,
      query: { type: "string", description: "What to look for." },
    }),
    execute: async (input: unknown) => {
      const given = argumentsOf(input);
      const { label, source } = blockOf(blocks, given, canSearch, "can be searched");
      const query = needed(given, "query").trim();
      if (query === "" || query.length > MAX_QUERY_CHARS)
        throw new PerdureError("bad_input", `"query" must have between 1 and ${MAX_QUERY_CHARS} characters.`);
      const what = `Searching the block "${label}"`;
      const options = { limit: MAX_HITS };
      const found = await askProvider(blocks.host.clock, WORK_MS, what, () => source?.search?.(query, options));
      return hitsOf(what, found);
    },
  } satisfies Tool<unknown>;
}

const NOTHING = "Nothing was found.";

function hitsOf(what: string, found: unknown): string | { readonly results: readonly ContextHit[] } {
  if (!Array.isArray(found)) {
    const all = textFrom(what, found);
    return all === "" ? NOTHING : cut(all, MAX_FOUND_CHARS);
  }
  const results = found.slice(0, MAX_HITS).map((hit: unknown): ContextHit => {
    const given = isRecord(hit) ? hit : { content: hit };
    const content = cut(textFrom(what, given.content), MAX_HIT_CHARS);
    return typeof given.key === "string" ? { key: given.key, content } : { content };
  });
  return results.length === 0 ? NOTHING : { results };
}

function canLoad({ source }: Definition): boolean {
  return source?.load !== undefined;
}

function canSearch({ source }: Definition): boolean {
  return source?.search !== undefined;
}

// Models are not held to the schema of a tool: what comes is looked at here.

function argumentsOf(input: unknown): Record<string, unknown> {
  if (isRecord(input)) return input;
  throw new PerdureError("bad_input", "The arguments must be an object with the fields that the tool names.");
}

function text(given: Record<string, unknown>, name: string): string | undefined {
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  throw new PerdureError("bad_input", `"${name}" must be a string.`);
}

function needed(given: Record<string, unknown>, name: string): string {
  const value = text(given, name);
  if (value === undefined) throw new PerdureError("bad_input", `"${name}" is missing.`);
  return value;
}

function blockOf(
  blocks: ToolBlocks,
  given: Record<string, unknown>,
  can: (definition: Definition) => boolean,
  what: string,
): Definition {
  const wanted = needed(given, "label");
  const definitions = blocks.definitions();
  const found = definitions.find(({ label }) => label === wanted);
  if (found !== undefined && can(found)) return found;
  const names = definitions
    .filter(can)
    .map(({ label, ...rest }) => (isKeyed({ label, ...rest }) ? `${label} (has keys)` : label));
  const why =
    found === undefined
      ? `There is no block ${JSON.stringify(firstChars(wanted, 100))}.`
      : `The block "${wanted}" is none that ${what}.`;
  throw new PerdureError(
    found === undefined ? "not_found" : "read_only",
    `${why} Blocks that ${what}: ${names.join(", ")}.`,
  );
}

function noSuchKey(label: string, key: string): PerdureError {
  return new PerdureError(
    "not_found",
    `There is no ${JSON.stringify(key)} in the block "${label}". Use a key from its list, exactly as written there.`,
  );
}

function cut(all: string, chars: number): string {
  return all.length <= chars ? all : `${firstChars(all, chars)}\n[Cut here: the whole has ${all.length} characters.]`;
}
