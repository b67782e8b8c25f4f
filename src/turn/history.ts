import { withoutSteered } from "../message/steered.ts";
import type { UIMessage } from "../message/types.ts";
import type { Desk } from "./desk.ts";

/**
 * The conversation that a turn answers, as it is stored: without what waits for a turn of its own, without what was
 * taken into an answer, and without what the running turn itself has added.
 */
export function historyOf(desk: Pick<Desk, "messages" | "running">): readonly UIMessage[] {
  const { running } = desk;
  const list = withoutSteered(desk.messages);
  if (running === undefined || running.dropped) return list;
  const { id, inherited } = running.builder;
  if (inherited === 0) return list.filter((message) => message.id !== id);
  return list.map((message) =>
    message.id === id ? { ...message, parts: running.message.parts.slice(0, inherited) } : message,
  );
}
