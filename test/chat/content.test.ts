import type { UIMessageChunk } from "ai";
import { expect, test } from "vitest";
import { chunksOf, NONE, PENDING, RESPONSE, textIn, textOf, user } from "./client.ts";
import { openChat, exchange, type ChatOptions } from "./harness.ts";

/** One turn that says these chunks. */
async function say(chunks: readonly UIMessageChunk[], options: ChatOptions = {}) {
  const chat = await openChat(options);
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).push({ type: "start" }, ...chunks).end();
  const end = await a.done("r1");
  const [, answer] = await chat.stored();
  return { chat, a, end, answer, chunks: chunksOf(a.of("r1")) };
}

test("data parts: one with an id is replaced, one without is added, a transient one is sent and not kept", async () => {
  const { a, answer, chunks } = await say([
    { type: "data-status", id: "s", data: { pct: 10 } },
    { type: "data-ping", transient: true, data: 1 },
    { type: "data-note", data: "a" },
    { type: "data-status", id: "s", data: { pct: 90 } },
    { type: "data-note", data: "b" },
  ]);
  expect(answer?.parts.filter(({ type }) => type.startsWith("data-"))).toEqual([
    { type: "data-status", id: "s", data: { pct: 90 } },
    { type: "data-note", data: "a" },
    { type: "data-note", data: "b" },
  ]);
  expect(chunks.filter(({ type }) => type === "data-ping")).toHaveLength(1);
  const ping = a.of("r1").find(({ body }) => body?.includes("data-ping"));
  expect(ping).not.toHaveProperty("seq");
  const numbered = a.of("r1").filter(({ seq }) => seq !== undefined);
  expect(numbered.map(({ seq }) => seq)).toEqual(numbered.map((_, at) => at));
});

test("preliminary tool results are sent, and only the last one settles the call", async () => {
  const call = { toolCallId: "c1" } as const;
  const { answer, chunks } = await say([
    { type: "tool-input-available", ...call, toolName: "count", input: {} },
    { type: "tool-output-available", ...call, output: 1, preliminary: true },
    { type: "tool-output-available", ...call, output: 2, preliminary: true },
    { type: "tool-output-available", ...call, output: 3 },
    { type: "tool-output-available", ...call, output: "too late" },
    { type: "tool-output-error", ...call, errorText: "too late" },
  ]);
  expect(chunks.filter(({ type }) => type === "tool-output-available")).toHaveLength(3);
  const part = answer?.parts.find((one) => "toolCallId" in one);
  expect(part).toMatchObject({ state: "output-available", output: 3 });
  expect(part).not.toHaveProperty("preliminary", true);
});

test("metadata that a provider keeps only for a while is sent but not stored", async () => {
  const openai = { openai: { itemId: "item-1", reasoningEncryptedContent: "secret" } };
  const { answer } = await say([
    { type: "reasoning-start", id: "r", providerMetadata: openai },
    { type: "reasoning-delta", id: "r", delta: "" },
    { type: "reasoning-end", id: "r" },
    { type: "text-start", id: "t", providerMetadata: { ...openai, other: { kept: true } } },
    { type: "text-delta", id: "t", delta: "hi" },
    { type: "text-end", id: "t" },
  ]);
  expect(JSON.stringify(answer)).not.toContain("item-1");
  expect(JSON.stringify(answer)).not.toContain("secret");
  expect(answer?.parts).toEqual([
    { type: "text", text: "hi", state: "done", providerMetadata: { other: { kept: true } } },
  ]);
});

test("reasoning, files, sources and metadata are kept", async () => {
  const { answer } = await say([
    { type: "reasoning-start", id: "r" },
    { type: "reasoning-delta", id: "r", delta: "hm", providerMetadata: { p: { signature: "s" } } },
    { type: "reasoning-end", id: "r" },
    { type: "file", url: "data:text/plain,hi", mediaType: "text/plain" },
    { type: "source-url", sourceId: "s1", url: "https://example.com/", title: "Example" },
    { type: "message-metadata", messageMetadata: { tokens: 3 } },
  ]);
  expect(answer?.parts.map(({ type }) => type)).toEqual(["reasoning", "file", "source-url"]);
  expect(answer?.parts[0]).toMatchObject({ text: "hm", state: "done", providerMetadata: { p: { signature: "s" } } });
  expect(answer?.metadata).toEqual({ tokens: 3 });
});

