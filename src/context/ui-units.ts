import { shortenedTexts } from "../message/media-ref.ts";
import { INTERRUPTED_TEXT } from "../message/repair.ts";
import { isToolPart, type Part, type ToolPart, toolName, type UIMessage } from "../message/types.ts";
import { unitsOfFile } from "./media-units.ts";
import { type CountText, Remembered, unitsOfJson, unitsOfText } from "./text-units.ts";
import { MESSAGE_UNITS, unitsOfCall, unitsOfResult } from "./units.ts";

const known = new Remembered<UIMessage>();

/** What a stored message weighs when sent, unless a tool shows its output differently. Cached: do not change it after that. */
export function unitsOfUIMessage(message: UIMessage, count: CountText = unitsOfText): number {
  return known.of(message, count, () => unitsOfUIParts(message.parts, undefined, count));
}

/** What is known of a part: what its file, or the result of its call, weighs. Undefined: as much as is stored. */
type KnownUnits = (part: Part) => number | undefined;

/** What a run of parts of one message weighs, with what is added around the messages that they become. */
export function unitsOfUIParts(parts: readonly Part[], shown?: KnownUnits, count: CountText = unitsOfText): number {
  let sum = 0;
  // A step becomes one message, and one more when tools have answered in it.
  let said = false;
  let answered = false;
  const endStep = () => {
    sum += MESSAGE_UNITS * (Number(said) + Number(answered));
    said = false;
    answered = false;
  };
  for (const part of parts) {
    if (part.type === "step-start" || isSteering(part)) endStep();
    const units = unitsOfUIPart(part, shown, count);
    sum += units;
    if (units === 0 || isSteering(part)) continue;
    said = true;
    if (isToolPart(part) && part.providerExecuted !== true) answered = true;
  }
  endStep();
  return sum;
}

/** What one part weighs, without what is added around its message. What is not sent weighs nothing. */
export function unitsOfUIPart(part: Part, shown?: KnownUnits, count: CountText = unitsOfText): number {
  if (isToolPart(part)) {
    const called = unitsOfCall(toolName(part), part.input ?? part.rawInput, count);
    return called + (shown?.(part) ?? unitsOfOutput(part, count));
  }
  if (isSteering(part)) {
    return part.parts.reduce((sum, one) => sum + unitsOfUIPart(one, undefined, count), MESSAGE_UNITS);
  }
  switch (part.type) {
    case "text":
    case "reasoning":
      return count(part.text);
    case "file":
    case "reasoning-file":
      return shown?.(part) ?? unitsOfFile(part.mediaType, part.url);
    case "custom":
      return unitsOfJson({ type: part.type, kind: part.kind, providerOptions: part.providerMetadata }, count);
    default:
      return 0;
  }
}

/** What the result of a call weighs as it is stored, with what is added around it. */
export function unitsOfOutput(part: ToolPart, count: CountText = unitsOfText): number {
  return unitsOfResult(toolName(part), outputOf(part), count) + unitsElsewhere(part.output, count);
}

/** What was taken out of an output is sent with it all the same. It weighs as its beginning does. */
function unitsElsewhere(output: unknown, count: CountText): number {
  if (output === undefined) return 0;
  return shortenedTexts(output).reduce(
    (sum, { text, missing }) => sum + (count(text, "data") / text.length) * missing,
    0,
  );
}

/** What the model reads as the result. A call that has none gets one. */
function outputOf(part: ToolPart): Parameters<typeof unitsOfResult>[1] {
  switch (part.state) {
    case "output-available":
      return { type: "json", value: part.output as never };
    case "output-error":
      return { type: "error-text", value: part.errorText ?? "" };
    case "output-denied":
      return { type: "error-text", value: part.approval?.reason ?? "Tool call execution denied." };
    default:
      return { type: "error-text", value: INTERRUPTED_TEXT };
  }
}

/** What the user said in the middle of an answer. */
function isSteering(part: Part): part is Part & { readonly parts: readonly Part[] } {
  return (part.type as string) === "steering-message" && Array.isArray((part as { parts?: unknown }).parts);
}
