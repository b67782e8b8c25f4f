import { PerdureError } from "../base/error.ts";

type Maybe<T> = T | Promise<T>;
type Text = string | null | undefined;

/*
 * What a context block is read from and written to, when the agent does not store it. Its methods say which kind it is. They may
 * be slow, within bounds, and throw: an unreadable text stays as last read, a failed write is told to whoever wanted it.
 */

/** A text that the model reads and cannot change. */
export interface ReadOnlyContext {
  /** The text. Nothing counts as an empty one. */
  get(): Maybe<Text>;
}

/** A text that the model may replace and add to. */
export interface WritableContext extends ReadOnlyContext {
  /** Stores the whole text. Also called to add to it: then with all that there is to be. */
  set(content: string): Maybe<unknown>;
}

/** Many texts under keys. The model sees a list of them, and loads what it needs. */
export interface LoadableContext extends ReadOnlyContext {
  /** The list: which keys there are, and what is behind them. */
  get(): Maybe<Text>;
  /** The text behind a key; nothing when there is no such key. */
  load(key: string): Maybe<Text>;
  /** Lets the model write as well. */
  set?(key: string, content: string, description?: string): Maybe<unknown>;
}

/** What a search finds. */
export interface ContextHit {
  readonly key?: string;
  readonly content: string;
}

/** Many texts that the model looks through. */
export interface SearchableContext extends ReadOnlyContext {
  /** What can be found here. */
  get(): Maybe<Text>;
  /** What fits, the best first. More than `limit` are left off. */
  search(
    query: string,
    options: { readonly limit: number },
  ): Maybe<string | readonly (string | ContextHit)[] | null | undefined>;
  /** Lets the model write as well. */
  set?(key: string, content: string): Maybe<unknown>;
}

/** Where the text of a context block comes from. One that can both load and search is asked for both. */
export type ContextProvider = ReadOnlyContext | WritableContext | LoadableContext | SearchableContext;

/** What kind of block it is, for people and models. */
export type ContextKind = "read-only" | "writable" | "loadable" | "searchable";

/** A provider as the blocks use it: what it cannot do is not there. */
export interface Source {
  readonly kind: ContextKind;
  get(): Maybe<Text>;
  readonly set: WritableContext["set"] | undefined;
  readonly setEntry: LoadableContext["set"] | undefined;
  readonly load: LoadableContext["load"] | undefined;
  readonly search: SearchableContext["search"] | undefined;
}

/** Finds out what a provider can do. @throws PerdureError `bad_config` for what is none */
export function toSource(label: string, provider: ContextProvider): Source {
  const given: Partial<ReadOnlyContext> | null = typeof provider === "object" ? provider : null;
  if (typeof given?.get !== "function") {
    throw new PerdureError("bad_config", `The provider of the context block "${label}" must be an object with get().`);
  }
  const get = () => provider.get();
  const loadable = hasMethod<LoadableContext>(provider, "load") ? provider : undefined;
  const searchable = hasMethod<SearchableContext>(provider, "search") ? provider : undefined;
  const load = loadable && ((key: string) => loadable.load(key));
  const search: Source["search"] = searchable && ((query, options) => searchable.search(query, options));
  if (loadable !== undefined || searchable !== undefined) {
    const keyed = hasMethod<Required<LoadableContext>>(provider, "set") ? provider : undefined;
    const setEntry: Source["setEntry"] = keyed && ((key, content, about) => keyed.set(key, content, about));
    return { kind: load ? "loadable" : "searchable", get, set: undefined, setEntry, load, search };
  }
  const writable = hasMethod<WritableContext>(provider, "set") ? provider : undefined;
  const set = writable && ((content: string) => writable.set(content));
  return { kind: set ? "writable" : "read-only", get, set, setEntry: undefined, load, search };
}

/** Goes by the method's name alone: what it takes is a promise of whoever wrote the provider. */
function hasMethod<P extends ContextProvider>(provider: ContextProvider, name: keyof P): provider is P {
  return typeof (provider as Partial<P>)[name] === "function";
}
