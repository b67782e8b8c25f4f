import { parseRule } from "../egress/rule.ts";
import { errorText, PerdureError } from "../../base/error.ts";
import { isRecord } from "../../base/json.ts";

/** The hooks that an extension may listen to. */
export const EXTENSION_HOOKS = ["beforeTurn", "beforeToolCall", "afterToolCall", "onStepFinish", "onChunk"] as const;

/** One of {@link EXTENSION_HOOKS}. */
export type ExtensionHook = (typeof EXTENSION_HOOKS)[number];

/** What an extension may touch. What is absent is denied. */
export interface ExtensionPermissions {
  /** Hosts that it may ask: `api.example.com`, `*.example.com`, `https://api.example.com/v1/`. */
  readonly network?: readonly string[];
  /** `read`: it may list and read files. `read-write`: it may also write and delete them. */
  readonly workspace?: "none" | "read" | "read-write";
  /** Context blocks by their labels; `own` are those that its manifest declares. */
  readonly context?: {
    readonly read?: readonly string[] | "all";
    readonly write?: readonly string[] | "own";
  };
  /** `read`: it may read the conversation. */
  readonly messages?: "none" | "read";
  readonly session?: {
    /** It may send messages as the user. */
    readonly sendMessage?: boolean;
    /** It may ask which session it is in and how long that is. */
    readonly metadata?: boolean;
  };
}

/** A context block that an extension brings along. Its label is `<extension>_<label>`. */
export interface ExtensionContext {
  readonly label: string;
  readonly description?: string;
  readonly maxTokens?: number;
}

/** What an extension is and wants. */
export interface ExtensionManifest {
  /** A letter, then letters, digits, `_` and `-`; at most 32. Its tools are called `<name>_<tool>`. */
  readonly name: string;
  readonly version: string;
  readonly description?: string;
  readonly permissions?: ExtensionPermissions;
  readonly context?: readonly ExtensionContext[];
  readonly hooks?: readonly ExtensionHook[];
}

/** An extension as it is declared in code, or loaded. */
export interface ExtensionDeclaration {
  readonly manifest: ExtensionManifest;
  /** One expression: `({ tools: { … }, hooks: { … } })`. */
  readonly source: string;
}

const NAME = /^[A-Za-z][A-Za-z0-9_-]{0,31}$/;
const LABEL = /^[A-Za-z0-9_-]{1,64}$/;
const MAX_VERSION_CHARS = 32;
const MAX_DESCRIPTION_CHARS = 500;
const MAX_HOSTS = 32;
const MAX_LABELS = 32;

/**
 * A checked copy of a manifest, without what it does not know.
 * @throws PerdureError `bad_input` that names everything that is wrong
 */
export function checkManifest(given: unknown): ExtensionManifest {
  if (!isRecord(given))
    throw new PerdureError("bad_input", "The manifest must be an object with a name and a version.");
  const faults: string[] = [];
  const { name, version, description } = given;
  if (typeof name !== "string" || !NAME.test(name)) {
    faults.push("name must begin with a letter and have at most 32 letters, digits, _ and -");
  }
  if (typeof version !== "string" || version === "" || version.length > MAX_VERSION_CHARS) {
    faults.push(`version must be a string of 1 to ${MAX_VERSION_CHARS} characters, such as "1.0.0"`);
  }
  if (description !== undefined && (typeof description !== "string" || description.length > MAX_DESCRIPTION_CHARS)) {
    faults.push(`description must be a string of at most ${MAX_DESCRIPTION_CHARS} characters`);
  }
  const permissions = checkPermissions(given.permissions, faults);
  const context = checkContext(given.context, faults);
  const hooks = checkHooks(given.hooks, faults);
  unknownFields(given, ["name", "version", "description", "permissions", "context", "hooks"], "the manifest", faults);
  if (faults.length > 0) throw new PerdureError("bad_input", `The manifest cannot be used: ${faults.join("; ")}.`);
  return {
    ...{ name: String(name), version: String(version), permissions },
    ...(typeof description === "string" && { description }),
    ...(context.length > 0 && { context }),
    ...(hooks.length > 0 && { hooks }),
  };
}

function checkPermissions(given: unknown, faults: string[]): ExtensionPermissions {
  if (given === undefined) return {};
  if (!isRecord(given)) {
    faults.push('permissions must be an object, such as { workspace: "read" }');
    return {};
  }
  unknownFields(given, ["network", "workspace", "context", "messages", "session"], "permissions", faults);
  const { workspace, messages } = given;
  const network = checkNetwork(given.network, faults);
  const isLevel = workspace === undefined || workspace === "none" || workspace === "read" || workspace === "read-write";
  if (!isLevel) faults.push('permissions.workspace must be "none", "read" or "read-write"');
  const isMessages = messages === undefined || messages === "none" || messages === "read";
  if (!isMessages) faults.push('permissions.messages must be "none" or "read"');
  const context = checkContextAccess(given.context, faults);
  const session = checkSession(given.session, faults);
  return {
    ...(network.length > 0 && { network }),
    ...(isLevel && workspace !== undefined && workspace !== "none" && { workspace }),
    ...(isMessages && messages === "read" && { messages }),
    ...(context !== undefined && { context }),
    ...(session !== undefined && { session }),
  };
}

