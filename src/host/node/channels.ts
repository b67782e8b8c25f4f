import { channel, subscribe as subscribeTo, unsubscribe } from "node:diagnostics_channel";
import type { AgentEvent, AgentEvents, AgentEventType } from "../../event.ts";
import type { Clock } from "../../id.ts";
import type { Publish } from "../runtime.ts";

/** One channel per event type: `perdure:state:changed`, `perdure:fiber:settled`, … */
const nameOf = (type: AgentEventType) => `perdure:${type}`;

/** Puts events on `node:diagnostics_channel`. Costs one look-up while nobody listens. */
export function publishTo(clock: Clock): Publish {
  const channels = new Map<AgentEventType, ReturnType<typeof channel>>();
  return (path, id, type, payload) => {
    let target = channels.get(type);
    if (target === undefined) channels.set(type, (target = channel(nameOf(type))));
    if (!target.hasSubscribers) return;
    const leaf = path[path.length - 1] ?? path[0];
    target.publish({ type, agent: leaf.className, name: leaf.name, id, payload, timestamp: clock.now() });
  };
}

/**
 * Calls `listener` for every event of `type`, of all agents in this process. It runs synchronously where the
 * event happens, so it should be quick; what it throws is reported by Node as an uncaught exception.
 * @returns a function that ends the subscription.
 */
export function subscribe<T extends AgentEventType>(
  type: T,
  listener: (event: Extract<AgentEvent, { type: T }> & { payload: AgentEvents[T] }) => void,
): () => void {
  const receive = (message: unknown) => listener(message as Parameters<typeof listener>[0]);
  subscribeTo(nameOf(type), receive);
  return () => {
    unsubscribe(nameOf(type), receive);
  };
}