test("chunks that would break a client are put right: deltas without a start, results of unknown calls, ends of nothing", async () => {
  const { answer, chunks } = await say([
    { type: "text-delta", id: "t", delta: "no start" },
    { type: "text-end", id: "t" },
    { type: "text-end", id: "never" },
    { type: "reasoning-end", id: "never" },
    { type: "tool-output-available", toolCallId: "unknown", output: 1 },
    { type: "tool-input-delta", toolCallId: "unknown", inputTextDelta: "{" },
    { type: "tool-approval-request", toolCallId: "unknown", approvalId: "x" },
  ]);
  expect(chunks.map(({ type }) => type)).toEqual([
    "start",
    "text-start",
    "text-delta",
    "text-end",
    "finish-step",
    "finish",
  ]);
  expect(textIn(answer)).toBe("no start");
});

test("tool inputs are objects, whatever the model said", async () => {
  const inputs: unknown[] = [null, "", [1], "not json", { ok: true }];
  const { answer } = await say(
    inputs.map((input, at) => ({ type: "tool-input-available", toolCallId: `c${at}`, toolName: "x", input })),
  );
  const stored = answer?.parts.flatMap((part) => ("input" in part ? [part.input] : []));
  expect(stored).toEqual([{}, {}, {}, {}, { ok: true }]);
});

test("a plain text response is one text with the request's id", async () => {
  const bytes = new TextEncoder().encode("Grüße 😀!");
  const chat = await openChat({
    respond: () =>
      new Response(
        new ReadableStream({
          start(controller) {
            for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
            controller.close();
          },
        }),
      ),
  });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await a.done("r1");
  const types = chunksOf(a.of("r1"));
  expect(types[1]).toEqual({ type: "text-start", id: "r1" });
  expect(textOf(a.of("r1"))).toBe("Grüße 😀!");
  const [, answer] = await chat.stored();
  expect(answer?.parts).toEqual([{ type: "text", text: "Grüße 😀!", state: "done" }]);
  expect(types[0]).toEqual({ type: "start", messageId: answer?.id });
});

test("a stopped plain text answer keeps what there is", async () => {
  const chat = await openChat({
    respond: () => new Response(new ReadableStream({ start: (out) => out.enqueue(new TextEncoder().encode("half")) })),
  });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await a.said("r1", "half");
  a.cancel("r1");
  expect(await a.done("r1")).toMatchObject({ outcome: "aborted" });
  expect(textIn((await chat.stored())[1])).toBe("half");
});

test("no answer at all: the turn ends, says so, and stores nothing", async () => {
  const answers = [
    undefined,
    new Response(null),
    new Response("", { headers: { "content-type": "text/event-stream" } }),
  ];
  const chat = await openChat({ respond: () => answers.shift() });
  const a = await chat.connect();
  for (const n of [1, 2, 3]) {
    a.request(`r${n}`, [user(`u${n}`)]);
    expect(await a.done(`r${n}`)).toMatchObject({ outcome: "completed", done: true });
  }
  expect((await a.done("r1")).body).toBe("No response was generated by the agent.");
  expect((await chat.stored()).map(({ role }) => role)).toEqual(["user", "user", "user"]);
});

test("an answer that only begins is none: no empty message is shown or stored", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).end();
  expect(await a.done("r1")).toMatchObject({ outcome: "completed" });
  expect(chunksOf(a.of("r1"))).toEqual([]);
  expect(await chat.stored()).toEqual([user("u1")]);
});

test("who waits for a turn without an answer is let go", async () => {
  const gate = Promise.withResolvers<undefined>();
  const chat = await openChat({ respond: () => gate.promise });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await a.flushed();
  const b = await chat.connect();
  expect(b.frames[0]).toMatchObject({ type: PENDING, id: "r1" });
  gate.resolve(undefined);
  await b.frame(({ type }) => type === NONE);
  await b.done("r1");
});

/** What users read of a bug. */
const PLAIN = "Something went wrong on the server, and the answer could not be finished. Please try again.";

