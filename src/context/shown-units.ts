import type { ModelMessage } from "ai";
import type { Part, ToolPart, UIMessage } from "../message/types.ts";
import { isCleared } from "./cleared.ts";
import { type CountText, unitsOfText } from "./text-units.ts";
import { unitsOfUIPart } from "./ui-units.ts";
import { unitsOfContentPart, unitsOfMessages } from "./units.ts";

/**
 * What parts of stored messages weigh as the model reads them, where that is not what is stored: outputs that their tool
 * shows in its own way, and what is kept outside of its message. By ids, so that a message which is read again is known.
 */
export class ShownUnits {
  readonly #messages = new Map<string, Map<string, number>>();
  readonly #count: CountText;

  constructor(count: CountText = unitsOfText) {
    this.#count = count;
  }

  /**
   * Takes in one message.
   * @param stored as a view shows it.
   * @param whole the same with all that is kept elsewhere.
   * @param converted what that becomes for the model.
   */
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

/** What messages become for the model, in their order. */
export type Convert = (messages: readonly UIMessage[]) => Promise<readonly Converted[]>;

/** So many times what may be sent is looked at, to see how long a conversation is. */
export const WEIGHED = 4;
/** How many messages are looked at before it is asked whether that is enough. */
const PAGE = 32;

/**
 * Weighs messages as the model reads them, the newest first.
 * @param most as many units are looked at: what is older is not sent as it is anyway.
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
    const page = messages.slice(Math.max(0, end - PAGE), end);
    for (const [index, { whole, converted }] of (await convert(page)).entries()) {
      const stored = page[index];
      if (stored !== undefined) shown.note(stored, whole, converted);
      units += unitsOfMessages(converted, count);
    }
  }
  return shown;
}
