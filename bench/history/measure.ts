import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { percentile } from "../foundation/measure.ts";
import { PagedClient, type Trip } from "./client.ts";
import type { LongKind, ServerFigures } from "./server.ts";
import { type LongServer, startServer } from "./server-process.ts";

const OPENS = 10;
const WARM_TURNS = 5;
const TURNS = 20;
const PAGES = 50;
const PROMPT = "chunks=50 tag=x";
/** What is told to those who watch comes behind the end of a turn. */
const WATCHERS_MS = 20;
const KIB = 1024;
const MIB = 1024 ** 2;

/** What one length of history costs, by what it is the cost of. Units are part of the names. */
export type Costs = Readonly<Record<string, number>>;

/**
 * Makes the data of one agent with so many messages, and holds its first turn: `Think` summarises what is too long for
 * its model then, which a conversation that was really held would have done on its way.
 */
export async function seed(dir: string, kind: LongKind, count: number): Promise<Costs> {
  mkdirSync(dir, { recursive: true });
  const maker = await startServer(dir, kind);
  await maker.seed(count);
  await maker.stop();
  const server = await startServer(dir, kind);
  const { client } = await PagedClient.open(server.url);
  const before = await server.figures();
  const { ms } = await client.turn(PROMPT);
  const after = await server.figures();
  await client.close();
  await server.stop();
  return { "first turn of all, ms": ms, "first turn of all, processor of the server, ms": after.cpuMs - before.cpuMs };
}

/** Measures an agent with history, on a copy of its data, in a process of its own. */
export async function measureHistory(seeded: string, kind: LongKind, round: number): Promise<Costs> {
  const dir = `${seeded}-${round}`;
  cpSync(seeded, dir, { recursive: true });
  const server = await startServer(dir, kind);
  const cold = await open(server);
  const wakes: Opened[] = [];
  for (let i = 0; i < OPENS; i++) wakes.push(await open(server));
  const { client } = await PagedClient.open(server.url);
  const { client: watcher } = await PagedClient.open(server.url);
  const opened = await server.figures({ memory: true });

  for (let i = 0; i < WARM_TURNS; i++) await client.turn(PROMPT);
  const turns: Trip[] = [];
  await new Promise((resolve) => setTimeout(resolve, WATCHERS_MS));
  const before = await server.figures();
  const watched = watcher.bytesDown;
  for (let i = 0; i < TURNS; i++) turns.push(await client.turn(PROMPT));
  await new Promise((resolve) => setTimeout(resolve, WATCHERS_MS));
  const after = await server.figures();
  const seen = (watcher.bytesDown - watched) / TURNS;
  const talked = await server.figures({ memory: true });

  // From the newest page on, as a person scrolls.
  const { client: reader } = await PagedClient.open(server.url);
  const pages: Trip[] = [];
  const readBefore = await server.figures();
  for (let i = 0; i < PAGES; i++) {
    const page = await reader.older();
    if (page !== undefined) pages.push(page);
  }
  const readAfter = await server.figures();
  const scrolled = await server.figures({ memory: true });
  for (const one of [client, watcher, reader]) await one.close();
  await server.stop();

  const each = (from: ServerFigures, to: ServerFigures, key: keyof ServerFigures, count: number) =>
    (to[key] - from[key]) / count;
  return {
    "open, first in the process, ms": cold.trip.ms,
    "open, p50, ms": median(wakes.map(({ trip }) => trip.ms)),
    "open, processor of the server, ms": median(wakes.map(({ cpuMs }) => cpuMs)),
    "open, down, KiB": median(wakes.map(({ trip }) => trip.bytesDown)) / KIB,
    "page, p50, ms": median(pages.map(({ ms }) => ms)),
    "page, last of 50, ms": median(pages.slice(-5).map(({ ms }) => ms)),
    "page, processor of the server, ms": each(readBefore, readAfter, "cpuMs", pages.length),
    "page, down, KiB": median(pages.map(({ bytesDown }) => bytesDown)) / KIB,
    "turn, p50, ms": median(turns.map(({ ms }) => ms)),
    "turn, processor of the server, ms": each(before, after, "cpuMs", TURNS),
    "turn, up, KiB": median(turns.map(({ bytesUp }) => bytesUp)) / KIB,
    "turn, down to who asked, KiB": median(turns.map(({ bytesDown }) => bytesDown)) / KIB,
    "turn, down to who watches, KiB": seen / KIB,
    "turn, written to disk, KiB": each(before, after, "writtenBytes", TURNS) / KIB,
    "heap after open, MiB": opened.heapBytes / MIB,
    "heap after 25 turns, MiB": talked.heapBytes / MIB,
    "heap after 50 pages, MiB": scrolled.heapBytes / MIB,
    "process after open, MiB": opened.rssBytes / MIB,
    "process after 25 turns, MiB": talked.rssBytes / MIB,
    "process after 50 pages, MiB": scrolled.rssBytes / MIB,
  };
}

interface Opened {
  readonly trip: Trip;
  readonly cpuMs: number;
}

/** Wakes the agent by connecting to it, and lets it sleep again. */
async function open(server: LongServer): Promise<Opened> {
  const before = await server.figures();
  const { client, trip } = await PagedClient.open(server.url);
  const after = await server.figures();
  await client.close();
  await server.asleep();
  return { trip, cpuMs: after.cpuMs - before.cpuMs };
}

function median(values: readonly number[]): number {
  return percentile(values, 50);
}

/** Where the data of a length is. */
export function seededDir(dir: string, kind: LongKind, count: number): string {
  return join(dir, `${kind}-${count}`);
}
