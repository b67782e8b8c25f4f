import { useMemo, useSyncExternalStore } from "react";
import { AgentSessions, type SessionsSnapshot } from "./agent-sessions.ts";
import { boundTo, type ChatAgent } from "./use-agent-chat.ts";

/** Options of {@link useSessions}. */
export interface UseSessionsOptions {
  /** What `useAgent` returned. */
  readonly agent: ChatAgent;
}

const ACTIONS = ["create", "rename", "remove", "clear", "switchTo", "refresh", "loadMore"] as const;

/** What {@link useSessions} returns. What is asked for rejects with a PerdureError, as of `AgentChat`. */
export interface UseSessions extends SessionsSnapshot, Pick<AgentSessions, (typeof ACTIONS)[number]> {}

const stores = new WeakMap<ChatAgent, AgentSessions>();

/** The sessions of an agent: which there are, and what can be done with them. A chat on the same agent moves along. */
export function useSessions({ agent }: UseSessionsOptions): UseSessions {
  let store = stores.get(agent);
  if (store === undefined) stores.set(agent, (store = new AgentSessions(agent)));
  const sessions = store;
  const { subscribe, getSnapshot, ...actions } = useMemo(
    () => boundTo(sessions, "subscribe", "getSnapshot", ...ACTIONS),
    [sessions],
  );
  return { ...useSyncExternalStore(subscribe, getSnapshot, getSnapshot), ...actions };
}
