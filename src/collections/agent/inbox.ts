import { and, eq } from "@tanstack/db";
import type { MessageCollection } from "./config.ts";
import type { Collection, Context } from "@tanstack/db";
import type { AgentMessage } from "../contract.ts";
import { logUtilsOf } from "../log/collection-options.ts";
import { indexRows } from "../row-index.ts";
import type { RowIndex } from "../row-index.ts";
import { rowsOf } from "../rows.ts";
import { watchQuery } from "../watch.ts";
import type { RowQuery } from "../watch.ts";
import { isWaiting } from "./history.ts";
import { byPlace } from "./message.ts";

/** The messages that wait for an agent, kept current. */
export interface Inbox {
  readonly ready: Promise<void>;
  /** Oldest first, as they were confirmed. */
  read(): AgentMessage[];
  dispose(): Promise<void>;
}

/** Calls `wake` when messages come or go. `query`: which messages are work, instead of those that are unprocessed. */
export function openInbox(
  agentName: string,
  messages: MessageCollection,
  query: RowQuery<Context> | undefined,
  wake: () => void,
): Inbox {
  if (query !== undefined) return queryInbox(agentName, messages, query, wake);
  return logUtilsOf(messages) === undefined
    ? plainInbox(agentName, messages, wake)
    : logInbox(agentName, messages, wake);
}

const WAITING = "waiting";

/** By the log itself: neither held back by this process's own optimistic writes, nor slower with more messages. */
function logInbox(agentName: string, messages: MessageCollection, wake: () => void): Inbox {
  let index: RowIndex<AgentMessage> | undefined;
  let disposed = false;
  const start = () => {
    if (disposed) return;
    index = indexRows(messages, (row) => (isWaiting(agentName, row) ? WAITING : undefined), wake);
    wake();
  };
  return {
    ready: rowsOf(messages).ready().then(start),
    read: () => index?.rows(WAITING).toSorted(byPlace) ?? [],
    dispose: async () => {
      disposed = true;
      index?.stop();
    },
  };
}

/** A collection that is not on a log: only rows that its backend has confirmed. */
function plainInbox(agentName: string, messages: MessageCollection, wake: () => void): Inbox {
  const watch = watchQuery(
    // It is a collection of TanStack DB; RowCollection is the part of it that is used elsewhere.
    (q) =>
      q
        .from({ m: messages as unknown as Collection<AgentMessage, string> })
        .where(({ m }) => and(eq(m.targetAgent, agentName), eq(m.processed, false), eq(m.$hasPendingWrites, false))),
    wake,
  );
  return { ready: watch.ready, read: () => watch.rows().toSorted(byPlace), dispose: () => watch.dispose() };
}

function queryInbox(agentName: string, messages: MessageCollection, query: RowQuery<Context>, wake: () => void): Inbox {
  const rows = rowsOf(messages);
  const watch = watchQuery(query, wake);
  const read = () => {
    const listed = watch.rows().flatMap((row) => {
      const id = (row as { id?: unknown }).id;
      return (typeof id === "string" ? rows.get(id) : undefined) ?? [];
    });
    // The query may lag behind the log: what was answered is no work, whatever it says.
    return listed.filter((row) => isWaiting(agentName, row) || row.targetAgent !== agentName).toSorted(byPlace);
  };
  return { ready: Promise.all([rows.ready(), watch.ready]).then(wake), read, dispose: () => watch.dispose() };
}
