import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { PagedClient } from "../history/client.ts";
import type { LongKind } from "../history/server.ts";
import { startServer } from "../history/server-process.ts";
import type { Row } from "./row.ts";

const WARM_TURNS = 5;
const ROUNDS = 4;
const TURNS = 10;
const STEPS = "tools=3 chunks=10 tag=x";
/** Fifty pieces of some 200 letters. */
const LONG_ANSWER = `chunks=50 tag=${"x".repeat(200)}`;
/** What a turn writes behind its end has been written. */
const SETTLED_MS = 200;
const KIB = 1024;

async function open(dir: string, kind: LongKind) {
  mkdirSync(dir, { recursive: true });
  const server = await startServer(dir, kind);
  const { client } = await PagedClient.open(server.url);
  for (let i = 0; i < WARM_TURNS; i++) await client.turn(STEPS);
  return { server, client };
}

/** What steps with tools cost, and what a long answer writes. Servers in processes of their own. */
export async function stepRows(): Promise<Row[]> {
  return withFolder(async (dir) => {
    const [think, chat] = [await open(join(dir, "think"), "think"), await open(join(dir, "chat"), "chat")];
    const times: { think: number[]; chat: number[] } = { think: [], chat: [] };
    // In turns, so that a busy moment of the machine meets both.
    for (let round = 0; round < ROUNDS; round++) {
      for (let i = 0; i < TURNS; i++) times.think.push((await think.client.turn(STEPS)).ms);
      for (let i = 0; i < TURNS; i++) times.chat.push((await chat.client.turn(STEPS)).ms);
    }
    const settled = () => new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    await settled();
    const before = await think.server.figures();
    for (let i = 0; i < TURNS; i++) await think.client.turn(LONG_ANSWER);
    await settled();
    const after = await think.server.figures();
    for (const { client, server } of [think, chat]) {
      await client.close();
      await server.stop();
    }
    return [
      {
        what: "3 tool steps and a text, `Think`, p50",
        ...{ unit: "ms", ours: percentile(times.think, 50), floor: percentile(times.chat, 50) },
        ...{ against: "the same with `AIChatAgent`", aim: { timesFloor: 1 } },
      },
      {
        what: "written to disk for an answer of 10 KiB, `Think`",
        ...{ unit: "KiB", ours: (after.writtenBytes - before.writtenBytes) / TURNS / KIB },
        aim: { atMost: 48 },
      },
    ];
  });
}
