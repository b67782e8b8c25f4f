import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { seed } from "../history/measure.ts";
import { startServer } from "../history/server-process.ts";
import { ChatClient } from "./client.ts";
import type { Row } from "./row.ts";

const MESSAGES = 2_000;
const WRITTEN = 10_000;
const WARM_TURNS = 5;
const TURNS = 20;
const PROMPT = "chunks=50 tag=x";
/** What is under way to who watches has come. */
const WATCHERS_MS = 200;
const KIB = 1024;

interface Whole {
  readonly ms: number;
  /** To who asked, and to who watches, in each turn. */
  readonly asked: number;
  readonly watched: number;
}

async function measureWhole(dir: string, count: number): Promise<Whole> {
  mkdirSync(dir, { recursive: true });
  const server = await startServer(dir, "chat");
  if (count > 0) await server.seed(count);
  const agents = `${server.url}/agents/long`;
  const client = await ChatClient.open(agents, "one");
  const watcher = await ChatClient.open(agents, "one");
  // As the public hook: it reads the conversation over HTTP, and sends all that it shows with each message.
  const turn = async () => (await client.turn(PROMPT, await client.messages())).ms;
  const settled = () => new Promise((resolve) => setTimeout(resolve, WATCHERS_MS));
  for (let i = 0; i < WARM_TURNS; i++) await turn();
  await settled();
  const before = [client.bytesDown, watcher.bytesDown] as const;
  const times: number[] = [];
  for (let i = 0; i < TURNS; i++) times.push(await turn());
  await settled();
  const [asked, watched] = [client.bytesDown - before[0], watcher.bytesDown - before[1]];
  client.close();
  watcher.close();
  await server.stop();
  return { ms: percentile(times, 50), asked: asked / TURNS, watched: watched / TURNS };
}

/** What a long conversation adds to a turn. Servers in processes of their own, on this machine's loopback. */
export async function historyRows(): Promise<Row[]> {
  return withFolder(async (dir) => {
    const none = await measureWhole(join(dir, "none"), 0);
    const long = await measureWhole(join(dir, "long"), MESSAGES);
    const first = await seed(join(dir, "written"), "think", WRITTEN);
    return [
      {
        what: "a turn with 2,000 stored messages, all sent by its client, p50",
        ...{ unit: "ms", ours: long.ms, floor: none.ms, against: "a turn with no history" },
        aim: { timesFloor: 1.3 },
      },
      {
        what: "bytes of that turn to a public client that watches",
        ...{
          unit: "KiB",
          ours: long.watched / KIB,
          floor: long.asked / KIB,
          against: "the stream, as who asked got it",
        },
        aim: { timesFloor: 2 },
      },
      {
        what: "first turn over 10,000 messages written as rows",
        ...{ unit: "ms", ours: first["first turn of all, ms"] ?? Number.NaN },
        aim: { atMost: 60 },
      },
    ];
  });
}
