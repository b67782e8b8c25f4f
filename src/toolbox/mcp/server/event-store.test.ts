import type { JSONRPCMessage } from "@modelcontextprotocol/server";
import { expect, test } from "vitest";
import { RecentEvents } from "./event-store.ts";

const message = (n: number, size = 1): JSONRPCMessage => ({
  jsonrpc: "2.0",
  method: "notifications/message",
  params: { n, text: "x".repeat(size) },
});

async function after(store: RecentEvents, id: string): Promise<unknown[]> {
  const sent: unknown[] = [];
  await store.replayEventsAfter(id, {
    send: async (_id, { params }: { params?: { n?: unknown } } & JSONRPCMessage) => void sent.push(params?.n),
  });
  return sent;
}

test("a client gets what its stream missed, and nothing of another stream", async () => {
  const store = new RecentEvents();
  const first = await store.storeEvent("a", message(1));
  await store.storeEvent("b", message(2));
  const third = await store.storeEvent("a", message(3));
  await store.storeEvent("a", message(4));
  expect(await after(store, first)).toEqual([3, 4]);
  expect(await after(store, third)).toEqual([4]);
  expect(await store.getStreamIdForEventId(first)).toBe("a");
  expect(await after(store, "made-up")).toEqual([]);
});

test("the oldest go when there are too many, or too large ones", async () => {
  const store = new RecentEvents();
  const first = await store.storeEvent("a", message(0));
  for (let n = 1; n <= 500; n++) await store.storeEvent("a", message(n));
  expect(await store.getStreamIdForEventId(first)).toBeUndefined();
  const small = await store.storeEvent("a", message(501));
  for (let n = 0; n < 3; n++) await store.storeEvent("a", message(n, 1_000_000));
  expect(await store.getStreamIdForEventId(small)).toBeUndefined();
});
