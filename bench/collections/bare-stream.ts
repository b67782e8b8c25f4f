import { DurableStream, IdempotentProducer } from "@durable-streams/client";

/** A stream with its own client, one end that appends and one that reads: the floor of everything on Durable Streams. */
export async function openBareStream(url: string) {
  const stream = await DurableStream.create({ url, contentType: "application/json" });
  const waiting = new Map<number, () => void>();
  const abort = new AbortController();
  const tail = await stream.stream<{ readonly n: number }>({ offset: "-1", live: true, signal: abort.signal });
  const ended = (async () => {
    for await (const { n } of tail.jsonStream()) waiting.get(n)?.();
  })().catch(() => undefined);
  let count = 0;
  return {
    stream,
    /** Resolves when the reader has it. */
    async roundTrip(): Promise<void> {
      const n = count++;
      const seen = new Promise<void>((resolve) => waiting.set(n, resolve));
      await stream.append(JSON.stringify({ n }));
      await seen;
      waiting.delete(n);
    },
    /** So many messages by the client that batches, until all are stored. */
    async batch(messages: readonly unknown[], producer: string): Promise<void> {
      const writer = new IdempotentProducer(stream, producer, { autoClaim: true });
      for (const message of messages) writer.append(JSON.stringify(message));
      await writer.flush();
      await writer.detach();
    },
    async close(): Promise<void> {
      abort.abort();
      await ended;
    },
  };
}
