import { AgentClient as PublicClient } from "agents/client";
import { Agent, callable } from "perdure";
import type { AppliedRowChange, Connection, ConnectionContext, RowSource } from "perdure";
import { AgentClient } from "perdure/client";
import { openAgentLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import type { ServedHost } from "perdure/node";
import { onTestFinished } from "vitest";

export interface Note {
  readonly id: string;
  readonly text: string;
}

/** Collections of any name, and a look at what its clients do. */
export class Room extends Agent {
  static {
    callable(this, "fill");
  }
  /** What the agents of this test have heard. */
  static heard: { changes: readonly AppliedRowChange[]; source: string }[] = [];
  static starts: string[] = [];
  /** The next write loses its receipt: its connection is closed before it. */
  static loseReceipts = 0;

  override onStart(): void {
    Room.starts.push(this.name);
  }
  override getCollections() {
    return { "*": {} };
  }
  override shouldConnectionBeReadonly(_connection: Connection, { request }: ConnectionContext): boolean {
    return new URL(request.url).searchParams.has("readonly");
  }
  override onCollectionChange(changes: readonly AppliedRowChange[], source: RowSource): void {
    Room.heard.push({ changes, source: source === "server" ? source : "client" });
    if (Room.loseReceipts > 0 && source !== "server") {
      Room.loseReceipts--;
      source.close(1012, "again, please");
    }
  }

  /** Closes all connections; they come back. */
  shake(): void {
    for (const connection of this.getConnections()) connection.close(1012, "again, please");
  }

  fill(name: string, count: number): void {
    for (let from = 0; from < count; from += 1000) {
      const changes = Array.from({ length: Math.min(1000, count - from) }, (_, n) => {
        const id = `k${String(from + n).padStart(6, "0")}`;
        return { table: name, key: id, operation: "insert" as const, value: { id, text: `text ${from + n}` } };
      });
      this.writeRows({ changes });
    }
  }

  note(id: string, text: string): void {
    this.collection<Note>("notes").upsert({ id, text });
  }
  notes(): Note[] {
    return this.collection<Note>("notes").list();
  }
  isFollowed(): number {
    return [...this.getConnections()].filter((connection) => connection.following.names.length > 0).length;
  }
}

/** Comes back at once. */
export const QUICK = { minReconnectionDelay: 1, maxReconnectionDelay: 20 } as const;

/** Our own client, closed at the end of the test. */
export function ownClient(host: ServedHost, options: { query?: Record<string, string>; agent?: string } = {}) {
  const client = new AgentClient({ agent: "Room", host: host.url, ...QUICK, ...options });
  onTestFinished(() => client.close());
  return client;
}

/** The public client, closed at the end of the test. */
export function publicClient(host: ServedHost, options: { query?: Record<string, string> } = {}): PublicClient {
  const client = new PublicClient({ agent: "Room", host: `127.0.0.1:${host.port}`, ...QUICK, ...options });
  onTestFinished(() => client.close());
  return client;
}

/** A log with these tables, ready. */
export async function followed(
  agent: Parameters<typeof openAgentLog>[0]["agent"],
  ...names: string[]
): Promise<RowLog> {
  const log = openAgentLog({ agent, collections: names });
  await log.ready;
  return log;
}

export const insert = (table: string, id: string, value: object = {}) => ({
  ...{ table, key: id, operation: "insert" as const },
  value: { id, ...value },
});

export const keysOf = (log: RowLog, table: string): string[] =>
  [...log.table(table).rows()].toSorted((a, b) => a.order - b.order).map(({ key }) => key);
