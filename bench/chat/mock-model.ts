import type { LanguageModel } from "ai";

type Model = Extract<LanguageModel, { specificationVersion: "v4" }>;
type CallOptions = Parameters<Model["doStream"]>[0];
type StreamPart = Awaited<ReturnType<Model["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

/*
 * A model whose every answer follows from its prompt: the last user message with `chunks=` says how many chunks
 * (`chunks`), what they are marked with (`tag`), how they are timed (`delay` ms each, or a timer every `burst`
 * chunks) and how many calls of the tool `echo` come first (`tools`). If part of the answer is there already, it
 * goes on behind it, so that a turn that was cut ends in the same text as one that was not.
 */

interface Plan {
  readonly chunks: number;
  readonly tag: string;
  readonly delay: number;
  readonly burst: number;
  readonly tools: number;
  /** Tool results that are there. */
  readonly results: number;
  /** Characters of the answer that are there. */
  readonly said: number;
}

function number(text: string, key: string, otherwise: number): number {
  const found = new RegExp(`(?:^|\\s)${key}=(\\d+)(?=\\s|$)`).exec(text)?.[1];
  return found === undefined ? otherwise : Number(found);
}

function textOf(content: string | readonly { type: string; text?: string }[]): string {
  return typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

function plan(prompt: CallOptions["prompt"]): Plan {
  const at = prompt.findLastIndex((message) => message.role === "user" && textOf(message.content).includes("chunks="));
  const driving = prompt[at];
  const text = driving?.role === "user" ? textOf(driving.content) : "";
  let results = 0;
  let said = "";
  for (const message of prompt.slice(at + 1)) {
    if (message.role === "assistant") said += textOf(message.content);
    if (message.role === "tool" || message.role === "assistant") {
      for (const part of message.content) if (part.type === "tool-result") results++;
    }
  }
  const spec = {
    chunks: number(text, "chunks", 10),
    tag: /(?:^|\s)tag=([A-Za-z0-9_-]+)(?=\s|$)/.exec(text)?.[1] ?? "x",
    delay: number(text, "delay", 0),
    burst: number(text, "burst", 0),
    tools: number(text, "tools", 0),
  };
  const whole = Array.from({ length: spec.chunks }, (_, i) => `${spec.tag}.${i} `).join("");
  return { ...spec, results, said: whole.startsWith(said) ? said.length : 0 };
}

function usage(output: number) {
  return {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  };
}

function* parts(reply: Plan): Generator<StreamPart> {
  yield { type: "stream-start", warnings: [] };
  const { results, tag } = reply;
  if (results < reply.tools) {
    const id = `call-${tag}-${results}`;
    const input = JSON.stringify({ tag, k: results });
    yield { type: "tool-input-start", id, toolName: "echo" };
    yield { type: "tool-input-delta", id, delta: input };
    yield { type: "tool-input-end", id };
    yield { type: "tool-call", toolCallId: id, toolName: "echo", input };
    yield { type: "finish", finishReason: { unified: "tool-calls", raw: undefined }, usage: usage(1) };
    return;
  }
  yield { type: "text-start", id: "t0" };
  let offset = 0;
  for (let i = 0; i < reply.chunks; i++) {
    const chunk = `${tag}.${i} `;
    const skip = Math.max(0, reply.said - offset);
    offset += chunk.length;
    if (skip < chunk.length) yield { type: "text-delta", id: "t0", delta: chunk.slice(skip) };
  }
  yield { type: "text-end", id: "t0" };
  yield { type: "finish", finishReason: { unified: "stop", raw: undefined }, usage: usage(reply.chunks) };
}

/** One part per pull, nothing ahead of demand. */
function stream(reply: Plan, signal: AbortSignal | undefined): ReadableStream<StreamPart> {
  const source = parts(reply);
  let deltas = 0;
  return new ReadableStream<StreamPart>(
    {
      async pull(controller) {
        const { done, value } = source.next();
        if (done === true) return controller.close();
        if (value.type === "text-delta") {
          const wait = reply.delay > 0 ? reply.delay : reply.burst > 0 && deltas % reply.burst === 0 ? 0 : undefined;
          deltas++;
          if (wait !== undefined) await new Promise((resolve) => setTimeout(resolve, wait));
          if (signal?.aborted === true) return controller.error(signal.reason);
        }
        controller.enqueue(value);
      },
    },
    { highWaterMark: 0 },
  );
}

/** The model of the benchmark's agent. */
export function mockModel(): Model {
  return {
    specificationVersion: "v4",
    provider: "mock",
    modelId: "mock",
    supportedUrls: {},
    doGenerate() {
      return Promise.reject(new Error("The mock model only streams."));
    },
    doStream: ({ prompt, abortSignal }) => Promise.resolve({ stream: stream(plan(prompt), abortSignal) }),
  };
}
