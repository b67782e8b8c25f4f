import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DurableStreamTestServer } from "@durable-streams/server";
import { openStreamLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";
import type { RowValue } from "perdure/collections/log";

/** The published server in memory, with its streams and the logs that the tests opened on them. */
export interface StreamServer {
  /** The URL of a stream that no other test has. */
  fresh(): string;
  open(url: string, options?: Partial<Parameters<typeof openStreamLog>[0]>): RowLog;
  /** Lets the next request to the stream go wrong. */
  harm(url: string, fault: Parameters<DurableStreamTestServer["injectFault"]>[1]): void;
  stop(): Promise<void>;
}

export async function startStreamServer(): Promise<StreamServer> {
  const server = new DurableStreamTestServer({ port: 0 });
  const base = await server.start();
  const logs: RowLog[] = [];
  let count = 0;
  return {
    fresh: () => `${base}/v1/stream/s${++count}`,
    open: (url, options) => {
      const log = openStreamLog({ url, onError: () => {}, ...options });
      logs.push(log);
      return log;
    },
    harm: (url, fault) => server.injectFault(new URL(url).pathname, fault),
    stop: async () => {
      await Promise.all(logs.map((log) => log.close()));
      await server.stop();
    },
  };
}

/** Appends messages as any other writer would. */
export async function append(url: string, ...messages: unknown[]): Promise<void> {
  const headers = { "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(messages) });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
}

interface Message {
  readonly key: string;
  readonly headers: Record<string, unknown>;
}

/** All messages of a stream, without the place that the server adds to their headers. */
export async function messagesOf(url: string): Promise<Message[]> {
  const messages = (await (await fetch(`${url}?offset=-1`)).json()) as Message[];
  return messages.map(({ headers: { offset: _, ...headers }, ...message }) => ({ ...message, headers }));
}

export const insert = (table: string, key: string, value: RowValue = { id: key }) => ({
  table,
  key,
  value,
  operation: "insert" as const,
});

/** Rows by key, with their versions. */
export function rows(log: RowLog, table: string): Record<string, { value: RowValue; version: number }> {
  return Object.fromEntries([...log.table(table).rows()].map(({ key, value, version }) => [key, { value, version }]));
}

/** A free port of this machine. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
