import { parseClientTools } from "./client-tools.ts";
import type { ClientTool } from "./frames.ts";
import { isJsonObject, type JsonObject } from "./json.ts";

/** What the body of a chat request says. */
export interface ChatBody {
  /** The client's whole transcript. The elements are not checked here. */
  readonly messages: readonly unknown[];
  readonly trigger: "submit-message" | "regenerate-message";
  /** `undefined` when the client said nothing about tools; an empty list says that it has none. */
  readonly clientTools: readonly ClientTool[] | undefined;
  /** The app's own fields: everything else. `undefined` when there are none. */
  readonly body: JsonObject | undefined;
}

/** Checks a parsed body. @returns what is wrong with it, in words for its sender, when it is not one. */
export function parseChatBody(value: unknown, maxName: number): ChatBody | string {
  if (!isJsonObject(value)) return "The body must be a JSON object.";
  const { messages, trigger, clientTools: rawTools, ...rest } = value;
  if (!Array.isArray(messages)) return "The body's `messages` is missing or not a list.";
  const clientTools = parseClientTools(rawTools, maxName);
  if (clientTools === "malformed")
    return "The body's `clientTools` is malformed: it must be a list of { name, description?, parameters? }.";
  return {
    messages,
    trigger: trigger === "regenerate-message" ? trigger : "submit-message",
    clientTools,
    body: Object.keys(rest).length > 0 ? rest : undefined,
  };
}
