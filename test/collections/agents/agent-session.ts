import { agentCollections, rowsOf } from "perdure/collections";
import type { AgentCollections, AgentMessage, NewAgentMessage, RowCollection, RowLog } from "perdure/collections";
import { onTestFinished } from "vitest";
import type { TestBackend, TestPlace } from "../backends.ts";
import { ownLog } from "../own-log.ts";

/** A running backend, for all tests of a file; each test has rows of its own by the names of its agents. */
export interface Place {
  /** What one process has: its own log and collections. It ends with the test. */
  open(): Promise<{ log: RowLog; collections: AgentCollections }>;
  stop(): Promise<void>;
}

export async function startPlace(backend: TestBackend): Promise<Place> {
  const place: TestPlace = await backend.start();
  return {
    open: async () => {
      const log = await place.open();
      const collections = agentCollections(log);
      await Promise.all(Object.values(collections).map((one: { preload(): Promise<void> }) => one.preload()));
      onTestFinished(async () => {
        await Promise.all(Object.values(collections).map((one: { cleanup(): Promise<void> }) => one.cleanup()));
        // The one of this process's memory is everybody's.
        if (log.kind !== "local") await log.close();
      });
      return { log, collections };
    },
    stop: () => place.stop(),
  };
}

/** Inserts a message as a page would, and waits until it is there. */
export async function say(
  { messages }: Pick<AgentCollections, "messages">,
  targetAgent: string,
  content: string,
  more: Partial<NewAgentMessage> = {},
): Promise<string> {
  const id = crypto.randomUUID();
  await messages.insert({ id, actorId: "ann", targetAgent, content, ...more }).isPersisted.promise;
  return id;
}

/** Resolves with what `look` finds as soon as it finds something. The test's own limit ends a wait for nothing. */
export async function seen<TRow extends object, TFound>(
  collection: RowCollection<TRow>,
  look: (rows: TRow[]) => TFound | undefined | false,
): Promise<TFound> {
  const rows = rowsOf(collection);
  await rows.ready();
  return new Promise((resolve) => {
    const check = () => {
      const found = look(rows.all());
      if (found === undefined || found === false) return;
      stop();
      resolve(found);
    };
    const stop = rows.subscribe(() => queueMicrotask(check));
    check();
  });
}

/** The answers of an agent, in order, as soon as there are so many. */
export function replies(
  collections: Pick<AgentCollections, "messages">,
  agent: string,
  count: number,
): Promise<AgentMessage[]> {
  return seen<AgentMessage, AgentMessage[]>(collections.messages, (rows) => {
    const found = rows.filter(
      (row) => row.actorId === agent && row.role === "assistant" && row.toolCalls === undefined,
    );
    return found.length >= count && found;
  });
}

/** A promise and the key to it. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { opened: promise, open: resolve };
}

/** A log as a process has it that can be stopped, and later go on as if nothing had happened. */
export interface StoppableLog extends RowLog {
  stop(): void;
  goOn(): void;
}

export function stoppable(log: RowLog): StoppableLog {
  let stopped = gate();
  stopped.open();
  const own = ownLog(log, {
    write: async (write) => {
      await stopped.opened;
      return log.write(write);
    },
    close: async () => {},
  });
  return Object.assign(own, {
    stop: () => {
      stopped = gate();
    },
    goOn: () => stopped.open(),
  });
}
