import type { AnyTextAdapter } from "@tanstack/ai";
import type { AgentToolCall } from "../contract.ts";

/** An adapter, and the tool calls of the turn that it has spoken last. */
export interface WatchedAdapter {
  readonly adapter: AnyTextAdapter;
  /** Filled while the model speaks, emptied when it begins again. */
  readonly calls: readonly AgentToolCall[];
}

/** What is looked at of the events of a model. */
interface CallEvent {
  readonly type?: unknown;
  readonly toolCallId?: unknown;
  readonly toolCallName?: unknown;
  readonly delta?: unknown;
}

/**
 * The same adapter, which keeps the tool calls that go by. `chat()` runs the tools of a turn one behind the other and
 * tells none of them of the others; here all of them are known before the first one runs.
 */
export function watchCalls(adapter: AnyTextAdapter): WatchedAdapter {
  const calls: AgentToolCall[] = [];
  async function* watched(stream: AsyncIterable<unknown>) {
    calls.length = 0;
    for await (const event of stream) {
      keep(calls, event as CallEvent);
      yield event;
    }
  }
  const proxy = new Proxy(adapter, {
    get(target, name) {
      // As a method of the adapter itself: it may have private fields.
      const found: unknown = Reflect.get(target, name, target);
      if (typeof found !== "function") return found;
      if (name !== "chatStream") return found.bind(target) as unknown;
      return (...args: unknown[]) => watched(found.apply(target, args) as AsyncIterable<unknown>);
    },
  });
  return { adapter: proxy, calls };
}

function keep(calls: AgentToolCall[], { type, toolCallId: id, toolCallName: name, delta }: CallEvent): void {
  if (typeof id !== "string") return;
  if (type === "TOOL_CALL_START" && typeof name === "string") calls.push({ id, name, arguments: "" });
  const call = calls.find((one) => one.id === id);
  if (type === "TOOL_CALL_ARGS" && call !== undefined && typeof delta === "string") call.arguments += delta;
}
