import { DurableStreamTestServer } from "@durable-streams/server";
import { openLocalLog, openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";

/** One place that keeps rows, while it runs. */
export interface TestPlace {
  /** A log of its own over the same rows, ready: what another process would open. Closed by `stop`. */
  open(): Promise<RowLog>;
  stop(): Promise<void>;
}

/** A kind of place. */
export interface TestBackend {
  readonly name: string;
  start(): Promise<TestPlace>;
}

/** This process's memory: all who open it have the same log. */
const local: TestBackend = {
  name: "local",
  start: async () => {
    const log = openLocalLog();
    return { open: async () => log, stop: () => log.close() };
  },
};

/** The published Durable Streams server, in memory. */
const durableStreams: TestBackend = {
  name: "durable streams",
  start: async () => {
    const server = new DurableStreamTestServer({ port: 0 });
    const url = `${await server.start()}/v1/stream/rows`;
    const logs: RowLog[] = [];
    return {
      open: async () => {
        // Listeners that throw are part of the tests.
        const log = openStreamLog({ url, onError: () => {} });
        logs.push(log);
        await log.ready;
        return log;
      },
      stop: async () => {
        // The server waits for its readers when it stops.
        await Promise.all(logs.map((log) => log.close()));
        await server.stop();
      },
    };
  },
};

/** Every kind of place there is; what is promised of collections is asked of each of them. */
export const backends: readonly TestBackend[] = [local, durableStreams];
