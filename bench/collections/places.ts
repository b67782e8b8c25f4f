import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { AgentClient } from "perdure/client";
import { openAgentLog, openLocalLog, openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";

/** Where the servers are. */
export interface Servers {
  readonly perdure: string;
  readonly streams: string;
}

/** A kind of backend. */
export interface BenchPlace {
  readonly name: string;
  /** `count` logs of the same new session, as so many processes would have them. */
  open(count: number): Promise<RowLog[]>;
}

/** Runs a work with both servers in another process. */
export async function withServers<T>(work: (servers: Servers) => Promise<T>): Promise<T> {
  // The server of Durable Streams tells of each slow write.
  const child = fork(fileURLToPath(new URL("./server.ts", import.meta.url)), {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  });
  try {
    const servers = await new Promise<Servers>((resolve, reject) => {
      child.once("message", (message) => resolve(message as Servers));
      child.once("exit", (code) => reject(new Error(`The servers ended with ${code}.`)));
    });
    return await work(servers);
  } finally {
    child.disconnect();
  }
}

let sessions = 0;

/** The three backends. */
export function placesOf({ perdure, streams }: Servers): BenchPlace[] {
  const place = (name: string, open: (session: string) => RowLog): BenchPlace => ({
    name,
    open: async (count) => {
      const session = `bench-${++sessions}`;
      const logs = Array.from({ length: count }, () => open(session));
      await Promise.all(logs.map((log) => log.ready));
      return logs;
    },
  });
  return [
    {
      name: "memory",
      open: async (count) => {
        const log = openLocalLog();
        return Array.from({ length: count }, () => log);
      },
    },
    place("a Perdure agent", (name) =>
      openAgentLog({ agent: new AgentClient({ host: perdure, agent: "room", name }), collections: "all" }),
    ),
    place("Durable Streams", (name) => openStreamLog({ url: `${streams}/v1/stream/${name}` })),
  ];
}
