import { useEffect, useMemo, useRef, useSyncExternalStore } from "react";
import { AgentClient, type AgentClientEvents, type AgentClientOptions } from "./agent-client.ts";
import type { StateOf } from "./call-types.ts";

/** Options of {@link useAgent}. */
export interface UseAgentOptions<State = unknown> extends Omit<AgentClientOptions<State>, "startClosed"> {
  /** When one of these changes, a `query` that is a function is asked anew and the connection made again. */
  readonly queryDeps?: readonly unknown[];
  /** Default true. */
  readonly enabled?: boolean;
  readonly onOpen?: (event: AgentClientEvents["open"]) => void;
  readonly onMessage?: (event: AgentClientEvents["message"]) => void;
  readonly onClose?: (event: AgentClientEvents["close"]) => void;
  readonly onError?: (event: AgentClientEvents["error"]) => void;
}

/**
 * A connection to an agent for the component's life. State, identity and connection changes re-render; the object stays the same
 * until the address changes.
 */
export function useAgent<AgentT = unknown, State = StateOf<AgentT>>(
  options: UseAgentOptions<State>,
): AgentClient<AgentT, State> {
  const latest = useRef(options);
  const key = connectionKey(options);
  // A connection of its own for each address; made here, opened when the component is there.
  const client = useMemo(() => new AgentClient<AgentT, State>({ ...options, startClosed: true }), [key]);
  const leaving = useMemo<{ timer?: ReturnType<typeof setTimeout> }>(() => ({}), [client]);
  useEffect(() => {
    latest.current = options;
    client.options = { ...options, startClosed: true };
  });
  const { enabled = true } = options;
  useEffect(() => {
    const stop = new AbortController();
    const { signal } = stop;
    client.addEventListener("open", (event) => latest.current.onOpen?.(event), { signal });
    client.addEventListener("message", (event) => latest.current.onMessage?.(event), { signal });
    client.addEventListener("close", (event) => latest.current.onClose?.(event), { signal });
    client.addEventListener("error", (event) => latest.current.onError?.(event), { signal });
    clearTimeout(leaving.timer);
    if (enabled) client.open();
    return () => {
      stop.abort();
      // Not at once: StrictMode takes every component away and brings it back, and what was sent meanwhile waits here.
      leaving.timer = setTimeout(() => client.close());
    };
  }, [client, leaving, enabled]);
  const watch = useMemo(() => watcher(client), [client]);
  useSyncExternalStore(watch.subscribe, watch.version, watch.version);
  return client;
}

function watcher(client: Pick<AgentClient, "addEventListener" | "removeEventListener">) {
  let version = 0;
  return {
    version: () => version,
    subscribe: (listener: () => void): (() => void) => {
      const changed = () => {
        version++;
        listener();
      };
      client.addEventListener("change", changed);
      return () => client.removeEventListener("change", changed);
    },
  };
}

/** Two connections are the same when all of this is. */
function connectionKey<State>(options: UseAgentOptions<State>): string {
  const { agent, name, host, protocol, prefix, sub, basePath, path, id, query, queryDeps, protocols } = options;
  const asked = typeof query === "function" ? "function" : query;
  return JSON.stringify([agent, name, host, protocol, prefix, sub, basePath, path, id, asked, queryDeps, protocols]);
}
