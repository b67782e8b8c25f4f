import { convertToModelMessages, type ModelMessage, type ToolSet } from "ai";
import { repairMessage } from "../message/repair.ts";
import { isToolPart, type Part, toolName, type UIMessage } from "../message/types.ts";
import { BUDGET_TOOL } from "./budget-tool.ts";

/**
 * Stored messages as a model reads them. Each is converted by itself and remembered as long as it does not change, so
 * a turn costs what is new, and what was sent once is sent again in the same bytes. Calls without a result get one:
 * a provider refuses a conversation with one that has none.
 */
export class ModelMessages {
  readonly #known = new WeakMap<UIMessage, ModelMessage[]>();

  /** @param tools those of the turn: some say themselves how the model reads their output. */
  async of(messages: readonly UIMessage[], tools: ToolSet): Promise<ModelMessage[]> {
    // Only what is new is waited for, and all of it together: none is left to fail unheard.
    await Promise.all(messages.filter((message) => !this.#known.has(message)).map((one) => this.#convert(one, tools)));
    return messages.flatMap((message) => this.#known.get(message) ?? []);
  }

  async #convert(message: UIMessage, tools: ToolSet): Promise<void> {
    this.#known.set(message, await toModelMessages(message, tools));
  }
}

/** One message as a model reads it. Left out is what is not said to it: data parts, empty texts, the budget's question. */
export async function toModelMessages(message: UIMessage, tools: ToolSet): Promise<ModelMessage[]> {
  const { role, metadata: _metadata, ...rest } = repairMessage(message);
  const parts = rest.parts.filter((part) => (part.type === "text" ? part.text !== "" : !isQuestion(part)));
  const converted = await convertToModelMessages([{ ...rest, role, parts }], { tools });
  return converted.filter(({ content }) => typeof content === "string" || content.length > 0);
}

function isQuestion(part: Part): boolean {
  return isToolPart(part) && toolName(part) === BUDGET_TOOL;
}
