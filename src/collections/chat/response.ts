import { PerdureError } from "../../base/error.ts";
import type { AgentMessage } from "../contract.ts";
import { indexRows, type RowIndex } from "../log/row-index.ts";
import { rowsOf } from "../log/rows.ts";
import { waitUntil } from "../wait-until.ts";
import type { AgentCollectionsBase, AgentPeer, WatchForResponseOptions, MessageCollection } from "./config.ts";

/** How long a reply is waited for unless told otherwise. */
export const RESPONSE_TIMEOUT_MS = 120_000;

/** An agent that runs elsewhere, by its name and the messages that it shares with this process; agents here can ask it. */
export function agentPeer(name: string, collections: AgentCollectionsBase): AgentPeer {
  return {
    name,
    collections,
    watchForResponse: (requestId, options) => watchForResponse(name, collections.messages, requestId, options),
  };
}

/** Waits for an agent's reply; see `watchForResponse` of `Agent`. */
export async function watchForResponse(
  agentName: string,
  messages: MessageCollection,
  requestId: string,
  options: WatchForResponseOptions = {},
): Promise<{ content: string }> {
  const { timeout = RESPONSE_TIMEOUT_MS, callerName, signal } = options;
  signal?.throwIfAborted();
  await rowsOf(messages).ready();
  let about: RowIndex<AgentMessage> | undefined;
  const isAbout = (row: AgentMessage) => row.inReplyTo === requestId || row.requestId === requestId;
  const look = () => {
    const rows = about?.rows(requestId) ?? [];
    const reply = rows.find((row) => {
      const isReply = row.actorId === agentName && row.inReplyTo === requestId;
      return isReply && (callerName === undefined || row.targetAgent === callerName);
    });
    if (reply !== undefined) return { content: reply.content };
    const request = rows.find((row) => row.requestId === requestId && row.targetAgent === agentName);
    if (request?.error !== undefined) throw gaveUp(agentName, request.error);
    return undefined;
  };
  return waitUntil(
    (again) => {
      about = indexRows(messages, (row) => (isAbout(row) ? requestId : undefined), again);
      return () => about?.stop();
    },
    look,
    { signal, timeout, late: () => noResponse(agentName, requestId, timeout) },
  );
}

function noResponse(agentName: string, requestId: string, timeout: number): PerdureError {
  return new PerdureError(
    "timeout",
    `The agent "${agentName}" did not answer within ${timeout} ms (request "${requestId}"). It may be busy or not ` +
      `running; its answer may still come later.`,
  );
}

function gaveUp(agentName: string, error: string): PerdureError {
  return new PerdureError("call_failed", `The agent "${agentName}" could not answer: ${error}`);
}
