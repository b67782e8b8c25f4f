import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { agentFileName } from "../../src/host/node/agent-file.ts";
import { withFolder } from "../foundation/agent.ts";
import { startClient } from "../foundation/client-process.ts";
import { percentile } from "../foundation/measure.ts";
import { PagedClient } from "../history/client.ts";
import { startServer } from "../history/server-process.ts";
import type { Row } from "./row.ts";

/** Fewer for a look: the disk has to hold them. */
const ASLEEP = Number(process.env.LIGHT_ASLEEP ?? 100_000);
const CONNECTED = Math.min(ASLEEP, Number(process.env.LIGHT_CONNECTED ?? 10_000));
const WAKES = 1_000;
const STARTS = 5;
const PROMPT = "chunks=20 tag=x";
const KIB = 1024;
const MIB = 1024 ** 2;
/** What `stat` counts in. */
const BLOCK_BYTES = 512;
/** Far enough ahead that none of them rings. */
const DUE_MS = 7 * 24 * 60 * 60 * 1000;
/** A step that has no factor in common with the number of agents, so that neighbours on disk are not woken in turn. */
const STRIDE = 7_919;

/**
 * A hundred thousand agents asleep, and ten thousand connected, each of which has said something. One has held its turn; the
 * others are copies of its file, with a row each in the host's index: what a host has of agents that it has made itself.
 */
export async function manyRows(): Promise<Row[]> {
  return withFolder(async (dir) => {
    const full = join(dir, "full");
    const kib = await populate(full);
    // What was copied is on the disk before anything is timed.
    execFileSync("sync");
    const [none, many] = await measureStarts(join(dir, "none"), full);
    const wakes = await measureWakes(full);
    const connected = await measureConnected(full);
    const all = ASLEEP.toLocaleString("en-US");
    const sockets = CONNECTED.toLocaleString("en-US");
    const against = "a host without agents";
    return [
      {
        what: `start of a host with ${all} agents asleep`,
        ...{ unit: "ms", ours: many.ms, floor: none.ms, against },
        aim: { timesFloor: 1.1 },
      },
      {
        what: "memory of its process",
        ...{ unit: "MiB", ours: many.rss / MIB, floor: none.rss / MIB, against },
        aim: { timesFloor: 1.1 },
      },
      {
        what: `disk for each of ${all} agents with a turn, and its row in the index`,
        ...{ unit: "KiB", ours: kib },
        aim: { atMost: 64 },
      },
      ...[50, 99].map((percent): Row => {
        const ours = percentile(wakes.asleep, percent);
        return {
          what: `one of ${all} wakes and tells its conversation over HTTP, p${percent}`,
          ...{ unit: "ms", ours, floor: percentile(wakes.awake, percent), against: "the same agent awake" },
          aim: { atMost: percent === 50 ? 10 : 50 },
        };
      }),
      {
        what: `memory on the heap for each of ${sockets} agents that have said something, are asleep and connected`,
        ...{ unit: "KiB", ours: connected.heap / KIB },
        aim: { atMost: 20 },
      },
      {
        what: "the same, as the system counts it",
        ...{ unit: "KiB", ours: connected.rss / KIB },
        aim: { atMost: 40 },
      },
    ];
  });
}

const nameOf = (at: number) => `a-${at % ASLEEP}`;

/** @returns how much of the disk an agent takes, in KiB */
async function populate(dir: string): Promise<number> {
  mkdirSync(dir, { recursive: true });
  const maker = await startServer(dir, "think");
  const { client } = await PagedClient.open(maker.url);
  await client.turn(PROMPT);
  await client.close();
  await maker.asleep();
  await maker.stop();
  const model = join(dir, agentFileName("Long/one"));
  for (let i = 0; i < ASLEEP; i++) copyFileSync(model, join(dir, agentFileName(`Long/${nameOf(i)}`)));
  const index = join(dir, "host.db");
  const db = new Database(index);
  const insert = db.prepare("INSERT INTO agent (id, at, awake) VALUES (?, ?, 0)");
  db.transaction(() => {
    // Every other one has something due.
    for (let i = 0; i < ASLEEP; i++) insert.run(`Long/${nameOf(i)}`, i % 2 === 0 ? Date.now() + DUE_MS + i : null);
  })();
  db.close();
  const folder = join(dir, "agents", "Long");
  if (readdirSync(folder).length <= ASLEEP) throw new Error("Some agents have no file.");
  return (statSync(model).blocks * BLOCK_BYTES + statSync(index).size / ASLEEP) / KIB;
}

interface StartFigures {
  readonly ms: number;
  readonly rss: number;
}

/** Both by turns, so that a busy moment of the machine meets both. */
async function measureStarts(none: string, full: string): Promise<[StartFigures, StartFigures]> {
  const dirs = [none, full];
  const all = dirs.map(() => ({ times: [] as number[], sizes: [] as number[] }));
  mkdirSync(none, { recursive: true });
  for (let i = 0; i < STARTS; i++) {
    for (const [at, dir] of dirs.entries()) {
      const begun = performance.now();
      const server = await startServer(dir, "think");
      all[at]?.times.push(performance.now() - begun);
      all[at]?.sizes.push((await server.figures({ memory: true })).rssBytes);
      await server.stop();
    }
  }
  const [first, second] = all.map(({ times, sizes }) => ({ ms: percentile(times, 50), rss: percentile(sizes, 50) }));
  if (first === undefined || second === undefined) throw new Error("Nothing was started.");
  return [first, second];
}

async function measureWakes(dir: string): Promise<{ readonly asleep: number[]; readonly awake: number[] }> {
  const server = await startServer(dir, "think");
  const read = async (name: string) => {
    const begun = performance.now();
    const shown = (await (await fetch(`${server.url}/agents/long/${name}/get-messages`)).json()) as unknown[];
    if (shown.length !== 2) throw new Error(`${name} has ${shown.length} messages.`);
    return performance.now() - begun;
  };
  await read(nameOf(0));
  const asleep: number[] = [];
  const awake: number[] = [];
  for (let i = 1; i <= WAKES; i++) {
    asleep.push(await read(nameOf(i * STRIDE)));
    awake.push(await read(nameOf(i * STRIDE)));
  }
  await server.stop();
  return { asleep, awake };
}

async function measureConnected(dir: string): Promise<{ readonly heap: number; readonly rss: number }> {
  const server = await startServer(dir, "think");
  const client = startClient();
  const urls = Array.from(
    { length: CONNECTED },
    (_, i) => `${server.url.replace("http", "ws")}/agents/long/${nameOf(i * STRIDE)}`,
  );
  // What it has loaded for the first is no cost of the others.
  await client.run({ type: "connect", urls: urls.slice(0, 1) });
  await server.asleep();
  const before = await server.figures({ memory: true });
  await client.run({ type: "connect", urls: urls.slice(1) });
  await server.asleep();
  const after = await server.figures({ memory: true });
  await client.run({ type: "disconnect" });
  client.close();
  await server.stop();
  const each = (key: "heapBytes" | "rssBytes") => (after[key] - before[key]) / (CONNECTED - 1);
  return { heap: each("heapBytes"), rss: each("rssBytes") };
}