function checkNetwork(given: unknown, faults: string[]): string[] {
  if (given === undefined || given === false) return [];
  if (!isTexts(given) || given.length > MAX_HOSTS) {
    faults.push(`permissions.network must be a list of at most ${MAX_HOSTS} hosts, such as ["api.example.com"]`);
    return [];
  }
  for (const host of given) {
    try {
      parseRule(host);
    } catch (thrown) {
      faults.push(`permissions.network: ${errorText(thrown).replace(/\.$/, "")}`);
    }
  }
  return [...new Set(given)];
}

function checkContextAccess(given: unknown, faults: string[]): ExtensionPermissions["context"] {
  if (given === undefined) return undefined;
  if (!isRecord(given)) {
    faults.push('permissions.context must be an object, such as { read: "all", write: "own" }');
    return undefined;
  }
  unknownFields(given, ["read", "write"], "permissions.context", faults);
  const { read, write } = given;
  const readable = read === "all" ? read : checkLabels(read, 'permissions.context.read must be "all" or', faults);
  const writable = write === "own" ? write : checkLabels(write, 'permissions.context.write must be "own" or', faults);
  if (readable === undefined && writable === undefined) return undefined;
  return { ...(readable !== undefined && { read: readable }), ...(writable !== undefined && { write: writable }) };
}

function checkLabels(given: unknown, what: string, faults: string[]): string[] | undefined {
  if (given === undefined) return undefined;
  if (isTexts(given) && given.length <= MAX_LABELS && given.every((label) => LABEL.test(label))) {
    return given.length === 0 ? undefined : [...new Set(given)];
  }
  faults.push(`${what} a list of at most ${MAX_LABELS} labels`);
  return undefined;
}

function checkSession(given: unknown, faults: string[]): ExtensionPermissions["session"] {
  if (given === undefined) return undefined;
  if (!isRecord(given)) {
    faults.push("permissions.session must be an object, such as { sendMessage: true }");
    return undefined;
  }
  unknownFields(given, ["sendMessage", "metadata"], "permissions.session", faults);
  const granted = (["sendMessage", "metadata"] as const).filter((name) => {
    const value = given[name];
    if (value !== undefined && typeof value !== "boolean")
      faults.push(`permissions.session.${name} must be true or false`);
    return value === true;
  });
  return granted.length === 0 ? undefined : Object.fromEntries(granted.map((name) => [name, true]));
}

function checkContext(given: unknown, faults: string[]): ExtensionContext[] {
  if (given === undefined) return [];
  if (!Array.isArray(given) || given.length > MAX_LABELS) {
    faults.push(`context must be a list of at most ${MAX_LABELS} blocks, such as [{ label: "notes" }]`);
    return [];
  }
  return given.flatMap((block: unknown) => {
    const { label, description, maxTokens } = isRecord(block) ? block : {};
    const isTokens = maxTokens === undefined || (typeof maxTokens === "number" && maxTokens >= 1);
    const isText =
      description === undefined || (typeof description === "string" && description.length <= MAX_DESCRIPTION_CHARS);
    if (typeof label !== "string" || !LABEL.test(label) || !isTokens || !isText) {
      faults.push("each block of context must be { label, description?, maxTokens? }");
      return [];
    }
    return [
      {
        label,
        ...(typeof description === "string" && { description }),
        ...(typeof maxTokens === "number" && { maxTokens }),
      },
    ];
  });
}

function checkHooks(given: unknown, faults: string[]): ExtensionHook[] {
  if (given === undefined) return [];
  if (
    isTexts(given) &&
    given.every((name): name is ExtensionHook => (EXTENSION_HOOKS as readonly string[]).includes(name))
  ) {
    return EXTENSION_HOOKS.filter((hook) => given.includes(hook));
  }
  faults.push(`hooks must be a list of ${EXTENSION_HOOKS.join(", ")}`);
  return [];
}

function unknownFields(given: object, known: readonly string[], where: string, faults: string[]): void {
  const strange = Object.keys(given).filter((key) => !known.includes(key));
  if (strange.length > 0)
    faults.push(`${where} has no ${strange.slice(0, 5).join(", ")} (it may have ${known.join(", ")})`);
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}
