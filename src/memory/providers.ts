import type { ContextHit, LoadableContext, ReadOnlyContext, SearchableContext } from "./provider.ts";

/** One text of {@link loadableContext}. */
export interface ContextEntry {
  /** For the list that the model sees. */
  readonly description?: string;
  /** The text, or what makes it: asked for when the model loads it. May be slow and may throw; the model is told. */
  readonly content: string | (() => string | Promise<string>);
}

/** Texts under their keys. */
export type ContextEntries =
  | Readonly<Record<string, ContextEntry | string>>
  | ReadonlyMap<string, ContextEntry | string>;

/** A text that is always the same: who the agent is, rules of the house. */
export function staticContext(text: string): ReadOnlyContext {
  return { get: () => text };
}

/** Texts that the model sees a list of and loads one by one. Later additions to the record or map are in the next list. */
export function loadableContext(entries: ContextEntries): LoadableContext {
  return {
    get: () => listOf(listed(entries)),
    load: (key) => {
      const entry = find(entries, key);
      if (entry === undefined || typeof entry === "string") return entry;
      return typeof entry.content === "string" ? entry.content : entry.content();
    },
  };
}

/** A loadable block of two functions: what keys there are, and what is behind one. Both may be slow and may throw. */
export function loadableFrom(functions: {
  index(): KeyDescription[] | Promise<KeyDescription[]>;
  load(key: string): string | undefined | Promise<string | undefined>;
}): LoadableContext {
  return {
    get: async () => listOf(await functions.index()),
    load: (key) => functions.load(key),
  };
}

/** What can be searched, in one sentence, and how. `search` may be slow and may throw; the model is told. */
export function searchableFrom(
  about: string,
  search: (query: string, options: { readonly limit: number }) => ContextHit[] | Promise<ContextHit[]>,
): SearchableContext {
  return { get: () => about, search };
}

/** One line of a list. */
export interface KeyDescription {
  readonly key: string;
  readonly description?: string;
}

/** The list of keys as the model reads it. In the order of the keys, so that the same keys give the same text. */
export function listOf(keys: readonly KeyDescription[]): string {
  const lines = keys.map(({ key, description = "" }) => {
    const about = description.replace(/\s+/g, " ").trim();
    return about === "" ? `- ${key}` : `- ${key}: ${about}`;
  });
  return lines.sort((a, b) => (a < b ? -1 : 1)).join("\n");
}

function find(entries: ContextEntries, key: string): ContextEntry | string | undefined {
  if (isMap(entries)) return entries.get(key);
  return Object.hasOwn(entries, key) ? entries[key] : undefined;
}

function listed(entries: ContextEntries): KeyDescription[] {
  const pairs = isMap(entries) ? [...entries] : Object.entries(entries);
  return pairs.map(([key, entry]) => (typeof entry === "string" ? { key } : { key, description: entry.description }));
}

function isMap(entries: ContextEntries): entries is ReadonlyMap<string, ContextEntry | string> {
  return entries instanceof Map;
}
