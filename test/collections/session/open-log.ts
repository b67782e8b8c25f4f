import { AgentClient } from "perdure/client";
import { openAgentLog, openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";

/** Servers are killed here: who has lost one comes back soon, and nobody complains. */
const RECONNECT_MS = 30;
const onError = () => undefined;

/** The log of a session by its address, with all of its tables. */
export function openSessionLog(url: string): { readonly log: RowLog; close(): Promise<void> } {
  if (url.includes("/v1/stream/")) {
    const log = openStreamLog({ url, onError });
    return { log, close: () => log.close() };
  }
  const { origin, pathname } = new URL(url);
  const [agent = "", name = ""] = pathname.split("/").slice(2);
  const delays = { minReconnectionDelay: RECONNECT_MS, maxReconnectionDelay: RECONNECT_MS };
  const client = new AgentClient({ host: origin, agent, name, ...delays });
  const log = openAgentLog({ agent: client, collections: "all", onError });
  return {
    log,
    close: async () => {
      await log.close();
      client.close();
    },
  };
}
