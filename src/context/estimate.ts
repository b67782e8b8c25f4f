import type { ModelMessage, ToolSet } from "ai";
import type { UIMessage } from "../message/types.ts";
import { type CountText, Remembered, unitsOfText } from "./text-units.ts";
import { unitsOfUIMessage } from "./ui-units.ts";
import { unitsOfMessage, unitsOfTool } from "./units.ts";

/** A reservation should not be too small: three characters of English to a token instead of four, and all else in proportion. */
const CAREFUL = 4 / 3;
/** What some providers add around a message beyond what most do. */
const MESSAGE_FRAME_UNITS = 4;
/** A call or a result as JSON, but for its name, its content and its id. */
const CALL_FRAME_UNITS = 24;

/** The most tokens a request may have, for reservations: a third above the estimate. `factor` (`learned.ts`) only adds. */
export function reservedTokens(
  messages: readonly ModelMessage[],
  system: string,
  tools: ToolSet,
  factor = 1,
  count: CountText = unitsOfText,
): number {
  const careful = CAREFUL * Math.max(1, factor);
  let sum = Math.ceil(careful * count(system));
  for (const message of messages) sum += Math.ceil(careful * framedUnits(message, count));
  for (const [name, tool] of Object.entries(tools)) sum += Math.ceil(careful * unitsOfTool(name, tool, count));
  return sum;
}

const framed = new Remembered<ModelMessage>();

/** What a message weighs for a provider that counts every name and id of it. Looked at once. */
function framedUnits(message: ModelMessage, count: CountText): number {
  return framed.of(message, count, () => {
    return unitsOfMessage(message, count) + MESSAGE_FRAME_UNITS + callFrames(message.content, count);
  });
}

function callFrames(content: ModelMessage["content"], count: CountText): number {
  let sum = 0;
  if (typeof content === "string") return sum;
  for (const part of content) {
    if (part.type === "tool-call" || part.type === "tool-result") sum += CALL_FRAME_UNITS + count(part.toolCallId);
  }
  return sum;
}

/**
 * About how many tokens a text or messages have, without asking a provider: four characters each in English or code, one in
 * Chinese, Japanese or Korean, two in other scripts; files by kind and size. Never throws. Remembers each message: do not change
 * one after that.
 * @param factor corrects the estimate for a model that counts differently.
 */
export function estimateTokens(content: string | readonly (UIMessage | ModelMessage)[], factor = 1): number {
  if (typeof content === "string") return Math.ceil(factor * unitsOfText(content));
  let units = 0;
  for (const message of content) units += "parts" in message ? unitsOfUIMessage(message) : unitsOfMessage(message);
  return Math.ceil(factor * units);
}
