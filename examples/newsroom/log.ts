import { AgentClient } from "perdure/client";
import { openAgentLog, openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";

/** The log at an address: a Durable Stream, or an agent of a Perdure host. Nothing else knows which one it is. */
export function openLog(url: string): RowLog {
  if (url.includes("/v1/stream/")) return openStreamLog({ url });
  const { origin, pathname } = new URL(url);
  const [agent = "", name = ""] = pathname.split("/").slice(2);
  return openAgentLog({ agent: new AgentClient({ host: origin, agent, name }) });
}
