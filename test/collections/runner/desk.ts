import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { DurableStreamTestServer } from "@durable-streams/server";
import type { RowLog, RunnerSession } from "perdure/collections";
import type { RowProducer } from "perdure/collections/log";
import { drainUntilIdle, openStreamLog } from "perdure/collections";
import { catchUp, checkpointsOf, producerOf } from "perdure/collections/worker";

export const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Resolves when the signal aborts. */
export const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener("abort", () => resolve(), { once: true });
  });

/** The Durable Streams server of a test file. */
export class StreamServer {
  private readonly server = new DurableStreamTestServer({ port: 0, host: "127.0.0.1", webhooks: true });
  private readonly ends: (() => Promise<void>)[] = [];
  url = "";

  async start(): Promise<void> {
    this.url = await this.server.start();
  }

  /** A log on a stream of this server, as another process would open it. */
  async open(path: string): Promise<RowLog> {
    const log = openStreamLog({ url: `${this.url}/v1/stream/${path}`, onError: () => {} });
    this.onStop(() => log.close());
    await log.ready;
    return log;
  }

  /** Something that ends with the server. */
  onStop(end: () => Promise<void>): void {
    this.ends.push(end);
  }

  async stop(): Promise<void> {
    // The server waits for its readers when it stops.
    for (const end of this.ends) await end();
    await this.server.stop();
  }
}

/** Where wakes are delivered to. */
export interface Hook {
  readonly url: string;
  /** Every delivery's wake id, with the answer's status once there is one. */
  readonly deliveries: { readonly wakeId: string; readonly generation: number; status?: number }[];
  /** What answers. */
  handle: (request: Request) => Promise<Response>;
  stop(): Promise<void>;
}

/** A server for webhooks: what a framework makes of node's requests. */
export async function startHook(): Promise<Hook> {
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const { wake_id: wakeId, generation } = JSON.parse(body) as { wake_id: string; generation: number };
      const delivery: Hook["deliveries"][number] = { wakeId, generation };
      hook.deliveries.push(delivery);
      const signature = String(incoming.headers["webhook-signature"]);
      const request = new Request(hook.url, { method: "POST", body, headers: { "webhook-signature": signature } });
      void hook.handle(request).then(async (response) => {
        delivery.status = response.status;
        outgoing.writeHead(response.status, { "content-type": "application/json" });
        outgoing.end(await response.text());
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const hook: Hook = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/wake`,
    deliveries: [],
    handle: async () => new Response("{}"),
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return hook;
}

/** Messages of a log, and an agent that answers them. */
export function inbox(log: RowLog) {
  const table = log.table("messages");
  const rows = () => [...table.rows()].toSorted((a, b) => a.order - b.order);
  const pending = () => rows().filter(({ value }) => value["processed"] === false);
  return {
    hasPendingWork: async () => pending().length > 0,
    texts: () => rows().map(({ value }) => String(value["content"])),
    send: (content: string) =>
      log.write({
        changes: [{ table: "messages", key: content, operation: "insert", value: { content, processed: false } }],
      }),
    /** Answers the oldest message. */
    answer: async (producer?: RowProducer) => {
      const [row] = pending();
      if (row === undefined) return;
      const reply = `re ${row.key}`;
      await log.write({
        changes: [
          { table: "messages", key: row.key, operation: "update", value: { ...row.value, processed: true } },
          { table: "messages", key: reply, operation: "insert", value: { content: reply, processed: true } },
        ],
        when: [{ table: "messages", key: row.key, version: row.version }],
        ...(producer === undefined ? {} : { producer }),
      });
    },
  };
}

/** The agent of these tests: answers all messages of the log. */
export async function answerAll(session: RunnerSession, log: RowLog): Promise<void> {
  await catchUp(session, [log]);
  const messages = inbox(log);
  const { completed } = await drainUntilIdle({
    ...messages,
    runCycle: () => messages.answer(producerOf("agent", session)),
    lifecycle: session,
    buildCheckpoint: () => checkpointsOf(log),
    signal: session.signal,
  });
  await session.complete({ done: completed });
}
