import type { StreamChunk } from "@tanstack/ai";
import { createCollection, eq } from "@tanstack/db";
import {
  agentCollections,
  createClaims,
  createToolExecutionEffect,
  logCollectionOptions,
  makeDurableTool,
  streamToCollection,
} from "perdure/collections";
import type { ClaimRecord, RowLog, ToolCallRecord } from "perdure/collections";
import type { Figure } from "../foundation/section.ts";
import { percentile } from "../foundation/measure.ts";
import { openBareStream } from "./bare-stream.ts";
import { add } from "./effects.ts";
import { placesOf, type Servers, withServers } from "./places.ts";

const ROUNDS = 3;
const TRIPS = 40;
const CHUNKS = 1_000;
const CLAIMS = 50;
const SECOND = 1_000;

const trips = "stream client: 2 appends, each read by a tail";

/** What the backends cost beside the bare client of Durable Streams, on the same server. */
export function measureWire(): Promise<Figure[]> {
  return withServers(async (servers) => {
    const figures: Figure[] = [];
    for (const measure of [roundTrips, chunks, claims]) {
      for (const place of placesOf(servers)) {
        const { name } = place;
        figures.push(await place.use((one, other) => measure(name, servers, one, other)));
      }
    }
    return figures;
  });
}

/** A tool call that another reader of the session executes: from the call to its result. */
async function roundTrips(place: string, servers: Servers, caller: RowLog, executor: RowLog): Promise<Figure> {
  const of = (log: RowLog) =>
    createCollection(logCollectionOptions<ToolCallRecord>({ log, name: "calls", getKey: (row) => row.id }));
  const done = of(executor);
  const effect = createToolExecutionEffect({
    query: (q) => q.from({ c: done }).where(({ c }) => eq(c.status, "pending")),
    collection: done,
    tools: [add],
    implementations: { add: ({ n }) => n + 1 },
  });
  await effect.ready;
  const tool = makeDurableTool(add, of(caller), { generationId: "g" });
  let calls = 0;
  const ours = () =>
    times(TRIPS, async () => {
      const context = { toolCallId: `c${++calls}`, context: undefined, emitCustomEvent: () => undefined };
      await tool.execute?.({ n: 1 }, context);
    });
  const bare = await openBareStream(streamUrl(servers));
  const floor = () =>
    times(TRIPS, async () => {
      await bare.roundTrip();
      await bare.roundTrip();
    });
  const best = await bestMedian(ours, floor);
  await bare.close();
  await effect.dispose();
  return { what: `durable tool call and its result, p50, ${place}`, unit: "ms", ...best, against: trips };
}

/** An answer of many chunks, as they come from a model that never waits. */
async function chunks(place: string, servers: Servers, log: RowLog): Promise<Figure> {
  const { chunks: collection } = agentCollections(log);
  await collection.preload();
  const bare = await openBareStream(streamUrl(servers));
  const rows = Array.from({ length: CHUNKS }, (_, n) => ({
    type: "chunks",
    key: `g:${n}`,
    value: { content: "word " },
  }));
  let answers = 0;
  const ours: number[] = [];
  const floor: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const generationId = `g${++answers}`;
    floor.push(await perSecond(CHUNKS, () => bare.batch(rows, generationId)));
    ours.push(await perSecond(CHUNKS, () => streamToCollection(words(), { collection, generationId })));
  }
  await bare.close();
  const against = "stream client: its batching producer";
  const what = `\`streamToCollection\`, ${place}`;
  return { what, unit: "chunks/s", ours: Math.max(...ours), bare: Math.max(...floor), against };
}

async function* words(): AsyncGenerator<StreamChunk> {
  const base = { timestamp: 0, messageId: "m" };
  for (let n = 0; n < CHUNKS; n++) yield { ...base, type: "TEXT_MESSAGE_CONTENT", delta: "word " } as StreamChunk;
  yield { type: "RUN_FINISHED", runId: "r", threadId: "t", timestamp: 0 } as StreamChunk;
}

/** Claims that are taken and given back, one after the other. */
async function claims(place: string, servers: Servers, log: RowLog): Promise<Figure> {
  const collection = createCollection(
    logCollectionOptions<ClaimRecord>({ log, name: "claims", getKey: (row) => row.id }),
  );
  const held = createClaims({ collection, owner: "bench" });
  await held.ready;
  const bare = await openBareStream(streamUrl(servers));
  let count = 0;
  const ours: number[] = [];
  const floor: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    floor.push(await perSecond(CLAIMS, () => repeat(CLAIMS, () => bare.roundTrip().then(() => bare.roundTrip()))));
    ours.push(
      await perSecond(CLAIMS, () =>
        repeat(CLAIMS, async () => {
          const { claim } = await held.acquire(`thing:${++count}`);
          if ((await claim?.release()) !== true) throw new Error("A claim that nobody else wants was not had.");
        }),
      ),
    );
  }
  await bare.close();
  await held.dispose();
  const what = `claims taken and released, ${place}`;
  return { what, unit: "claims/s", ours: Math.max(...ours), bare: Math.max(...floor), against: trips };
}

let streams = 0;
function streamUrl(servers: Servers): string {
  return `${servers.streams}/v1/stream/bare-${++streams}`;
}

/** The lowest median of some rounds that are measured in turns. */
async function bestMedian(
  ours: () => Promise<number[]>,
  bare: () => Promise<number[]>,
): Promise<{ ours: number; bare: number }> {
  const medians = { ours: [] as number[], bare: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    medians.bare.push(percentile(await bare(), 50));
    medians.ours.push(percentile(await ours(), 50));
  }
  return { ours: Math.min(...medians.ours), bare: Math.min(...medians.bare) };
}

async function times(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const all: number[] = [];
  for (let i = 0; i < count; i++) {
    const begun = performance.now();
    await work();
    all.push(performance.now() - begun);
  }
  return all;
}

async function repeat(count: number, work: () => Promise<unknown>): Promise<void> {
  for (let i = 0; i < count; i++) await work();
}

async function perSecond(count: number, work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return (count * SECOND) / (performance.now() - begun);
}
