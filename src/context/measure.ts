import type { Part, UIMessage } from "../message/types.ts";

/** How long things are for one model, in tokens. */
export interface Measure {
  text(text: string): number;
  /** A message, or some of its parts. */
  message(message: Pick<UIMessage, "role">, parts: readonly Part[]): number;
  /** What each request holds besides the conversation: instructions and tools. */
  readonly fixed: number;
  /** The most that a request may hold. */
  readonly usable: number;
}

/** How long a conversation is, without what is fixed. */
export function measureAll(messages: readonly UIMessage[], measure: Pick<Measure, "message">): number {
  return messages.reduce((sum, message) => sum + measure.message(message, message.parts), 0);
}
