import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, isStepCount, jsonSchema, type LanguageModel, streamText, tool } from "ai";
import { describe, expect, onTestFinished, test } from "vitest";
import { fakeOpenAI, type FakeOpenAI, type FakeOpenAIScript } from "./fake-openai.ts";

async function start(script: FakeOpenAIScript): Promise<FakeOpenAI> {
  const server = await fakeOpenAI(script);
  onTestFinished(() => server.close());
  return server;
}

const providers: Readonly<Record<string, (server: FakeOpenAI) => LanguageModel>> = {
  "@ai-sdk/openai-compatible": ({ url }) =>
    createOpenAICompatible({ name: "fake", baseURL: url, apiKey: "k", includeUsage: true })("m"),
  "@ai-sdk/openai": ({ url }) => createOpenAI({ baseURL: url, apiKey: "k" }).chat("m"),
};

const look = tool({
  inputSchema: jsonSchema<{ at: string }>({ type: "object", properties: { at: { type: "string" } } }),
  execute: ({ at }) => ({ seen: at }),
});

const quiet = { maxRetries: 0, onError: () => {} };

describe.each(Object.entries(providers))("%s", (_name, modelOf) => {
  test("streams text, and says what it cost", async () => {
    const server = await start([{ text: ["Hel", "lo"], usage: { inputTokens: 7, outputTokens: 2 } }]);
    const result = streamText({ model: modelOf(server), prompt: "hi" });
    expect(await Array.fromAsync(result.textStream)).toEqual(["Hel", "lo"]);
    expect(await result.usage).toMatchObject({ inputTokens: 7, outputTokens: 2 });
    expect(await result.finishReason).toBe("stop");
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({
      path: "/v1/chat/completions",
      headers: { authorization: "Bearer k" },
      body: { model: "m", stream: true, messages: [{ role: "user" }] },
      aborted: false,
    });
  });

  test("answers as a whole", async () => {
    const server = await start(["Hello"]);
    const { text, usage } = await generateText({ model: modelOf(server), prompt: "hi" });
    expect([text, usage.outputTokens]).toEqual(["Hello", 1]);
  });

  test("calls tools and is sent their results, streamed or not", async () => {
    const replies = [{ toolCalls: [{ name: "look", input: { at: "sea" }, id: "c1" }] }, "Blue."];
    const server = await start([...replies, ...replies]);
    const settings = { model: modelOf(server), prompt: "look", tools: { look }, stopWhen: isStepCount(3) };
    expect(await streamText(settings).text).toBe("Blue.");
    expect((await generateText(settings)).text).toBe("Blue.");
    for (const index of [1, 3]) {
      const [, assistant, result] = server.requests[index]?.body.messages ?? [];
      expect(assistant).toMatchObject({ tool_calls: [{ id: "c1", function: { arguments: '{"at":"sea"}' } }] });
      expect(result).toEqual({ role: "tool", tool_call_id: "c1", content: '{"seen":"sea"}' });
    }
  });

  test.each([
    { status: 401, message: "Incorrect API key provided." },
    { status: 404, message: "The model does not exist" },
    { status: 429, message: "Rate limit reached", retryAfterSeconds: 3 },
    { status: 500, message: "The server had an error" },
  ])("fails with $status", async ({ status, message, retryAfterSeconds }) => {
    const server = await start([{ status, retryAfterSeconds }]);
    const failed = await generateText({ model: modelOf(server), prompt: "hi", maxRetries: 0 }).catch((e: unknown) => e);
    expect(failed).toMatchObject({ statusCode: status, message: expect.stringContaining(message) as string });
    const headers = (failed as { responseHeaders: Record<string, string> }).responseHeaders;
    expect(headers["retry-after"]).toBe(retryAfterSeconds === undefined ? undefined : "3");
  });

  test("is asked again after an error that may pass", async () => {
    const server = await start([{ status: 429, retryAfterSeconds: 0 }, "at last"]);
    expect((await generateText({ model: modelOf(server), prompt: "hi" })).text).toBe("at last");
    expect(server.requests).toHaveLength(2);
  });

  test("breaks off in the middle", async () => {
    // The first piece has the role alone.
    const server = await start([{ text: ["one", "two", "three"], cutAfter: 3 }]);
    const result = streamText({ model: modelOf(server), prompt: "hi", ...quiet });
    const seen: string[] = [];
    const read = async () => {
      for await (const part of result.stream) if (part.type === "text-delta") seen.push(part.text);
    };
    await expect(read()).rejects.toThrow("Failed to process successful response");
    expect(seen).toEqual(["one", "two"]);
    expect(server.requests[0]?.aborted).toBe(false);
  });

  test.each([{ text: "one", hang: true }, { hang: "before" as const }])("falls silent: %j", async (reply) => {
    const server = await start([reply]);
    const stop = new AbortController();
    const { stream } = streamText({ model: modelOf(server), prompt: "hi", abortSignal: stop.signal, ...quiet });
    const seen: string[] = [];
    const reading = (async () => {
      for await (const part of stream) if (part.type === "text-delta") seen.push(part.text);
    })();
    await expect.poll(() => [server.requests.length, seen.join()]).toEqual([1, reply.text ?? ""]);
    expect(server.requests[0]?.aborted).toBe(false);
    stop.abort();
    await reading;
    await expect.poll(() => server.requests[0]?.aborted).toBe(true);
  });
});

test("reasoning comes before the text", async () => {
  const server = await start([{ reasoning: ["hm", "m"], text: "So." }]);
  const model = createOpenAICompatible({ name: "fake", baseURL: server.url })("m");
  const { reasoningText, text } = await generateText({ model, prompt: "hi" });
  expect([reasoningText, text]).toEqual(["hmm", "So."]);
});

test("the script can be a function, and a list can grow", async () => {
  const asked = await start(({ body }, index) => `${index}: ${String(body.messages?.length)} for ${body.model}`);
  const ask = async ({ url }: FakeOpenAI) =>
    (await generateText({ model: createOpenAI({ baseURL: url, apiKey: "k" }).chat("m"), prompt: "hi" })).text;
  expect([await ask(asked), await ask(asked)]).toEqual(["0: 1 for m", "1: 1 for m"]);

  const listed = await start(["one"]);
  listed.add("two");
  expect([await ask(listed), await ask(listed)]).toEqual(["one", "two"]);
  await expect(ask(listed)).rejects.toThrow("The script has 2 replies and this is request 3: add a reply.");
});

test("other paths and bodies that are no JSON are refused, and are no requests", async () => {
  const server = await start(["one"]);
  expect((await fetch(`${server.url}/models`)).status).toBe(404);
  expect((await fetch(`${server.url}/chat/completions`, { method: "POST", body: "{" })).status).toBe(400);
  expect(server.requests).toEqual([]);
});
