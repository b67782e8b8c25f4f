import { streamedInput } from "./builder.ts";
import { isRecord } from "../base/json.ts";
import { storedToolInput } from "./tool-input.ts";
import {
  asPart,
  isPending,
  isTerminal,
  isToolPart,
  isToolType,
  type Part,
  type ToolPart,
  type UIMessage,
} from "./types.ts";
import { isUrl } from "./validate.ts";

/** What a call that was cut off says in place of a result. */
export const INTERRUPTED_TEXT = "The tool call was interrupted before it returned a result.";

export interface RepairOptions {
  /** The error text of calls that have no result. */
  readonly interruptedText?: string;
  /**
   * What replaces a call without a result, instead of the default error: the call with an end, or another part. A call without an
   * end, an impossible part or a throw falls back to the default. Called once per call; should be fast.
   */
  readonly repairInterruptedToolPart?: (part: ToolPart, message: UIMessage) => ToolPart | Part | undefined;
  /** Calls that wait for an answer stay open. */
  readonly keepPending?: boolean;
  /** Calls that get an end although others stay open: they ran in a stream that was cut. Only for streams. */
  readonly isCut?: (part: ToolPart) => boolean;
}

/**
 * Makes a message one that every provider accepts: each call has a result, each input is an object, nothing is still streaming,
 * each file has an address. One call without a result would fail every later request. Idempotent; never throws.
 * @returns the same object where there is nothing to repair.
 */
export function repairMessage(message: UIMessage, options: RepairOptions = {}): UIMessage {
  const parts: Part[] = [];
  const duplicates = message.role === "assistant" ? duplicateCalls(message.parts) : undefined;
  let changed = false;
  for (const part of message.parts) {
    const next = duplicates?.has(part) ? undefined : repairPart(part, message, options);
    if (next !== undefined) parts.push(next);
    if (next !== part) changed = true;
  }
  return changed ? { ...message, parts } : message;
}

/** Marks every text of a message as done. @returns the same object when all were. */
export function closeStreaming(message: UIMessage): UIMessage {
  const isOpen = (part: Part) => (part.type === "text" || part.type === "reasoning") && part.state === "streaming";
  return message.parts.some(isOpen) ? { ...message, parts: message.parts.map(closeText) } : message;
}

function repairPart(part: Part, message: UIMessage, options: RepairOptions): Part | undefined {
  if (isToolType(part.type)) {
    // Without an id, a name or a state it can be neither sent nor answered.
    return isToolPart(part) ? repairCall(part, message, options) : undefined;
  }
  if (part.type === "text" || part.type === "reasoning") {
    return typeof part.text === "string" ? closeText(part) : undefined;
  }
  if (part.type === "file" && part.providerReference === undefined && !hasUrl(part)) {
    return {
      type: "text",
      text: `[The file ${part.filename ?? ""} cannot be read.]`.replace("  ", " "),
      state: "done",
    };
  }
  if (part.type === "reasoning-file" && !hasUrl(part)) return undefined;
  if (part.type === "steering-message") return repairSteering(part);
  return part;
}

function repairCall(part: ToolPart, message: UIMessage, options: RepairOptions): Part {
  const kept = isTerminal(part) || (options.keepPending === true && isPending(part));
  const call = kept ? withRefusal(part) : endCall(part, message, options);
  if (!isToolPart(call)) return call;
  const input = storedToolInput(call, call.input);
  return asPart(input === call.input ? call : { ...call, input });
}

/** A provider that runs the tool itself is told of a denial by the answer to its question, and by nothing else. */
function withRefusal(part: ToolPart): ToolPart {
  if (part.state !== "output-denied" || part.providerExecuted !== true || part.approval?.approved === false)
    return part;
  return { ...part, approval: { ...part.approval, id: part.approval?.id ?? part.toolCallId, approved: false } };
}

function endCall(part: ToolPart, message: UIMessage, options: RepairOptions): ToolPart | Part {
  // The person has said no; only the record of it is missing.
  if (part.state === "approval-responded" && part.approval?.approved === false)
    return { ...part, state: "output-denied" };
  const own = askRepair(part, message, options);
  if (own === undefined) return interruptedCall(part, options.interruptedText);
  // What the class says by itself is the default too.
  const isUsual = isToolPart(own) && own.state === "output-error" && own.errorText === INTERRUPTED_TEXT;
  return isUsual ? { ...own, errorText: options.interruptedText ?? INTERRUPTED_TEXT } : own;
}

/** A call that was cut off, with the error that says so. */
export function interruptedCall(part: ToolPart, errorText = INTERRUPTED_TEXT): ToolPart {
  const { output: _output, preliminary: _preliminary, rawInput: _rawInput, approval, ...call } = part;
  const input = part.state === "input-streaming" ? streamedInput(part) : part.input;
  const ended: ToolPart = { ...call, input, state: "output-error", errorText };
  // A question that nobody answered is closed with the call.
  return approval?.approved === undefined ? ended : { ...ended, approval };
}

/** What the app puts in the place of a call that was cut off; undefined when it has nothing that can stand there. */
export function askRepair(part: ToolPart, message: UIMessage, options: RepairOptions): Part | undefined {
  try {
    const own: unknown = options.repairInterruptedToolPart?.(part, message);
    if (!isRecord(own) || typeof own.type !== "string") return undefined;
    const given = own as Part;
    if (isToolPart(given)) return isTerminal(given) && given.toolCallId === part.toolCallId ? given : undefined;
    return isToolType(given.type) || INNER.has(given.type) ? undefined : repairPart(given, message, {});
  } catch {
    return undefined;
  }
}

/** Parts that only the engine makes. */
const INNER: ReadonlySet<string> = new Set(["step-start", "steering-message"]);

/** Parts that repeat a call of the same step; of each call, the first that has ended is kept, or else the first. */
function duplicateCalls(parts: readonly Part[]): ReadonlySet<Part> {
  const extra = new Set<Part>();
  let step = new Map<string, ToolPart>();
  for (const part of parts) {
    if (part.type === "step-start") step = new Map();
    if (!isToolPart(part)) continue;
    const first = step.get(part.toolCallId);
    if (first === undefined) {
      step.set(part.toolCallId, part);
    } else if (isTerminal(part) && !isTerminal(first)) {
      extra.add(asPart(first));
      step.set(part.toolCallId, part);
    } else {
      extra.add(asPart(part));
    }
  }
  return extra;
}

function repairSteering(part: Extract<Part, { type: "steering-message" }>): Part | undefined {
  if (!Array.isArray(part.parts)) return undefined;
  const parts = part.parts.filter((inner) => {
    if (!isRecord(inner)) return false;
    if (inner.type === "text") return typeof inner.text === "string";
    return inner.type === "file" && (inner.providerReference !== undefined || hasUrl(inner));
  });
  return parts.length === part.parts.length ? part : { ...part, parts };
}

function hasUrl(part: { url?: unknown }): boolean {
  return typeof part.url === "string" && isUrl(part.url);
}

function closeText(part: Part): Part {
  if ((part.type !== "text" && part.type !== "reasoning") || part.state !== "streaming") return part;
  return { ...part, state: "done" };
}
