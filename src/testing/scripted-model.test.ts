import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { APICallError, generateText, streamText, tool, stepCountIs } from "ai";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { countCalls } from "./count-calls.ts";
import { manualClock } from "./manual-clock.ts";
import { scriptedModel } from "./scripted-model.ts";

const add = tool({
  description: "Adds",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

/** Reads a stream to its end, and what it failed with: by a part, or by breaking. */
async function readAll(stream: AsyncIterable<{ type: string; error?: unknown }>) {
  const types: string[] = [];
  try {
    for await (const part of stream) {
      types.push(part.type);
      if (part.type === "error") return { types, error: part.error, broke: false };
    }
    return { types, error: undefined, broke: false };
  } catch (error) {
    return { types, error, broke: true };
  }
}

test("generateText gets text, reasoning, sources, files and usage", async () => {
  const model = scriptedModel([
    {
      text: ["Hel", "lo"],
      reasoning: "hm",
      sources: [{ url: "https://example.com/", title: "Example" }],
      files: [{ mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }],
      usage: { inputTokens: 100, cachedInputTokens: 40, outputTokens: 9, reasoningTokens: 4 },
    },
  ]);
  const result = await generateText({ model, prompt: "hi" });
  expect(result.text).toBe("Hello");
  expect(result.reasoningText).toBe("hm");
  expect(result.sources).toMatchObject([{ url: "https://example.com/", title: "Example" }]);
  expect(result.files[0]?.uint8Array).toEqual(new Uint8Array([1, 2, 3]));
  expect(result.finishReason).toBe("stop");
  expect(result.usage).toMatchObject({ inputTokens: 100, outputTokens: 9, totalTokens: 109 });
  expect(result.usage.inputTokenDetails).toMatchObject({ cacheReadTokens: 40, noCacheTokens: 60 });
  expect(result.usage.outputTokenDetails).toMatchObject({ reasoningTokens: 4, textTokens: 5 });
});

test("streamText gets the same in deltas, in order", async () => {
  const model = scriptedModel([{ reasoning: ["a", "b"], text: ["Hel", "lo"], finishReason: "length" }]);
  const result = streamText({ model, prompt: "hi" });
  const deltas: string[] = [];
  for await (const part of result.stream) {
    if (part.type === "text-delta" || part.type === "reasoning-delta") deltas.push(`${part.type} ${part.text}`);
  }
  expect(deltas).toEqual(["reasoning-delta a", "reasoning-delta b", "text-delta Hel", "text-delta lo"]);
  expect(await result.finishReason).toBe("length");
  expect(model.calls).toMatchObject([{ kind: "stream", index: 0, status: "finished" }]);
});

test("tool calls run, and the script sees the step and the text of the user", async () => {
  const model = scriptedModel(({ step, userText, tools }) =>
    step === 0 ? { toolCalls: [{ toolName: "add", input: { a: 2, b: 3 } }] } : `${userText}: ${tools.length} tools`,
  );
  const result = await generateText({ model, prompt: "sum", tools: { add }, stopWhen: stepCountIs(5) });
  expect(result.text).toBe("sum: 1 tools");
  expect(result.steps[0]?.finishReason).toBe("tool-calls");
  expect(result.steps[0]?.toolResults).toMatchObject([{ output: 5 }]);
  expect(model.calls.map(({ turn, step, index }) => ({ turn, step, index }))).toEqual([
    { turn: 0, step: 0, index: 0 },
    { turn: 0, step: 1, index: 1 },
  ]);
});

test("arguments of a tool stream in chunks, under one id", async () => {
  const model = scriptedModel([
    { toolCalls: [{ toolName: "add", input: { a: 1, b: 2 }, toolCallId: "call-1", chunkSize: 4 }] },
  ]);
  const result = streamText({ model, prompt: "x", tools: { add } });
  let text = "";
  for await (const part of result.stream) if (part.type === "tool-input-delta") text += part.delta;
  expect(text).toBe('{"a":1,"b":2}');
  expect(await result.toolCalls).toMatchObject([{ toolCallId: "call-1", input: { a: 1, b: 2 } }]);
});

test("content in the AI SDK's own form passes through, such as a call that the provider ran", async () => {
  const model = scriptedModel([
    {
      content: [
        { type: "tool-call", toolCallId: "s", toolName: "search", input: "{}", providerExecuted: true, dynamic: true },
        { type: "tool-result", toolCallId: "s", toolName: "search", result: "found", dynamic: true },
        { type: "text", text: "Found." },
      ],
    },
  ]);
  const result = streamText({ model, prompt: "x" });
  expect(await result.text).toBe("Found.");
  expect(await result.finishReason).toBe("stop");
  expect(await result.toolResults).toMatchObject([{ toolName: "search", output: "found" }]);
});

test("an error before the stream is retried by the AI SDK when it says so, and each try is a call", async () => {
  const overloaded = new APICallError({
    message: "overloaded",
    url: "http://model.invalid",
    requestBodyValues: {},
    statusCode: 503,
    isRetryable: true,
    responseHeaders: { "retry-after-ms": "1" },
  });
  const model = scriptedModel([{ error: overloaded }, "fine"]);
  expect((await generateText({ model, prompt: "x" })).text).toBe("fine");
  expect(model.calls.map((call) => call.status)).toEqual(["failed", "finished"]);
});

test.for(["part", "cut"] as const)("an error in the middle comes after what was said (%s)", async (errorAs) => {
  const model = scriptedModel([{ text: ["one ", "two ", "three"], error: new Error("lost"), errorAfter: 2, errorAs }]);
  const result = streamText({ model, prompt: "x", maxRetries: 0, onError: () => undefined });
  const seen = await readAll(result.stream);
  expect(seen.types.filter((type) => type === "text-delta")).toHaveLength(2);
  expect(seen.error).toMatchObject({ message: "lost" });
  expect(seen.broke).toBe(errorAs === "cut");
  expect(model.calls[0]?.status).toBe("failed");
});

test("delays pass on the clock that was given", async () => {
  const clock = manualClock();
  const model = scriptedModel([{ text: ["a", "b", "c"] }], { clock, delayMs: 100 });
  const deltas: string[] = [];
  const reading = (async () => {
    for await (const delta of streamText({ model, prompt: "x" }).textStream) deltas.push(delta);
  })();
  await clock.advance(99);
  expect(deltas).toEqual([]);
  await clock.advance(1);
  expect(deltas).toEqual(["a"]);
  await clock.advance(200);
  await reading;
  expect(deltas).toEqual(["a", "b", "c"]);
});

test.for([true, "before"] as const)("a call that hangs (%s) ends when it is aborted", async (hang) => {
  const model = scriptedModel([{ text: "so far", hang }]);
  const abort = new AbortController();
  const result = streamText({ model, prompt: "x", abortSignal: abort.signal, onError: () => undefined });
  const seen: string[] = [];
  for await (const part of result.stream) {
    seen.push(part.type);
    if (part.type === (hang === true ? "text-end" : "start")) abort.abort(new Error("stop"));
  }
  expect(seen.at(-1)).toBe("abort");
  expect(model.calls[0]?.status).toBe("aborted");
});

test("an abort ends generateText, also while it waits on the clock", async () => {
  const clock = manualClock();
  const model = scriptedModel([{ text: ["a", "b"], delayMs: 1000 }], { clock });
  const abort = new AbortController();
  const result = generateText({ model, prompt: "x", abortSignal: abort.signal, maxRetries: 0 });
  const failed = expect(result).rejects.toThrow("stop now");
  await clock.advance(1000);
  abort.abort(new Error("stop now"));
  await failed;
  expect(model.calls[0]?.status).toBe("aborted");
  expect(clock.pending()).toBe(0);
});

test("a reader that leaves ends the call and its timer", async () => {
  const clock = manualClock();
  const model = scriptedModel([{ text: ["a", "b"], delayMs: 1000 }], { clock });
  const { stream } = await model.doStream({ prompt: [] });
  const reader = stream.getReader();
  await reader.read();
  void reader.read();
  void reader.read();
  await clock.advance(0);
  expect(clock.pending()).toBe(1);
  await reader.cancel();
  expect(clock.pending()).toBe(0);
  expect(model.calls[0]?.status).toBe("aborted");
});

test("a list that is used up says so", async () => {
  const model = scriptedModel(["only one"]);
  await generateText({ model, prompt: "x" });
  await expect(generateText({ model, prompt: "x" })).rejects.toThrow("1 replies and this is call 2");
});

test("usage that is not given is the same for the same call", async () => {
  const usage = async () => (await generateText({ model: scriptedModel(["hello"]), prompt: "hi" })).usage;
  const first = await usage();
  expect(first.inputTokens).toBeGreaterThan(0);
  expect(first.outputTokens).toBeGreaterThan(0);
  expect(await usage()).toEqual(first);
});

test("calls are counted in a file, before they are answered", async () => {
  const dir = mkdtempSync(join(tmpdir(), "perdure-calls-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const counter = countCalls({ file: join(dir, "calls") });
  expect(counter.count()).toBe(0);
  const model = counter.wrap(scriptedModel(["a", { error: new Error("no") }, "c"]));
  await generateText({ model, prompt: "x" });
  await expect(generateText({ model, prompt: "x", maxRetries: 0 })).rejects.toThrow("no");
  for await (const _ of streamText({ model, prompt: "x" }).textStream);
  expect(countCalls({ file: join(dir, "calls") }).count()).toBe(3);
  expect(counter.perProcess()).toEqual([3]);
});
