import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { isRecord } from "../base/json.ts";
import { type ContextKind, type ContextProvider, type Source, toSource } from "./provider.ts";
import type { StoredEntries } from "./stored-entries.ts";

/** What a context block is made with. */
export interface ContextOptions {
  /** What belongs into it, for the model. */
  readonly description?: string;
  /** The most that it may take. The model cannot write more; of a text that a provider gives, the beginning is shown. */
  readonly maxTokens?: number;
  /** Where the text comes from. Without one the agent stores it, and the model may write it. */
  readonly provider?: ContextProvider;
  /** Not one text, but many under keys, which the model writes, loads and searches. Only without a provider. */
  readonly keyed?: boolean;
  /** One text for all sessions of the agent, not one for each. Only without a provider. */
  readonly shared?: boolean;
  /** What it holds until somebody writes. Only without a provider, and not for one with keys. */
  readonly initial?: string;
}

const contextOptionsNames = namesOf<ContextOptions>()("description maxTokens provider keyed shared initial");

/** A block that was declared or added. */
export interface Definition {
  readonly label: string;
  readonly description: string | undefined;
  readonly maxTokens: number | undefined;
  readonly shared: boolean;
  readonly initial: string;
  /** What it is read from; undefined: the agent stores the one text itself. */
  readonly source: Source | undefined;
  /** Of a block with keys that the agent stores itself. */
  readonly entries: StoredEntries | undefined;
}

/** Makes the entries of a block that the agent stores itself. */
type MakeEntries = (label: string, shared: boolean) => StoredEntries;

/** The most blocks that a session has: each is read for every prompt. */
export const MAX_BLOCKS = 64;
const MAX_LABEL_LENGTH = 64;
export const MAX_DESCRIPTION_CHARS = 1_000;
/** The most that one block holds, whatever `maxTokens` says: it is a row, and it goes into a prompt. */
export const MAX_CONTENT_CHARS = 100_000;

/** Names are parts of keys in the store, and models have to spell them. */
const LABEL = /^[A-Za-z0-9][A-Za-z0-9_-]*$/;

/** @throws PerdureError `bad_config` for what cannot be a block */
export function define(label: string, options: ContextOptions, makeEntries: MakeEntries): Definition {
  refuseUnknown(options, contextOptionsNames, "A context block");
  if (typeof label !== "string" || label.length > MAX_LABEL_LENGTH || !LABEL.test(label)) {
    throw new PerdureError(
      "bad_config",
      `A context block cannot be called ${JSON.stringify(label)}. Use letters, digits, "_" and "-", ` +
        `beginning with a letter or a digit, at most ${MAX_LABEL_LENGTH}.`,
    );
  }
  const fault = faultOf(options);
  if (fault !== undefined) throw new PerdureError("bad_config", `The context block "${label}": ${fault}`);
  const { description, maxTokens, provider, keyed = false, shared = false, initial = "" } = options;
  const entries = keyed ? makeEntries(label, shared) : undefined;
  const from = provider === undefined ? entries : provider;
  return {
    ...{ label, description, maxTokens, shared, initial, entries },
    source: from === undefined ? undefined : toSource(label, from),
  };
}

function faultOf(given: unknown): string | undefined {
  // Plain JavaScript can pass anything.
  if (!isRecord(given)) return "its options must be an object.";
  const { description, maxTokens, provider, keyed, shared, initial } = given;
  if (description !== undefined && typeof description !== "string") return "description must be a string.";
  if (typeof description === "string" && description.length > MAX_DESCRIPTION_CHARS)
    return `description must have at most ${MAX_DESCRIPTION_CHARS} characters.`;
  if (maxTokens !== undefined && !(typeof maxTokens === "number" && Number.isFinite(maxTokens) && maxTokens >= 1))
    return "maxTokens must be a number of at least 1.";
  for (const [name, value] of Object.entries({ shared, keyed })) {
    if (value !== undefined && typeof value !== "boolean") return `${name} must be true or false.`;
  }
  if (initial !== undefined && typeof initial !== "string") return "initial must be a string.";
  if (typeof initial === "string" && initial.length > MAX_CONTENT_CHARS)
    return `initial must have at most ${MAX_CONTENT_CHARS} characters.`;
  if (provider !== undefined && (shared === true || keyed === true || initial !== undefined))
    return "shared, keyed and initial are for blocks that the agent stores itself; this one has a provider.";
  if (keyed === true && initial !== undefined) return "initial is for one text; this one has keys.";
  return undefined;
}

/** What the model is told about what it can do with a block. */
export function kindOf({ source }: Definition): ContextKind {
  return source?.kind ?? "writable";
}

/** Whether the model may write to it, with or without a key. */
export function isWritable({ source, entries }: Definition): boolean {
  return source === undefined || entries !== undefined || source.set !== undefined || source.setEntry !== undefined;
}

/** Whether it is written entry by entry. */
export function isKeyed({ source }: Definition): boolean {
  return source?.load !== undefined || source?.search !== undefined;
}
