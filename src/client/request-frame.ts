import type { UIMessage } from "../message/types.ts";
import type { ChatRequestFrame } from "../wire/frames.ts";
import { writeJson } from "../wire/json.ts";
import { bodyOf, type ChatTrigger, clientToolsOf, requestBody } from "./chat-request.ts";
import type { RequestSettings, SendOptions } from "./chat-types.ts";

/** What is asked for. */
export interface ChatAsk {
  readonly id: string;
  readonly messages: UIMessage[];
  readonly trigger: ChatTrigger;
  /** The message that is edited or answered anew. */
  readonly messageId: string | undefined;
  /** Messages that the agent has not got. */
  readonly unsent: ReadonlySet<string>;
}

/**
 * The frame that asks for a turn. A promise only when the app's data has to be waited for.
 * @throws what the app's functions throw; PerdureError `bad_input` when JSON cannot hold it.
 */
export function requestFrame(ask: ChatAsk, options: SendOptions, settings: RequestSettings): string | Promise<string> {
  const own = bodyOf(settings.body);
  const prepare = (ready: object | undefined): string | Promise<string> => {
    const all = { ...ready, ...options.body };
    const body = Object.keys(all).length > 0 ? all : undefined;
    const { unsent: _unsent, ...asked } = ask;
    const prepared = settings.prepareSendMessagesRequest?.({ ...asked, body });
    const finish = (more: { readonly body?: object } | undefined) =>
      write(ask, [ready, more?.body, options.body], settings);
    return prepared instanceof Promise ? prepared.then(finish) : finish(prepared);
  };
  return own instanceof Promise ? own.then(prepare) : prepare(own);
}

function write(
  { id, messages, trigger, unsent }: ChatAsk,
  bodies: readonly (object | undefined)[],
  settings: RequestSettings,
): string {
  const request = requestBody(messages, trigger, clientToolsOf(settings.tools), bodies, unsent);
  const init = { method: "POST" as const, body: writeJson(request, "The body of a chat request") };
  const frame: ChatRequestFrame = { type: "cf_agent_use_chat_request", id, init };
  return JSON.stringify(frame);
}
