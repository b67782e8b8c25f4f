import { experimental_streamLanguageModelCall as streamCall, type ModelMessage, streamText } from "ai";
import type { Figure, Section } from "../foundation/section.ts";
import { mockModel } from "./mock-model.ts";

const CHUNKS = 20_000;
const ROUNDS = 5;
const MICROSECONDS = 1_000;
const messages: ModelMessage[] = [{ role: "user", content: `chunks=${CHUNKS} tag=x` }];

/** Three ways to ask a model for one step. */
const ways: readonly { readonly what: string; readonly read: () => Promise<number> }[] = [
  {
    what: "streamText, as a stream of UI chunks",
    read: () => count(streamText({ model: mockModel(), messages }).toUIMessageStream()),
  },
  {
    what: "streamText, as its own stream",
    read: () => count(streamText({ model: mockModel(), messages }).fullStream),
  },
  {
    what: "experimental_streamLanguageModelCall (what a step of Think uses)",
    read: async () => count((await streamCall({ model: mockModel(), messages })).stream),
  },
];

/** What a chunk of a model's stream costs on its way through the AI SDK, beside the provider's own `doStream`. */
export const callPaths: Section = {
  title: "One model call",
  notes: [
    `The same mock model, ${CHUNKS.toLocaleString("en-US")} text chunks, in turns; the median of ${ROUNDS} rounds. The floor is the provider's stream, read bare.`,
    "A step of Think takes the SDK's single-call primitive: it keeps the SDK's prompts, tool parsing, repair and types, and leaves out the stream that joins several steps. What is left to `doStream` is less than a commit costs.",
  ],
  async run(say) {
    const bare: number[] = [];
    const costs = ways.map((): number[] => []);
    for (let round = 0; round < ROUNDS; round++) {
      bare.push(await perChunk(direct));
      for (const [i, { read }] of ways.entries()) costs[i]?.push(await perChunk(read));
      say(`one model call, round ${round + 1} of ${ROUNDS}`);
    }
    return ways.map(({ what }, i): Figure => ({
      what,
      unit: "µs per chunk",
      ours: median(costs[i] ?? []),
      bare: median(bare),
      against: "doStream",
    }));
  },
};

async function direct(): Promise<number> {
  const { stream } = await mockModel().doStream({
    prompt: [{ role: "user", content: [{ type: "text", text: `chunks=${CHUNKS} tag=x` }] }],
  });
  return count(stream);
}

async function count(stream: AsyncIterable<unknown>): Promise<number> {
  let chunks = 0;
  for await (const _ of stream) chunks++;
  return chunks;
}

async function perChunk(read: () => Promise<number>): Promise<number> {
  const start = performance.now();
  const chunks = await read();
  return ((performance.now() - start) * MICROSECONDS) / chunks;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
