import { chat, toolDefinition } from "@tanstack/ai";
import { expect, test } from "vitest";
import { z } from "zod";
import { scriptedText } from "./text-adapter.ts";

const user = (content: string) => [{ role: "user" as const, content }];
const add = toolDefinition({
  name: "add",
  description: "Adds.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
}).server(async ({ a, b }) => a + b);

async function typesOf(stream: AsyncIterable<{ type: string }>): Promise<string[]> {
  const types: string[] = [];
  for await (const chunk of stream) types.push(chunk.type);
  return types;
}

test("a script is played through chat(), with thoughts, tools and a record", async () => {
  const adapter = scriptedText([
    { reasoning: "hm", text: "Let me see. ", toolCalls: [{ id: "c1", name: "add", input: { a: 1, b: 2 } }] },
    "It is 3.",
  ]);
  const text = await chat({
    adapter,
    messages: user("1+2?"),
    systemPrompts: ["Be short."],
    tools: [add],
    stream: false,
  });
  expect(text).toBe("Let me see. It is 3.");
  expect(adapter.calls).toMatchObject([
    { index: 0, userText: "1+2?", step: 0, systemPrompts: ["Be short."], tools: ["add"], status: "finished" },
    { index: 1, userText: "1+2?", step: 2, status: "finished" },
  ]);
  expect(adapter.calls[1]?.messages.at(-1)).toMatchObject({ role: "tool", toolCallId: "c1", content: "3" });
});

test("a script may be a function, wait at a gate, and act between two pieces", async () => {
  const seen: string[] = [];
  const gate = Promise.withResolvers<void>();
  const adapter = scriptedText(({ userText }) => ({ text: [userText, gate.promise, () => seen.push("now"), "!"] }));
  const stream = chat({ adapter, messages: user("hi") });
  for await (const chunk of stream) {
    if (chunk.type === "TEXT_MESSAGE_CONTENT") seen.push(chunk.delta);
    if (chunk.type === "TEXT_MESSAGE_CONTENT" && chunk.delta === "hi") gate.resolve();
  }
  expect(seen).toEqual(["hi", "now", "!"]);
});

test("it fails the ways that models fail", async () => {
  const ask = (adapter: ReturnType<typeof scriptedText>) =>
    typesOf(chat({ adapter, messages: user("?"), debug: false }));
  expect((await ask(scriptedText([{ text: "par", error: "overloaded" }]))).at(-1)).toBe("RUN_ERROR");
  expect((await ask(scriptedText([{ text: "par", cut: true }]))).at(-1)).toBe("TEXT_MESSAGE_CONTENT");
  await expect(ask(scriptedText([{ text: "par", throws: new Error("reset") }]))).rejects.toThrow("reset");
  const empty = scriptedText([]);
  await expect(ask(empty)).rejects.toMatchObject({ code: "bad_state" });
  expect(empty.calls[0]?.status).toBe("failed");
});

test.each(["end", "throw", "error"] as const)("an abort stops it (%s), also while it waits", async (onAbort) => {
  const adapter = scriptedText([{ text: ["a", new Promise(() => {}), "b"] }], { onAbort });
  const abortController = new AbortController();
  const types: string[] = [];
  const read = async () => {
    for await (const chunk of chat({ adapter, messages: user("?"), abortController, debug: false })) {
      types.push(chunk.type);
      if (chunk.type === "TEXT_MESSAGE_CONTENT") abortController.abort(new Error("stop"));
    }
  };
  const thrown = await read().then(
    () => undefined,
    (error: Error) => error.message,
  );
  expect(thrown).toBe(onAbort === "throw" ? "stop" : undefined);
  expect(types.at(-1)).toBe("TEXT_MESSAGE_CONTENT");
  expect(adapter.calls[0]?.status).toBe("aborted");
});

test("it gives the object that is asked for", async () => {
  const adapter = scriptedText([{ structured: { n: 1 }, usage: { promptTokens: 2, completionTokens: 3 } }]);
  const outputSchema = z.object({ n: z.number() });
  expect(await chat({ adapter, messages: user("?"), outputSchema })).toEqual({ n: 1 });
  expect(adapter.calls).toMatchObject([{ structured: true, status: "finished" }]);
});
