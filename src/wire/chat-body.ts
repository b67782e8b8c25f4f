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

/** Checks a parsed body. Gives the name of the offending field when it is not one. */
export function parseChatBody(value: unknown, maxName: number): ChatBody | string {
  if (!isJsonObject(value)) return "init.body";
  const { messages, trigger, clientTools: rawTools, ...rest } = value;
  if (!Array.isArray(messages)) return "init.body.messages";
  const clientTools = parseClientTools(rawTools, maxName);
  if (clientTools === "malformed") return "init.body.clientTools";
  return {
    messages,
    trigger: trigger === "regenerate-message" ? trigger : "submit-message",
    clientTools,
    body: Object.keys(rest).length > 0 ? rest : undefined,
  };
}
