import type { Part, UIMessage } from "../message/types.ts";
import { unitsOfText } from "./text-units.ts";
import { unitsOfUIMessage, unitsOfUIParts } from "./ui-units.ts";

/** How long things are for one model, in tokens. */
export interface Measure {
  text(text: string): number;
  /** A message, or some of its parts. */
  message(message: UIMessage, parts: readonly Part[]): number;
  /** What each request holds besides the conversation: instructions and tools. */
  readonly fixed: number;
  /** The most that a request may hold. */
  readonly usable: number;
}

/** How long a conversation is, without what is fixed. */
export function measureAll(messages: readonly UIMessage[], measure: Pick<Measure, "message">): number {
  return messages.reduce((sum, message) => sum + measure.message(message, message.parts), 0);
}

/**
 * How long things are for a model whose tokens are `factor` units.
 * @param fixedUnits of the instructions and the tools.
 */
export function measureFor(factor: number, fixedUnits: number, usable: number): Measure {
  return {
    text: (text) => factor * unitsOfText(text),
    message: (message, parts) => factor * (parts === message.parts ? unitsOfUIMessage(message) : unitsOfUIParts(parts)),
    fixed: factor * fixedUnits,
    usable,
  };
}
