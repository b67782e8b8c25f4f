import { isRecord, tryParseJson } from "../base/json.ts";
import type { DeliveryRow } from "../store/delivery.ts";
import type { readToolCall } from "../store/tool-call.ts";

const MAX_SHOWN_INPUT = 600;
const TURNING = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
/** Letters and digits that nobody takes for each other. */
const CODE_SIGNS = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const CODE_LENGTH = 4;

/** What a question is called in an answer in words. It tells questions apart; who may answer is asked as for a button. */
export function codeOf({ secret }: DeliveryRow): string {
  const sign = (_: unknown, i: number) =>
    CODE_SIGNS[parseInt(secret?.slice(2 * i, 2 * i + 2) ?? "", 16) % CODE_SIGNS.length];
  return Array.from({ length: CODE_LENGTH }, sign).join("");
}

type Call = NonNullable<ReturnType<typeof readToolCall>>;

/** What is asked: of a call that asks in the middle of its work, what it asks about. */
export function aboutOf({ tool, input, parked }: Call): { readonly tool: string; readonly input: unknown } {
  const inner = tryParseJson(parked ?? "");
  if (isRecord(inner) && typeof inner.tool === "string") return { tool: inner.tool, input: inner.input };
  return { tool, input: tryParseJson(input ?? "") };
}

/** What is asked, with all that is decided about: bounded, and in the order in which it is written. */
export function questionText(call: Call): string {
  const { tool, input } = aboutOf(call);
  const json = input === undefined ? "" : JSON.stringify(input, null, 2);
  const more = json.length - MAX_SHOWN_INPUT;
  const cut = more > 0 ? `${json.slice(0, MAX_SHOWN_INPUT)} … (${more} more characters are not shown)` : json;
  // Signs that turn the direction of a text would have it read as another.
  const shown = cut.replaceAll(TURNING, (sign) => `\\u${sign.charCodeAt(0).toString(16)}`);
  const words = call.summary ?? `May I call ${tool}?`;
  return shown === "" ? words : `${words}\n\n\`\`\`json\n${shown.replaceAll("```", "'''")}\n\`\`\``;
}

/** What became of it, as people read it. */
export function decisionOf({ status, approver, decidedAt }: Call): string {
  const by = approver === null ? "" : ` by ${approver}`;
  if (status === "denied") return `Rejected${by}`;
  if (status === "expired") return "Expired: nobody answered in time";
  if (status === "asked") return "Still open";
  return decidedAt === null ? "No longer needed" : `Approved${by}`;
}
