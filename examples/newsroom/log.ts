import { openPerdureLog, openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";

/** The log at an address: a Durable Stream, or an agent of a Perdure host. Nothing else knows which one it is. */
export function openLog(url: string): RowLog {
  return url.includes("/v1/stream/") ? openStreamLog({ url }) : openPerdureLog({ url });
}
