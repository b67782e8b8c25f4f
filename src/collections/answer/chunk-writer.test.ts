import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ChunkRecord } from "../contract.ts";
import type { Rows } from "../log/rows.ts";
import { ChunkWriter } from "./stream-to-collection.ts";
import type { ChunkBatch } from "./stream-to-collection.ts";
import { chunkRowId } from "./chunk.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A writer whose writes take 10 ms each, and how many chunks went into each. */
function open(batch: ChunkBatch) {
  const writes: number[] = [];
  const insertAll: Rows<ChunkRecord>["insertAll"] = async (rows) => {
    writes.push(rows.length);
    await new Promise((resolve) => setTimeout(resolve, 10));
    return true;
  };
  const rows = { insertAll } as unknown as Rows<ChunkRecord>;
  const keyOf = (row: ChunkRecord) => row.id;
  const writer = new ChunkWriter<ChunkRecord>({ rows, keyOf, when: undefined, producer: undefined, batch });
  let index = 0;
  const add = async () => {
    const id = chunkRowId("a", index);
    await writer.add({ id, generationId: "a", index: index++, type: "text", content: "x" });
  };
  return { writer, writes, add };
}

test("with a wait, what comes during a write waits too", async () => {
  const { writer, writes, add } = open({ waitMs: 100 });
  await add();
  await vi.advanceTimersByTimeAsync(100);
  expect(writes).toEqual([1]);
  await add();
  await vi.advanceTimersByTimeAsync(10);
  await add();
  await vi.advanceTimersByTimeAsync(99);
  expect(writes).toEqual([1]);
  await vi.advanceTimersByTimeAsync(1);
  expect(writes).toEqual([1, 2]);
  await vi.advanceTimersByTimeAsync(10);
  await writer.flush();
  expect(writer.written).toBe(3);
});

test("a write that is full does not wait for more", async () => {
  const { writer, writes, add } = open({ waitMs: 100, maxChunks: 2 });
  await add();
  await vi.advanceTimersByTimeAsync(100);
  for (let count = 0; count < 3; count++) await add();
  await vi.advanceTimersByTimeAsync(10);
  expect(writes).toEqual([1, 2]);
  await vi.advanceTimersByTimeAsync(110);
  expect(writes).toEqual([1, 2, 1]);
  await vi.advanceTimersByTimeAsync(10);
  await writer.flush();
});
