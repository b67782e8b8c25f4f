import { clientToolsProblem, parseClientTools } from "./client-tools.ts";
import type { ClientTool } from "./frames.ts";
import { isRecord } from "../base/json.ts";
import type { JsonObject } from "./json.ts";

/** The most messages that a client may send at once. Public clients send all that they have with every message. */
export const MAX_TRANSCRIPT_MESSAGES = 20_000;

/** What the body of a chat request says. */
export interface ChatBody {
  /** The client's whole transcript. The elements are not checked here. */
  readonly messages: readonly unknown[];
  /** What the message at a place says that stands there by name alone: its client has sent it before (`NamedMessage`). */
  readonly content?: (at: number) => unknown;
  readonly trigger: "submit-message" | "regenerate-message";
  /** `undefined` when the client said nothing about tools; an empty list says that it has none. */
  readonly clientTools: readonly ClientTool[] | undefined;
  /** The app's own fields: everything else. `undefined` when there are none. */
  readonly body: JsonObject | undefined;
}

/** What is wrong with a chat request, in words for its sender. */
export interface ChatRefusal {
  readonly reason: string;
  /** Default `bad_input`. */
  readonly code?: "too_large";
}

/** Checks a parsed body. @returns what is wrong with it when it is not one. */
export function parseChatBody(value: unknown): ChatBody | ChatRefusal {
  if (!isRecord(value)) return { reason: "The body must be a JSON object." };
  const { messages, trigger, clientTools: rawTools, ...rest } = value;
  if (!Array.isArray(messages)) return { reason: "The body's `messages` is missing or not a list." };
  if (messages.length > MAX_TRANSCRIPT_MESSAGES) return tooManyMessages();
  const clientTools = parseClientTools(rawTools);
  if (clientTools === "malformed" || clientTools === "too many") {
    const reason = `The body's \`clientTools\` ${clientToolsProblem(clientTools)}.`;
    return clientTools === "malformed" ? { reason } : { reason, code: "too_large" };
  }
  return {
    messages,
    trigger: trigger === "regenerate-message" ? trigger : "submit-message",
    clientTools,
    body: Object.keys(rest).length > 0 ? rest : undefined,
  };
}

/** The refusal of a transcript that is too long to be looked at. */
export function tooManyMessages(): ChatRefusal {
  return {
    code: "too_large",
    reason: `The body's \`messages\` holds more than ${MAX_TRANSCRIPT_MESSAGES} messages. Send the newest ones alone.`,
  };
}
