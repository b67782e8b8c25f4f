import { channel, subscribe as subscribeTo, unsubscribe } from "node:diagnostics_channel";
import type { AgentEvent, AgentEventPattern, AgentEventType, EventOf } from "../../base/event.ts";
import type { Clock } from "../../base/time.ts";
import type { Publish } from "../reach.ts";
import { asyncContext } from "./async-context.ts";

/** One channel per event type: `perdure:state:changed`, `perdure:fiber:settled`, … */
const nameOf = (type: AgentEventType) => `perdure:${type}`;
/** Where all events are, for those who want several types. */
const ALL = "perdure:*";

/** Puts events on `node:diagnostics_channel`. Costs two look-ups while nobody listens. */
export function publishTo(clock: Clock): Publish {
  const channels = new Map<AgentEventType, ReturnType<typeof channel>>();
  const all = channel(ALL);
  return (path, id, type, payload) => {
    let target = channels.get(type);
    if (target === undefined) channels.set(type, (target = channel(nameOf(type))));
    if (!target.hasSubscribers && !all.hasSubscribers) return;
    const leaf = path[path.length - 1] ?? path[0];
    const event = { type, agent: leaf.className, name: leaf.name, id, payload, timestamp: clock.now() };
    // Who listens is nobody's caller: what it does of its own accord, it may.
    asyncContext.run(undefined, () => {
      if (target.hasSubscribers) target.publish(event);
      if (all.hasSubscribers) all.publish(event);
    });
  };
}

/**
 * Calls `listener` for events of all agents in this process: of a type (`"chat:request:failed"`), a family (`"chat:recovery:*"`,
 * `"chat:*"` or `"chat"`) or all (`"*"`). Runs synchronously where the event happens, so be quick; what it throws is an uncaught
 * exception. @returns a function that ends the subscription.
 */
export function subscribe<P extends AgentEventPattern>(pattern: P, listener: (event: EventOf<P>) => void): () => void {
  const start = startOf(pattern);
  const receive = (message: unknown) => {
    if (start === undefined || (message as AgentEvent).type.startsWith(start)) listener(message as EventOf<P>);
  };
  const name = start === undefined ? nameOf(pattern as AgentEventType) : ALL;
  subscribeTo(name, receive);
  return () => {
    unsubscribe(name, receive);
  };
}

/** How the types of a family begin; undefined for a type. */
function startOf(pattern: AgentEventPattern): string | undefined {
  if (pattern.endsWith("*")) return pattern.slice(0, -1);
  return pattern.includes(":") ? undefined : `${pattern}:`;
}