test.each<[string, ChatOptions["respond"], string]>([
  [
    "thrown at once",
    () => {
      throw new Error("no key");
    },
    PLAIN,
  ],
  ["rejected", () => Promise.reject(new Error("no key")), PLAIN],
  ["not an error object", () => Promise.reject("just text"), PLAIN],
  ["an HTTP error", () => new Response("quota exceeded", { status: 429 }), "quota exceeded"],
])("an error before the stream, %s: one error frame that ends the turn", async (_, respond, message) => {
  const chat = await openChat({ respond });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const end = {
    type: RESPONSE,
    id: "r1",
    body: message,
    done: true,
    error: true,
    outcome: "error",
    messageIds: ["u1"],
  };
  expect(await a.done("r1")).toEqual(end);
  expect(await b.done("r1")).toEqual(end);
  expect(a.of("r1")).toHaveLength(1);
  expect(await chat.stored()).toEqual([user("u1")]);
  expect(chat.takeErrors()).toHaveLength(1);
});

test.each(["an error chunk", "a broken stream"])(
  "an error in the stream, as %s: what there was stays, and the chat goes on",
  async (how) => {
    const chat = await openChat();
    const [a, b] = [await chat.connect(), await chat.connect()];
    a.request("r1", [user("u1")]);
    const stage = await chat.stage();
    stage.say("half");
    await b.said("r1", "half");
    if (how === "an error chunk") stage.push({ type: "error", errorText: "overloaded" });
    else stage.fail(new Error("overloaded"));
    const told = how === "an error chunk" ? "overloaded" : PLAIN;
    for (const client of [a, b]) {
      expect(await client.done("r1")).toMatchObject({ error: true, body: told, outcome: "error" });
      expect(client.of("r1").filter(({ done }) => done)).toHaveLength(1);
      expect(chunksOf(client.of("r1")).map(({ type }) => type)).not.toContain("error");
    }
    expect(textIn((await chat.stored())[1])).toBe("half");
    expect(chat.responses).toMatchObject([{ status: "error", error: told }]);
    expect(chat.takeErrors()).toEqual(how === "a broken stream" ? ["overloaded"] : []);
    await exchange(chat, b, 2);
    expect(await chat.stored()).toHaveLength(4);
  },
);

test("an aborted model is no error", async () => {
  const { end } = await say([{ type: "abort", reason: "whatever" }]);
  expect(end).toMatchObject({ outcome: "completed" });
});

test("a message of 3 MB is taken, answered and stored whole", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1", "x".repeat(3_000_000))]);
  const stage = await chat.stage();
  expect(textIn(stage.messages[0]).length).toBe(3_000_000);
  stage.say("Long.").end();
  await a.done("r1");
  expect(textIn((await chat.stored())[0]).length).toBe(3_000_000);
  // The client sends the whole of it with every later message: that is no edit.
  a.request("r2", [user("u1", "x".repeat(3_000_000)), ...(await chat.stored()).slice(1), user("u2")]);
  (await chat.stage()).say("Again.").end();
  await a.done("r2");
  expect(await chat.stored()).toHaveLength(4);
});

test("a tool output of 3 MB reaches the clients whole, and its row cut, with a note", async () => {
  const output = { text: "y".repeat(3_000_000) };
  const { answer, chunks } = await say([
    { type: "tool-input-available", toolCallId: "c1", toolName: "read", input: {} },
    { type: "tool-output-available", toolCallId: "c1", output },
  ]);
  expect(chunks.find(({ type }) => type === "tool-output-available")).toMatchObject({ output });
  expect(answer?.metadata).toEqual({ compactedToolOutputs: ["c1"] });
  expect(JSON.stringify(answer).length).toBeLessThan(1_800_000);
});

test("the app's own cleaning is applied to what is stored, not to what is sent", async () => {
  const { answer, chunks } = await say([{ type: "data-secret", data: 42 }], {
    sanitize: (message) => ({ ...message, parts: message.parts.filter(({ type }) => type !== "data-secret") }),
  });
  expect(chunks.map(({ type }) => type)).toContain("data-secret");
  expect(answer?.parts.map(({ type }) => type)).not.toContain("data-secret");
});
