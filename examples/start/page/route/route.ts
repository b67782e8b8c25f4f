import { useMemo, useSyncExternalStore } from "react";

/** A conversation, and the way from it to a helper: `/c/<id>/<agent>/<name>/…` */
const PATH = /^\/c\/([^/]+)((?:\/[^/]+\/[^/]+)*)\/?$/;
const ID_BYTES = 9;
const listeners = new Set<() => void>();
/** Made here, so nothing was said in them before. */
const fresh = new Set<string>();

/** A fresh id for a conversation. The agent makes it on its first word, so nobody has to be asked. */
export function newConversationId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(ID_BYTES));
  const id = btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "a")
    .replaceAll("/", "b");
  fresh.add(id);
  return id;
}

/** Whether this page made the conversation, so that there is nothing to load. */
export function isFresh(id: string): boolean {
  return fresh.has(id);
}

/** A step down from an agent to one of its children. */
export interface Step {
  readonly agent: string;
  readonly name: string;
}

/** What an address names: a conversation, or a helper below it. */
export interface Route {
  readonly id: string;
  readonly chain: readonly Step[];
}

/** The address of a conversation, or of a helper below it. */
export function pathOf(id: string, chain: readonly Step[] = []): string {
  const steps = chain.flatMap(({ agent, name }) => [kebab(agent), name]);
  return `/c/${[id, ...steps].map(encodeURIComponent).join("/")}`;
}

/** Call once, first: an address without a conversation becomes one with a fresh one. */
export function startRoute(): void {
  if (!PATH.test(location.pathname)) history.replaceState(null, "", pathOf(newConversationId()));
  addEventListener("popstate", changed);
}

/** Shows another conversation, or a helper of one. */
export function goTo(id: string, how: "push" | "replace" = "push", chain: readonly Step[] = []): void {
  const path = pathOf(id, chain);
  if (path === location.pathname) return;
  if (how === "push") history.pushState(null, "", path);
  else history.replaceState(null, "", path);
  changed();
}

/** What the address names. The same object until it changes. */
export function useRoute(): Route {
  const path = useSyncExternalStore(subscribe, () => location.pathname);
  return useMemo(() => {
    const [, id = "", rest = ""] = PATH.exec(path) ?? [];
    const names = rest.split("/").slice(1).map(decoded);
    const chain = names.flatMap((agent, at) => (at % 2 === 0 ? [{ agent, name: names[at + 1] ?? "" }] : []));
    return { id: decoded(id), chain };
  }, [path]);
}

function decoded(name: string): string {
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

/** How a class is called in an address: `TidyUp` is `tidy-up`. */
function kebab(name: string): string {
  return name.replaceAll(/([a-z\d])([A-Z])/g, "$1-$2").toLowerCase();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(): void {
  for (const listener of listeners) listener();
}
