import { useMemo, useSyncExternalStore } from "react";
import { AgentSessions, type SessionsSnapshot } from "./agent-sessions.ts";
import type { ChatAgent } from "./use-agent-chat.ts";

/** Options of {@link useSessions}. */
export interface UseSessionsOptions {
  /** What `useAgent` returned. */
  readonly agent: ChatAgent;
}

/** What {@link useSessions} returns. What is asked for rejects with a PerdureError, as of `AgentChat`. */
export interface UseSessions
  extends
    SessionsSnapshot,
    Pick<AgentSessions, "create" | "rename" | "remove" | "clear" | "switchTo" | "refresh" | "loadMore"> {}

const stores = new WeakMap<ChatAgent, AgentSessions>();

/** The sessions of an agent: which there are, and what can be done with them. A chat on the same agent moves along. */
export function useSessions({ agent }: UseSessionsOptions): UseSessions {
  let store = stores.get(agent);
  if (store === undefined) stores.set(agent, (store = new AgentSessions(agent)));
  const sessions = store;
  const actions = useMemo(
    () => ({
      subscribe: (listener: () => void) => sessions.subscribe(listener),
      snapshot: () => sessions.getSnapshot(),
      create: (options?: { readonly name?: string }) => sessions.create(options),
      rename: (id: string, name: string) => sessions.rename(id, name),
      remove: (id: string) => sessions.remove(id),
      clear: (id: string) => sessions.clear(id),
      switchTo: (id: string | null) => sessions.switchTo(id),
      refresh: () => sessions.refresh(),
      loadMore: () => sessions.loadMore(),
    }),
    [sessions],
  );
  const { subscribe, snapshot, ...rest } = actions;
  return { ...useSyncExternalStore(subscribe, snapshot, snapshot), ...rest };
}
