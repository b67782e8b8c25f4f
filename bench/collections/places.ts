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
  /** Two logs of the same new session, as two processes would have them, for as long as the work takes. */
  use<T>(work: (one: RowLog, other: RowLog) => Promise<T>): Promise<T>;
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
  return [
    place("memory", () => {
      const log = openLocalLog();
      return () => ({ log, close: () => log.close() });
    }),
    place("a Perdure agent", (name) => () => {
      const agent = new AgentClient({ host: perdure, agent: "room", name });
      return { log: openAgentLog({ agent, collections: "all" }), close: async () => agent.close() };
    }),
    place("Durable Streams", (name) => () => {
      const log = openStreamLog({ url: `${streams}/v1/stream/${name}` });
      return { log, close: () => log.close() };
    }),
  ];
}

interface Opened {
  readonly log: RowLog;
  close(): Promise<void>;
}

function place(name: string, openSession: (session: string) => () => Opened): BenchPlace {
  return {
    name,
    use: async (work) => {
      const open = openSession(`bench-${++sessions}`);
      const [one, other] = [open(), open()];
      await Promise.all([one.log.ready, other.log.ready]);
      try {
        return await work(one.log, other.log);
      } finally {
        await Promise.all([one.close(), other.close()]);
      }
    },
  };
}
