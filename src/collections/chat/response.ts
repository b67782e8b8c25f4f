import { PerdureError } from "../../base/error.ts";
import type { AgentMessage } from "../contract.ts";
import { logUtilsOf } from "../log/collection-options.ts";
import { rowsOf } from "../log/rows.ts";
import { startTimer } from "../../base/time.ts";
import type { AgentCollectionsBase, AgentPeer, WatchForResponseOptions, MessageCollection } from "./config.ts";

/** How long a reply is waited for unless told otherwise. */
export const RESPONSE_TIMEOUT_MS = 120_000;

/**
 * An agent that runs somewhere else, by its name and the messages that it shares with this process: to be asked by
 * agents here.
 */
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
  return new Promise((resolve, reject) => {
    const end = (settle: () => void) => {
      stopTimer();
      stop();
      signal?.removeEventListener("abort", aborted);
      settle();
    };
    const aborted = () => end(() => reject(signal?.reason as Error));
    const stopTimer = startTimer(timeout, () => end(() => reject(noResponse(agentName, requestId, timeout))));
    const stop = visitMessages(messages, (row) => {
      const isReply = row.actorId === agentName && row.inReplyTo === requestId;
      if (isReply && (callerName === undefined || row.targetAgent === callerName)) {
        end(() => resolve({ content: row.content }));
      } else if (row.requestId === requestId && row.targetAgent === agentName && row.error !== undefined) {
        end(() => reject(gaveUp(agentName, row.error ?? "")));
      }
    });
    signal?.addEventListener("abort", aborted, { once: true });
  });
}

/** Calls `visit` with each message that is there, later, and with each that comes or changes. */
function visitMessages(messages: MessageCollection, visit: (row: AgentMessage) => void): () => void {
  const rows = rowsOf(messages);
  const table = logUtilsOf(messages)?.confirmed;
  const all = () => rows.all().forEach(visit);
  let stopped = false;
  const unsubscribe =
    table === undefined
      ? rows.subscribe(all)
      : table.subscribe((changes, reset) => {
          if (reset) return all();
          // A visit may end the subscription.
          for (const { key } of changes) {
            const row = rows.get(key);
            if (row !== undefined && !stopped) visit(row);
          }
        });
  queueMicrotask(() => {
    if (!stopped) all();
  });
  return () => {
    stopped = true;
    unsubscribe();
  };
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
