import { fork } from "node:child_process";
import { once } from "node:events";
import { WebSocket } from "ws";
import { type Figure, type Section, format } from "../foundation/section.ts";
import { type Input, inputs } from "./inputs.ts";

/** Each input is sent so often; the median of its longest stalls counts. */
const ROUNDS = 3;
const SETTLE_MS = 60;

/** How long the event loop of a host stands still because of one input that it takes. */
export const stall: Section = {
  title: "Stall",
  notes: [
    "The longest time in which the host did nothing else, by `monitorEventLoopDelay` in its process, for the worst inputs that were found: those that are taken, and those that are refused.",
    "The floor is one `JSON.parse` of the same text, in the measuring process; where it is far above, the input is refused before anything parses it.",
    "Host and client share two cores. Garbage collection is part of it.",
  ],
  run: (say) => measureAll(say),
};

async function measureAll(say: (text: string) => void): Promise<Figure[]> {
  const child = fork(new URL("./server.ts", import.meta.url));
  const [url] = (await once(child, "message")) as [string];
  const figures: Figure[] = [];
  try {
    for (const [n, input] of inputs.entries()) {
      const lags: number[] = [];
      for (let round = 0; round < ROUNDS; round++) lags.push(await measure(url, input, `a${n}-${round}`));
      lags.sort((a, b) => a - b);
      const ours = lags[Math.floor(ROUNDS / 2)] ?? Number.NaN;
      const bare = parseTime(input.texts());
      figures.push({ what: input.what, unit: "ms", ours, bare, against: "JSON.parse" });
      say(`${input.what}: ${format(ours)} ms, parsing alone ${format(bare)} ms`);
    }
  } finally {
    const gone = once(child, "exit");
    child.send("stop");
    await gone;
  }
  return figures;
}

async function measure(url: string, input: Input, name: string): Promise<number> {
  const agent = `${url}/agents/${input.to === "box" ? "box" : "talk"}/${name}`;
  const texts = input.texts();
  const send = input.to === "post" ? posting(agent) : await connecting(agent);
  for (const text of input.first?.() ?? []) await send([text]);
  await lagOf(url);
  await pause();
  await lagOf(url);
  await send(texts);
  await pause();
  return lagOf(url);
}

function posting(agent: string): (texts: readonly string[]) => Promise<void> {
  return async (texts) => {
    for (const body of texts) {
      const answer = await fetch(`${agent}/chat`, { method: "POST", body });
      await answer.text();
    }
  };
}

/** Frames are answered in their order, so that a call behind them tells when they were handled. */
async function connecting(agent: string): Promise<(texts: readonly string[]) => Promise<void>> {
  const socket = new WebSocket(agent.replace("http", "ws"));
  await once(socket, "open");
  let calls = 0;
  return async (texts) => {
    const id = `behind-${++calls}`;
    const answered = new Promise<void>((resolve) => {
      const look = (data: Buffer) => {
        if (data.length < 1_000 && data.toString("utf8").includes(`"${id}"`)) {
          socket.off("message", look);
          resolve();
        }
      };
      socket.on("message", look);
    });
    for (const text of texts) socket.send(text);
    socket.send(JSON.stringify({ type: "rpc", id, method: "none", args: [] }));
    await answered;
  };
}

async function lagOf(url: string): Promise<number> {
  const answer = (await (await fetch(`${url}/lag`)).json()) as { max: number };
  return answer.max;
}

function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
}

function parseTime(texts: readonly string[]): number {
  const begun = performance.now();
  for (const text of texts) JSON.parse(text);
  return performance.now() - begun;
}
