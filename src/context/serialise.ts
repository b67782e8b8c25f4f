import { cutMiddle } from "../message/cut-middle.ts";
import { isRecord } from "../base/json.ts";
import { BUDGET_TOOL, isToldByCode } from "../message/told-line.ts";
import { isToolPart, type Part, type ToolPart, toolName, type UIMessage } from "../message/types.ts";

/** How many characters of each thing the summarising model is shown. */
export interface SerialiseLimits {
  /** Of an input or an output of a tool. */
  readonly values: number;
  /** Of a text that somebody said. */
  readonly texts: number;
}

export const DEFAULT_SERIALISE_LIMITS: SerialiseLimits = { values: 2_000, texts: 12_000 };

/** A text of one line in JSON that is longer, and has no blanks, is data that nobody reads. */
const MAX_WORD = 1_000;

/** Marks of the text around messages. What is said in them must not look like these. */
const MARKS = /<(?=\/?(?:message|conversation|prior-summary|focus|agent)\b)/gi;
/** The same for the lines around calls: an output must not pass for what somebody said, or for another call. */
const CALL_MARKS = /^\[(?=call of |end of call\b)/gm;
const END_OF_CALL = "[end of call]";

/**
 * A message, or some of its `parts`, as text for a summary: who, id, calls with input and outcome, names of files. Long values
 * lose their middle. Reasoning is left out: it was for the model that thought it.
 */
export function serialiseMessage(
  message: Pick<UIMessage, "id" | "role" | "metadata">,
  parts: readonly Part[],
  limits: SerialiseLimits = DEFAULT_SERIALISE_LIMITS,
): string {
  const lines = parts.flatMap((part) => serialisePart(part, limits));
  if (lines.length === 0) return "";
  const role = isToldByCode(message) ? "tool" : message.role;
  return `<message id="${message.id}" role="${role}">\n${lines.join("\n")}\n</message>`;
}

/** Whether a message calls tools. */
export function callsTools(message: UIMessage): boolean {
  return message.parts.some((part) => isToolPart(part) && toolName(part) !== BUDGET_TOOL);
}

/** Text that cannot be taken for a mark of what stands around it. */
export function harmless(text: string): string {
  return text.replace(MARKS, "&lt;").replace(CALL_MARKS, "&#91;");
}

function serialisePart(part: Part, limits: SerialiseLimits): string[] {
  if (part.type === "text") return part.text.trim() === "" ? [] : [shorten(part.text, limits.texts)];
  if (part.type === "file") return [`[file ${part.filename ?? "without a name"}, ${part.mediaType}]`];
  if (part.type === "source-url") return [`[source ${part.url}]`];
  if (part.type === "source-document") return [`[source ${part.filename ?? part.title}]`];
  if (part.type === "steering-message") return [`[the user said meanwhile: ${shorten(spoken(part), limits.texts)}]`];
  if (isToolPart(part)) return toolName(part) === BUDGET_TOOL ? [] : serialiseTool(part, limits);
  return [];
}

/** What a message says that an answer took in. */
export function spoken(part: Extract<Part, { type: "steering-message" }>): string {
  const said: unknown[] = Array.isArray(part.parts) ? part.parts : [];
  return said
    .map((one) => {
      if (!isRecord(one)) return "";
      if (one.type === "text" && typeof one.text === "string") return one.text;
      return one.type === "file" ? `[file ${typeof one.filename === "string" ? one.filename : ""}]` : "";
    })
    .filter((text) => text !== "")
    .join("\n");
}

function serialiseTool(part: ToolPart, { values }: SerialiseLimits): string[] {
  const { approval } = part;
  const lines = [`[call of ${toolName(part)}, id ${part.toolCallId}]`, `input: ${asText(part.input, values)}`];
  if (approval?.approved === true) lines.push(`approved${because(approval.reason)}`);
  switch (part.state) {
    case "output-available":
      lines.push(`${part.preliminary === true ? "output so far" : "output"}: ${asText(part.output, values)}`);
      break;
    case "output-error":
      lines.push(`error: ${shorten(part.errorText ?? "", values)}`);
      break;
    case "output-denied":
      lines.push(`refused by a person${because(approval?.reason)}`);
      break;
    case "approval-requested":
      lines.push("waits for a person's approval");
      break;
    case "approval-responded":
      lines.push(approval?.approved === true ? "has not run yet" : `refused by a person${because(approval?.reason)}`);
      break;
    default:
      lines.push("no result yet");
  }
  lines.push(END_OF_CALL);
  return lines;
}

function because(reason: string | undefined): string {
  return reason === undefined || reason === "" ? "" : `: ${harmless(reason)}`;
}

function asText(value: unknown, limit: number): string {
  if (typeof value === "string") return shorten(isData(value) ? dataNote(value) : value, limit);
  return shorten(toJson(value), limit);
}

function toJson(value: unknown): string {
  try {
    return (
      JSON.stringify(value, (_key, one: unknown) => (typeof one === "string" && isData(one) ? dataNote(one) : one)) ??
      "none"
    );
  } catch {
    return "[cannot be shown]";
  }
}

/** Pictures and other bytes in text form. */
function isData(text: string): boolean {
  return text.length > MAX_WORD && !/[\s{}[\]]/.test(text.slice(0, MAX_WORD));
}

function dataNote(text: string): string {
  const type = /^data:([^;,]{1,100})/.exec(text)?.[1];
  return `[${type ?? "data"}, ${text.length} characters]`;
}

function shorten(text: string, limit: number): string {
  return harmless(cutMiddle(text, Number.MAX_SAFE_INTEGER, limit, (chars) => `[… ${chars} characters left out …]`));
}
