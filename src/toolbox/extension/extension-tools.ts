import type { Tool } from "ai";
import { toSchema } from "../../base/json-schema.ts";
import { PerdureError } from "../../base/error.ts";
import { durableTool } from "../../tool/define.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { questionOf } from "./preview.ts";
import { EXTENSION_HOOKS, type ExtensionManifest } from "./manifest.ts";
import type { ExtensionInfo, ExtensionManager } from "./manager.ts";

const TIMEOUT_MS = 60_000;

/** What the model says to load an extension. */
interface LoadExtensionInput extends ExtensionManifest {
  readonly source: string;
}

/** What the model reads when it has loaded one. */
type LoadExtensionOutput =
  | { readonly loaded: string; readonly tools: readonly string[]; readonly note: string }
  | { readonly error: string };

/** The tools that {@link createExtensionTools} makes. */
export interface ExtensionTools extends Record<string, Tool> {
  readonly load_extension: Tool<LoadExtensionInput, LoadExtensionOutput>;
  readonly list_extensions: Tool<Record<string, never>, { readonly extensions: readonly ExtensionInfo[] }>;
  readonly unload_extension: Tool<
    { readonly name: string },
    { readonly unloaded: boolean } | { readonly error: string }
  >;
}

const text = (description: string) => ({ type: "string" as const, description });

const loadSchema = toSchema<LoadExtensionInput>({
  type: "object",
  properties: {
    name: text("A letter, then letters, digits, _ and -. Tools are called <name>_<tool>."),
    version: text('Such as "1.0.0".'),
    description: text("One sentence."),
    source: text(
      "One JavaScript expression: ({ tools: { name: { description, parameters: { city: { type: 'string' } }, required: ['city'], execute: async (args, host) => result } } }). " +
        "No imports, no Node, no DOM. Results are JSON. host has only the functions that the permissions allow; variables are lost at a restart.",
    ),
    permissions: {
      type: "object",
      description: "Ask for as little as possible: a person is asked about it.",
      properties: {
        network: {
          type: "array",
          items: { type: "string" },
          description: "Hosts for fetch(), such as api.example.com.",
        },
        workspace: {
          type: "string",
          enum: ["none", "read", "read-write"],
          description:
            "read: host.readFile(path), host.listFiles(path). read-write: also host.writeFile(path, text), host.deleteFile(path).",
        },
        context: {
          type: "object",
          description: "host.getContext(label), host.setContext(label, text).",
          properties: {
            read: {
              anyOf: [
                { type: "string", enum: ["all"] },
                { type: "array", items: { type: "string" } },
              ],
            },
            write: {
              anyOf: [
                { type: "string", enum: ["own"] },
                { type: "array", items: { type: "string" } },
              ],
            },
          },
        },
        messages: { type: "string", enum: ["none", "read"], description: "read: host.getMessages(limit)." },
        session: {
          type: "object",
          description: "host.sendMessage(text), host.getSessionInfo().",
          properties: { sendMessage: { type: "boolean" }, metadata: { type: "boolean" } },
        },
      },
    },
    context: {
      type: "array",
      description: 'Blocks of text of its own, <name>_<label>, that stand in every prompt; with context.write "own".',
      items: {
        type: "object",
        properties: {
          label: text("Letters, digits, _ and -."),
          description: text("One sentence."),
          maxTokens: { type: "number" },
        },
        required: ["label"],
      },
    },
    hooks: {
      type: "array",
      items: { type: "string", enum: [...EXTENSION_HOOKS] },
      description: "Hooks of the source: hooks: { afterToolCall: async (snapshot, host) => {} }.",
    },
  },
  required: ["name", "version", "source"],
});

/** Options of {@link createExtensionTools}. */
export interface ExtensionToolsOptions {
  readonly manager: ExtensionManager;
  /**
   * When a person is asked before an extension loads. `changes` (default): for each source and manifest not loaded already.
   * `permissions`: only when it asks for more than was agreed to under its name; what its tools tell the model is not checked.
   * `never`: the model loads what it likes.
   */
  readonly approval?: "changes" | "permissions" | "never";
}

