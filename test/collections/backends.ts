import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DurableStreamTestServer } from "@durable-streams/server";
import { Agent } from "perdure";
import { AgentClient } from "perdure/client";
import { openAgentLog, openLocalLog, openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { serve } from "perdure/node";

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

/** Keeps whatever collections its clients use. */
class Keeper extends Agent {
  override getCollections() {
    return { "*": {} };
  }
}

/** An agent in a real host, on real SQLite; every log has a socket of its own. */
const perdure: TestBackend = {
  name: "perdure agent",
  start: async () => {
    const dir = mkdtempSync(join(tmpdir(), "perdure-test-"));
    const host = await serve({ agents: { Keeper }, dir, port: 0, signals: false, graceMs: 1000 });
    const opened: { readonly log: RowLog; readonly client: AgentClient }[] = [];
    return {
      open: async () => {
        const client = new AgentClient({ agent: "Keeper", host: host.url });
        // Listeners that throw are part of the tests.
        const log = openAgentLog({ agent: client, collections: "all", onError: () => {} });
        opened.push({ log, client });
        await log.ready;
        return log;
      },
      stop: async () => {
        await Promise.all(opened.map(({ log }) => log.close()));
        for (const { client } of opened) client.close();
        await host.stop();
        rmSync(dir, { recursive: true, force: true });
      },
    };
  },
};

/** Every kind of place there is; what is promised of collections is asked of each of them. */
export const backends: readonly TestBackend[] = [local, durableStreams, perdure];
