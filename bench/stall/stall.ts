import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WebSocket } from "ws";
import { format, type Section, type Table } from "../foundation/section.ts";
import { type Input, inputs } from "./inputs.ts";

/** Each input is sent so often; the median of its longest stalls counts. */
const ROUNDS = 3;
const SETTLE_MS = 60;
const MICROSECONDS = 1e3;

/** How long the event loop of a host stands still because of one input that it takes. */
export const stall: Section = {
  title: "Stall",
  notes: [
    "The longest time in which the host did nothing else, for the worst inputs that were found: those that are taken, and those that are refused. Stall is by `monitorEventLoopDelay` in its process; CPU is what the thread of its loop computed meanwhile. Where they differ, the machine was busy with something else, or the loop waited for the disk. Garbage collection is part of both.",
    "Parse is one `JSON.parse` of the same text in the measuring process, as CPU time: what it costs at least to take it whole.",
    "The reference is one `JSON.parse` of 16 MiB of text, as a stall of the measuring process and as CPU: on a quiet machine they are the same.",
  ],
  run: (say) => measureAll(say),
};

/** As much as an input costs, in milliseconds. */
interface Cost {
  readonly max: number;
  readonly cpu: number;
}

async function measureAll(say: (text: string) => void): Promise<Table> {
  const wanted = process.argv.find((one) => one.startsWith("--input="))?.slice("--input=".length) ?? "";
  const dir = mkdtempSync(join(tmpdir(), "perdure-far-"));
  const [child, other] = [
    fork(new URL("./server.ts", import.meta.url)),
    fork(new URL("./far.ts", import.meta.url), [dir]),
  ];
  const [[url], [far]] = (await Promise.all([once(child, "message"), once(other, "message")])) as [[string], [string]];
  const rows: string[][] = [];
  const add = (what: string, { max, cpu }: Cost, bare: number) => {
    rows.push([what, format(max), format(cpu), format(bare)]);
    say(`${what}: ${format(max)} ms, ${format(cpu)} ms of CPU, parsing alone ${format(bare)} ms`);
  };
  try {
    for (const [n, input] of inputs.entries()) {
      if (!input.what.includes(wanted)) continue;
      const costs: Cost[] = [];
      for (let round = 0; round < ROUNDS; round++) costs.push(await measure({ url, far }, input, `a${n}-${round}`));
      add(
        input.what,
        { max: median(costs.map(({ max }) => max)), cpu: median(costs.map(({ cpu }) => cpu)) },
        parse(input),
      );
    }
  } finally {
    const gone = [once(child, "exit"), once(other, "exit")];
    child.send("stop");
    other.send("stop");
    await Promise.all(gone);
    rmSync(dir, { recursive: true, force: true });
  }
  const reference = timed(() => void JSON.parse(REFERENCE));
  add("reference", reference, reference.cpu);
  return { head: ["what", "stall, ms", "CPU, ms", "parse, ms"], rows };
}

const REFERENCE = JSON.stringify("x".repeat(16 * 1024 * 1024));

function median(figures: readonly number[]): number {
  return figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)] ?? Number.NaN;
}

function timed(work: () => void): Cost {
  const begun = performance.now();
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return { max: performance.now() - begun, cpu: (user + system) / MICROSECONDS };
}

/** Where the host under measurement is, and what it asks. */
interface Places {
  readonly url: string;
  readonly far: string;
}

async function measure({ url, far }: Places, input: Input, name: string): Promise<Cost> {
  const texts = input.texts();
  const send = await sending({ url, far }, input, name);
  for (const text of input.first?.() ?? []) await send([text]);
  await lagOf(url);
  await pause();
  await lagOf(url);
  await send(texts);
  await pause();
  return lagOf(url);
}

type Send = (texts: readonly string[]) => Promise<void>;

async function sending({ url, far }: Places, { to }: Input, name: string): Promise<Send> {
  if (to === "mcp") return posting(`${url}/mcp`);
  if (to === "post") return posting(`${url}/agents/talk/${name}/chat`);
  const socket = await connecting(`${url}/agents/${to}/${name}`);
  // The methods of the agent wait for the name of the other place.
  return to === "work" ? (texts) => working(socket, texts, far) : (texts) => sendAll(socket, texts);
}

function posting(address: string): Send {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  return async (texts) => {
    for (const body of texts) {
      const answer = await fetch(address, { method: "POST", body, headers });
      await answer.text();
    }
  };
}

async function connecting(agent: string): Promise<WebSocket> {
  const socket = new WebSocket(agent.replace("http", "ws"));
  await once(socket, "open");
  return socket;
}

let calls = 0;

/** Frames are answered in their order, so that a call behind them tells when they were handled. */
async function sendAll(socket: WebSocket, texts: readonly string[]): Promise<void> {
  const id = `behind-${++calls}`;
  const answered = answerOf(socket, id);
  for (const text of texts) socket.send(text);
  socket.send(JSON.stringify({ type: "rpc", id, method: "none", args: [] }));
  await answered;
}

/** Calls of methods that take their time. */
async function working(socket: WebSocket, texts: readonly string[], far: string): Promise<void> {
  for (const text of texts) {
    const answered = answerOf(socket, (JSON.parse(text) as { id: string }).id);
    socket.send(text.replaceAll("FAR", far));
    const answer = await answered;
    if (answer?.includes('"success":true') !== true) throw new Error(answer ?? "The socket was closed.");
  }
}

/** Undefined: the socket was closed, because a frame was refused whole. */
function answerOf(socket: WebSocket, id: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const look = (data: Buffer) => {
      if (data.length > 1_000 || !data.toString("utf8").includes(`"${id}"`)) return;
      socket.off("message", look);
      resolve(data.toString("utf8"));
    };
    socket.on("message", look);
    socket.once("close", () => resolve(undefined));
  });
}

async function lagOf(url: string): Promise<Cost> {
  return (await (await fetch(`${url}/lag`)).json()) as Cost;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

/** The texts, and what stands in them as text once more. */
function parse(input: Input): number {
  const texts = input.texts();
  return timed(() => {
    for (const text of texts) {
      const frame = JSON.parse(text) as { init?: { body?: string } };
      if (frame.init?.body !== undefined) JSON.parse(frame.init.body);
    }
  }).cpu;
}