const optionNames = namesOf<ExtensionToolsOptions>()("manager approval");
const APPROVALS: readonly unknown[] = ["changes", "permissions", "never"];

/**
 * Tools with which the model writes its own extensions. Before one loads, a person sees the source, what it asks for, and what it
 * would say in the prompts of all conversations. Wrong input is answered with a text that says what to change.
 * @throws PerdureError `bad_config`
 */
export function createExtensionTools(options: ExtensionToolsOptions): ExtensionTools {
  refuseUnknown(options, optionNames, "createExtensionTools()");
  const { manager, approval = "changes" } = options;
  if (!APPROVALS.includes(approval)) {
    throw new PerdureError("bad_config", 'createExtensionTools: approval must be "changes", "permissions" or "never".');
  }
  const load: Tool<LoadExtensionInput, LoadExtensionOutput> = {
    description:
      "Loads an extension that you write: JavaScript that runs in a sandbox and gives you new tools, from the next turn on. " +
      "Loading one of the same name replaces it. Use it when no tool does what is needed and it will be needed again.",
    inputSchema: loadSchema,
    async execute({ source, ...manifest }) {
      try {
        const { name, tools } = await manager.load(manifest, source, { asShown: approval === "changes" });
        return { loaded: name, tools, note: "The tools can be called from the next turn on." };
      } catch (thrown) {
        // What the model got wrong it can mend itself.
        if (isMendable(thrown)) return { error: thrown.message };
        throw thrown;
      }
    },
  };
  const list: ExtensionTools["list_extensions"] = {
    description: "Lists the loaded extensions: their tools, permissions, and whether their hooks are off.",
    inputSchema: toSchema({ type: "object", properties: {}, additionalProperties: false }),
    execute: async () => ({ extensions: manager.list() }),
  };
  const unload: ExtensionTools["unload_extension"] = {
    description: "Unloads an extension: its tools are gone from the next turn on.",
    inputSchema: toSchema<{ name: string }>({
      type: "object",
      properties: { name: text("As list_extensions shows it.") },
      required: ["name"],
    }),
    async execute({ name }) {
      try {
        if (await manager.unload(name)) return { unloaded: true };
        const loaded = manager.list().map((one) => one.name);
        const others = loaded.length === 0 ? "None is loaded." : `Loaded are: ${loaded.join(", ")}.`;
        return { error: `There is no extension "${String(name).slice(0, 100)}". ${others}` };
      } catch (thrown) {
        if (isMendable(thrown)) return { error: thrown.message };
        throw thrown;
      }
    },
  };
  return {
    // Loading the same twice is the same as loading it once.
    load_extension: durableTool(load as Tool<LoadExtensionInput>, {
      replay: "safe",
      timeoutMs: TIMEOUT_MS,
      needsApproval: async ({ source, ...manifest }) => {
        if (approval === "never") return false;
        return approval === "permissions" ? asksForMore(manager, manifest) : await question(manager, manifest, source);
      },
    }) as typeof load,
    list_extensions: durableTool(list as Tool, { replay: "safe" }) as typeof list,
    unload_extension: durableTool(unload as Tool, { replay: "safe" }) as typeof unload,
  };
}

/** What is asked; false for what is loaded already, and for what cannot be: loading it fails, and says why. */
async function question(manager: ExtensionManager, manifest: ExtensionManifest, source: string) {
  try {
    const preview = await manager.preview(manifest, source);
    return preview.loaded ? false : questionOf(preview, source.length);
  } catch (thrown) {
    if (isMendable(thrown)) return false;
    throw thrown;
  }
}

/** A manifest that cannot be used needs nobody's approval: loading it fails, and says why. */
function asksForMore(manager: ExtensionManager, manifest: unknown): boolean {
  try {
    return manager.newWishes(manifest).length > 0;
  } catch {
    return false;
  }
}

const MENDABLE = ["bad_input", "conflict", "limit", "not_allowed"] as const;

function isMendable(thrown: unknown): thrown is PerdureError {
  return MENDABLE.some((code) => PerdureError.is(thrown, code));
}
