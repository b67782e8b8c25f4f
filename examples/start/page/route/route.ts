import { useSyncExternalStore } from "react";

const PATH = /^\/c\/([^/]+)\/?$/;
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

/** The address of a conversation. */
export function pathOf(id: string): string {
  return `/c/${encodeURIComponent(id)}`;
}

/** Call once, first: an address without a conversation becomes one with a fresh one. */
export function startRoute(): void {
  if (!PATH.test(location.pathname)) history.replaceState(null, "", pathOf(newConversationId()));
  addEventListener("popstate", changed);
}

/** Shows another conversation. */
export function goTo(id: string, how: "push" | "replace" = "push"): void {
  if (id === currentId()) return;
  if (how === "push") history.pushState(null, "", pathOf(id));
  else history.replaceState(null, "", pathOf(id));
  changed();
}

/** The conversation that the address names. */
export function useConversationId(): string {
  return useSyncExternalStore(subscribe, currentId);
}

function currentId(): string {
  const name = PATH.exec(location.pathname)?.[1] ?? "";
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed(): void {
  for (const listener of listeners) listener();
}
