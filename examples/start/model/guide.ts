import { generateId } from "ai";
import { replyTo, type GuideReply } from "./guide-reply.ts";
import { replyWithTools } from "./guide-tools.ts";
import type { Model, ModelCall, ModelPrompt, ModelStreamPart } from "./model-types.ts";

/** Milliseconds per word: readable, and slow enough to see it stream. */
const DEFAULT_PACE_MS = 25;

/** How fast the guide speaks, from `PERDURE_GUIDE_DELAY`: milliseconds per word, 0 for tests. */
export function guidePace(env: Readonly<Record<string, string | undefined>>): number {
  const given = env.PERDURE_GUIDE_DELAY;
  const ms = given === undefined || given === "" ? DEFAULT_PACE_MS : Number(given);
  return Number.isFinite(ms) && ms >= 0 ? ms : DEFAULT_PACE_MS;
}

const CHARACTERS_PER_TOKEN = 4;

/** The guide could read anything. It is said to have a small window, so that one can see it fill up. */
export const GUIDE_LIMITS = {
  "perdure/guide": { window: 8_000, input: 6_000 },
  // All the tools alone would fill it.
  "perdure/guide-with-tools": { window: 64_000, input: 48_000 },
};

/** What the guide fails with when it is asked for a failure. The message is meant for the user. */
export class GuideError extends Error {
  override readonly name = "GuideError";
}

/** What is said to a prompt, by one who may call these tools. */
type GuideScript = (prompt: ModelPrompt, tools: readonly string[]) => GuideReply;

/** The guide in a conversation in which it was asked about its tools. */
export function guideWithTools(paceMs: number): Model {
  return guide(paceMs, replyWithTools, "guide-with-tools");
}

/**
 * The built-in script in the shape of a language model: it streams its reply word by word and needs no network.
 * `reply` is what it says; its helpers say other things.
 */
export function guide(paceMs: number, reply: GuideScript = replyTo, modelId = "guide"): Model {
  return {
    specificationVersion: "v4",
    provider: "perdure",
    modelId,
    // It only tells what was sent, so nothing has to be downloaded for it.
    supportedUrls: { "*/*": [/.*/] },
    doGenerate: () => Promise.reject(new Error("The built-in guide only streams.")),
    doStream: (call) =>
      Promise.resolve({
        stream: toStream(
          speak(
            reply(
              call.prompt,
              (call.tools ?? []).map(({ name }) => name),
            ),
            call,
            paceMs,
          ),
        ),
      }),
  };
}

async function* speak(
  { reasoning, text, calls = [], error, isQuick = false }: GuideReply,
  { abortSignal, prompt, tools }: ModelCall,
  paceMs: number,
): AsyncGenerator<ModelStreamPart> {
  let said = 0;
  yield { type: "stream-start", warnings: [] };
  for (const [type, whole] of [
    ["reasoning", reasoning ?? ""],
    ["text", text],
  ] as const) {
    if (whole === "") continue;
    yield { type: `${type}-start`, id: type };
    for (const delta of isQuick ? toLines(whole) : toWords(whole)) {
      await pause(paceMs, abortSignal);
      said += delta.length;
      yield { type: `${type}-delta`, id: type, delta };
    }
    // A failure cuts the text off where it is.
    if (type === "reasoning" || error === undefined) yield { type: `${type}-end`, id: type };
  }
  if (error !== undefined) return yield { type: "error", error: new GuideError(error) };
  for (const call of calls) {
    const toolCallId = `call_${generateId()}`;
    const input = JSON.stringify(call.input);
    yield { type: "tool-input-start", id: toolCallId, toolName: call.toolName };
    yield { type: "tool-input-delta", id: toolCallId, delta: input };
    yield { type: "tool-input-end", id: toolCallId };
    yield { type: "tool-call", toolCallId, toolName: call.toolName, input };
  }
  const input = countTokens(prompt, tools);
  const output = Math.ceil(said / CHARACTERS_PER_TOKEN);
  yield {
    type: "finish",
    finishReason: { unified: calls.length === 0 ? "stop" : "tool-calls", raw: undefined },
    usage: {
      inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: output, text: output, reasoning: 0 },
    },
  };
}

/** Words with the white space around them: joined, they are the text. */
export function toWords(text: string): string[] {
  return text.match(/\s*\S+\s*$|\s*\S+/g) ?? [text];
}

function toLines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [text];
}

/** About what a model would have counted: it reads text, and everything else as JSON, but no bytes of files. */
function countTokens(prompt: ModelPrompt, tools: ModelCall["tools"]): number {
  const read = JSON.stringify([prompt, tools ?? []], (key, value: unknown) => (key === "data" ? undefined : value));
  return Math.ceil(read.length / CHARACTERS_PER_TOKEN);
}

/** @throws the signal's reason, as soon as it aborts. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    signal?.addEventListener("abort", stop, { once: true });
  });
}

function toStream(parts: AsyncGenerator<ModelStreamPart>): ReadableStream<ModelStreamPart> {
  return new ReadableStream<ModelStreamPart>({
    async pull(controller) {
      try {
        const { done, value } = await parts.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      } catch (error) {
        controller.error(error);
      }
    },
    cancel: async () => void (await parts.return(undefined)),
  });
}
