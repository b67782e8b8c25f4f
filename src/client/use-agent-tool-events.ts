import { useCallback, useMemo, useSyncExternalStore } from "react";
import type { Part } from "../message/types.ts";
import { AgentToolEvents, type AgentToolEventSource } from "./agent-tool-events.ts";
import type { AgentToolEventState, AgentToolRunPart, AgentToolRunState } from "./agent-tool-types.ts";
import { throttled } from "./throttle.ts";

const THROTTLE_MS = 50;

/** Options of {@link useAgentToolEvents}. */
export interface UseAgentToolEventsOptions {
  /** What `useAgent` returned. Two hooks on one agent show the same runs. */
  readonly agent: AgentToolEventSource;
  /** How often growing runs are drawn at most, in milliseconds; `false`: every chunk. Default 50. */
  readonly throttle?: number | false;
}

/** What {@link useAgentToolEvents} returns. */
export interface UseAgentToolEvents<P extends AgentToolRunPart = Part> extends AgentToolEventState<P> {
  /** The runs that a tool call started, by `order`. */
  readonly getRunsForToolCall: (toolCallId: string) => AgentToolRunState<P>[];
  /** Forgets all runs, on this page only. */
  readonly resetLocalState: () => void;
}

const stores = new WeakMap<AgentToolEventSource, AgentToolEvents>();

/** The runs of an agent's children, by the tool calls that started them. Kept as long as the connection, shown or not. */
export function useAgentToolEvents<P extends AgentToolRunPart = Part>({
  agent,
  throttle = THROTTLE_MS,
}: UseAgentToolEventsOptions): UseAgentToolEvents<P> {
  const store = stores.get(agent) ?? listenTo(agent);
  const subscribe = useCallback(
    (listener: () => void) => {
      const [draw, stop] = throttled(listener, throttle);
      const unsubscribe = store.subscribe(draw);
      return () => {
        stop();
        unsubscribe();
      };
    },
    [store, throttle],
  );
  const getSnapshot = useCallback(() => store.getSnapshot(), [store]);
  // What children say is the app's: its parts are the app's types.
  const state = useSyncExternalStore(subscribe, getSnapshot, getSnapshot) as unknown as AgentToolEventState<P>;
  const resetLocalState = useCallback(() => store.reset(), [store]);
  return useMemo(() => {
    const { runsByToolCallId: lists } = state;
    const getRunsForToolCall = (id: string) => (Object.hasOwn(lists, id) ? (lists[id] ?? []) : []);
    return { ...state, getRunsForToolCall, resetLocalState };
  }, [state, resetLocalState]);
}

/** While it is being drawn, not afterwards: the first frames may come in between. */
function listenTo(agent: AgentToolEventSource): AgentToolEvents {
  const store = new AgentToolEvents(agent);
  stores.set(agent, store);
  return store;
}
