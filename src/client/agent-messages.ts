import type { UIMessage } from "../message/types.ts";
import { agentFetch, type AgentFetchOptions } from "./agent-fetch.ts";
import { isMessage } from "./chat-frames.ts";

/** Where {@link getAgentMessages} looks: an agent, or the URL of its `get-messages`. */
export type AgentMessagesOptions = (AgentFetchOptions | { readonly url: string; readonly fetch?: typeof fetch }) & {
  readonly credentials?: RequestCredentials;
  readonly headers?: Record<string, string> | Headers;
};

/** An agent's stored conversation, for loaders and code without a connection; empty if it has none. Rejects if unreachable. */
export async function getAgentMessages<M extends UIMessage = UIMessage>(options: AgentMessagesOptions): Promise<M[]> {
  const { headers, credentials } = options;
  const init = { ...(headers !== undefined && { headers }), ...(credentials !== undefined && { credentials }) };
  const response =
    "url" in options
      ? await (options.fetch ?? fetch)(options.url, init)
      : await agentFetch(
          { ...options, path: options.path === undefined ? "get-messages" : `${options.path}/get-messages` },
          init,
        );
  return readMessages<M>(response);
}

/** The messages in an answer to `get-messages`; none when it is not one. */
export async function readMessages<M extends UIMessage>(response: Response): Promise<M[]> {
  const value: unknown = response.ok ? await response.json().catch(() => undefined) : undefined;
  if (!response.ok) console.warn(`get-messages was answered with ${response.status}; the chat begins empty.`);
  // The agent stores what the app put there; its parts are the app's types.
  return Array.isArray(value) ? (value.filter(isMessage) as M[]) : [];
}
