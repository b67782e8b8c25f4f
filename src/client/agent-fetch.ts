import { agentHttpUrl, type AgentLocation, type Query, withQuery } from "./agent-url.ts";

/** Where {@link agentFetch} goes. */
export interface AgentFetchOptions extends AgentLocation {
  readonly query?: Query | (() => Query | Promise<Query>);
  /** Default: the platform's. */
  readonly fetch?: typeof fetch;
}

/** One request to an agent. Rejects as `fetch` does; an answer with an error status is an answer. */
export async function agentFetch(options: AgentFetchOptions, init?: RequestInit): Promise<Response> {
  const query = typeof options.query === "function" ? await options.query() : options.query;
  const send = options.fetch ?? globalThis.fetch;
  return send(withQuery(agentHttpUrl(options), query ?? {}), init);
}
