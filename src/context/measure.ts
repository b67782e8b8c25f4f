import { isToolPart, type Part, type ToolPart, type UIMessage } from "../message/types.ts";
import { type CountText, unitsOfText } from "./text-units.ts";
import { unitsOfOutput, unitsOfUIMessage, unitsOfUIPart, unitsOfUIParts } from "./ui-units.ts";
import type { ModelMessage } from "ai";
import { isCleared } from "./cleared.ts";
import { unitsOfContentPart, unitsOfMessages } from "./units.ts";

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
 * How long things are for a model whose tokens are `factor` units, as counted by `count`.
 * @param fixedUnits of the instructions and the tools.
 * @param shown what is known of what the model reads; the rest is measured as stored.
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

/** What parts of stored messages weigh where the model reads something else than is stored. By id, so it survives a reread. */
class ShownUnits {
  readonly #messages = new Map<string, Map<string, number>>();
  readonly #count: CountText;

  constructor(count: CountText = unitsOfText) {
    this.#count = count;
  }

  /** Takes in a message: `stored` as a view shows it, `whole` with all that is kept elsewhere, `converted` for the model. */
  note(stored: UIMessage, whole: UIMessage, converted: readonly ModelMessage[]): void {
    const known = new Map<string, number>();
    for (const { content } of converted) {
      if (typeof content === "string") continue;
      for (const part of content) {
        if (part.type === "tool-result") known.set(part.toolCallId, unitsOfContentPart(part, this.#count));
      }
    }
    for (const [index, part] of stored.parts.entries()) {
      const other = whole.parts[index];
      if (part.type === "file" && other !== undefined && other !== part) known.set(part.url, unitsOfUIPart(other));
    }
    if (known.size > 0) this.#messages.set(stored.id, known);
  }

  /** Whether anything is known of a message. */
  has({ id }: Pick<UIMessage, "id">): boolean {
    return this.#messages.has(id);
  }

  /** The result of a call, with what is added around it, or a file; undefined when it weighs what is stored. */
  of({ id }: Pick<UIMessage, "id">, part: Part | ToolPart): number | undefined {
    if (part.type === "file") return this.#messages.get(id)?.get(part.url);
    // What stands in the place of an output is no output.
    if (!("toolCallId" in part) || isCleared(part)) return undefined;
    return this.#messages.get(id)?.get(part.toolCallId);
  }
}

/** One message on its way to the model. */
export interface Converted {
  /** With all that is kept outside of it. */
  readonly whole: UIMessage;
  readonly converted: readonly ModelMessage[];
}

/** Whether a model may read something else than is stored: an output as its tool shows it, a file that is kept elsewhere. */
function isShownOtherwise(part: Part): boolean {
  return isToolPart(part) || part.type === "file";
}

/** What messages become for the model, in their order. */
export type Convert = (messages: readonly UIMessage[]) => Promise<readonly Converted[]>;

/** So many times what may be sent is looked at, to see how long a conversation is. */
export const WEIGHED = 4;
/** How many messages are looked at before it is asked whether that is enough. */
const PAGE = 32;

/**
 * Weighs messages as the model reads them, newest first. Those that it reads as they are stored are not converted for that.
 * @param most how many units are looked at, at most
 */
export async function weighShown(
  messages: readonly UIMessage[],
  convert: Convert,
  most: number,
  count: CountText = unitsOfText,
): Promise<ShownUnits> {
  const shown = new ShownUnits(count);
  let units = 0;
  for (let end = messages.length; end > 0 && units <= most; end -= PAGE) {
    const page: UIMessage[] = [];
    for (const message of messages.slice(Math.max(0, end - PAGE), end)) {
      if (message.parts.some(isShownOtherwise)) page.push(message);
      else units += unitsOfUIMessage(message, count);
    }
    if (page.length === 0) continue;
    for (const [index, { whole, converted }] of (await convert(page)).entries()) {
      const stored = page[index];
      if (stored !== undefined) shown.note(stored, whole, converted);
      units += unitsOfMessages(converted, count);
    }
  }
  return shown;
}
