import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { WebSocket } from "ws";
import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { seed } from "../history/measure.ts";
import { startServer } from "../history/server-process.ts";
import type { Row } from "./row.ts";

const MESSAGES = 2_000;
const WRITTEN = 10_000;
const WARM_TURNS = 5;
const TURNS = 20;
const PROMPT = "chunks=50 tag=x";
/** What is under way to who watches has come. */
const WATCHERS_MS = 200;
const KIB = 1024;

interface Frame {
  readonly id?: string;
  readonly done?: boolean;
  readonly error?: boolean;
  readonly body?: string;
}

/** As the public hook: reads the conversation over HTTP, and sends all that it shows with each message. */
class WholeClient {
  readonly #url: string;
  readonly #socket: WebSocket;
  #turns = 0;
  #done: ((frame: Frame) => void) | undefined;
  bytesDown = 0;

  private constructor(url: string) {
    this.#url = `${url}/agents/long/one`;
    this.#socket = new WebSocket(this.#url.replace("http", "ws"), { perMessageDeflate: false });
    this.#socket.on("message", (data: Buffer) => {
      this.bytesDown += data.byteLength;
      const frame = JSON.parse(data.toString("utf8")) as Frame;
      if (frame.done === true) this.#done?.(frame);
    });
  }

  static async open(url: string): Promise<WholeClient> {
    const client = new WholeClient(url);
    await new Promise((resolve, reject) => client.#socket.once("open", resolve).once("error", reject));
    return client;
  }

  /** @returns how long it took from the request to its end. */
  async turn(): Promise<number> {
    const shown = (await (await fetch(`${this.#url}/get-messages`)).json()) as unknown[];
    const id = `w${process.pid}-${++this.#turns}`;
    const said = { id: `u-${id}`, role: "user", parts: [{ type: "text", text: PROMPT }] };
    const body = JSON.stringify({ messages: [...shown, said], trigger: "submit-message" });
    const frame = JSON.stringify({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
    const begun = performance.now();
    const ended = new Promise<Frame>((resolve) => (this.#done = resolve));
    this.#socket.send(frame);
    const { error, body: why } = await ended;
    if (error === true) throw new Error(why ?? "The turn failed.");
    return performance.now() - begun;
  }

  async close(): Promise<void> {
    await new Promise((resolve) => this.#socket.once("close", resolve).close());
  }
}

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
  const client = await WholeClient.open(server.url);
  const watcher = await WholeClient.open(server.url);
  const settled = () => new Promise((resolve) => setTimeout(resolve, WATCHERS_MS));
  for (let i = 0; i < WARM_TURNS; i++) await client.turn();
  await settled();
  const before = [client.bytesDown, watcher.bytesDown] as const;
  const times: number[] = [];
  for (let i = 0; i < TURNS; i++) times.push(await client.turn());
  await settled();
  const [asked, watched] = [client.bytesDown - before[0], watcher.bytesDown - before[1]];
  await client.close();
  await watcher.close();
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
