import type { Part, ToolPart, UIMessage } from "../message/types.ts";
import type { ShownUnits } from "./shown-units.ts";
import { type CountText, unitsOfText } from "./text-units.ts";
import { unitsOfOutput, unitsOfUIMessage, unitsOfUIParts } from "./ui-units.ts";

/** How long things are for one model, in tokens. */
export interface Measure {
  text(text: string): number;
  /** A message that is shown, or some of its parts. */
  message(message: UIMessage, parts: readonly Part[]): number;
  /** The output of a call in a message. */
  output(message: UIMessage, part: ToolPart): number;
  /** What each request holds besides the conversation: instructions and tools. */
  readonly fixed: number;
  /** What each request holds besides that once something is left out, and does not hold yet. Default: nothing. */
  readonly added?: number;
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
 * @param shown what is known of what the model reads; the rest is measured as it is stored.
 * @param count how long texts are for the model.
 */
export function measureFor(
  factor: number,
  fixedUnits: number,
  usable: number,
  shown?: ShownUnits,
  count: CountText = unitsOfText,
): Measure {
  const units = (message: UIMessage, parts: readonly Part[]) => {
    if (shown?.has(message) === true) return unitsOfUIParts(parts, (part) => shown.of(message, part), count);
    return parts === message.parts ? unitsOfUIMessage(message, count) : unitsOfUIParts(parts, undefined, count);
  };
  return {
    text: (text) => factor * count(text),
    message: (message, parts) => factor * units(message, parts),
    output: (message, part) => factor * (shown?.of(message, part) ?? unitsOfOutput(part, count)),
    fixed: factor * fixedUnits,
    usable,
  };
}
