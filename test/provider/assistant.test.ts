import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { CONTINUE_PROMPT } from "perdure/chat";
import { fakeOpenAI, type FakeOpenAI, type FakeOpenAIScript } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { openTalk, settings, startAgents, type Talk, watchLog } from "../start/talk.ts";

const KEY = "sk-test-1234567890abcdef";

/** The real assistant, the real provider code, and a server that plays a script. */
async function start(script: FakeOpenAIScript): Promise<{ talk: Talk; server: FakeOpenAI; log: string[] }> {
  const server = await fakeOpenAI(script);
  onTestFinished(() => server.close());
  settings({ OPENAI_BASE_URL: server.url, OPENAI_API_KEY: KEY, PERDURE_MODEL: "tiny" });
  const log = watchLog();
  return { talk: await openTalk(await startAgents()), server, log };
}

/** Told in the chat and in one line of the log, without a key or a stack. */
function expectTold(log: readonly string[], error: string | undefined, ...texts: readonly string[]): void {
  for (const text of texts) expect(error).toContain(text);
  expect(log).toEqual([`[conversation first] ${error}`]);
  for (const line of [error, ...log]) {
    expect(line).not.toContain("sk-");
    expect(line).not.toContain("    at ");
    expect(line).not.toContain("\n");
  }
}

test("text streams from the provider to the chat", async () => {
  const { talk, server, log } = await start([{ reasoning: "Hm.", text: ["Good ", "morning", "!"] }]);
  const { text, error, message } = await talk.ask("hello");
  expect([text, error, log]).toEqual(["Good morning!", undefined, []]);
  expect(message?.parts.map(({ type }) => type)).toEqual(["step-start", "reasoning", "text"]);
  const [request] = server.requests;
  expect(request?.headers.authorization).toBe(`Bearer ${KEY}`);
  expect(request?.body.model).toBe("tiny");
  expect(request?.body.messages).toMatchObject([{ role: "system" }, { role: "user", content: "hello" }]);
  const tools = request?.body.tools?.map((one) => one.function?.name ?? "") ?? [];
  // Programs and a browser are there where the machine has them, and once that is known.
  expect(tools.filter((name) => !/^(?:run_process|browser_)/.test(name))).toEqual([
    ...["read", "write", "edit", "list", "find", "grep", "delete", "bash"],
    ...["activate_skill", "read_skill_resource", "run_skill_script"],
    ...["weather", "deleteFiles", "timeZone", "research", "researchLater", "tidyUp"],
    ...["execute", "fetch_url", "load_extension", "list_extensions", "unload_extension", "connect_library"],
    "book_table",
  ]);
});

test("a tool call runs, and its result goes back to the model", async () => {
  const { talk, server } = await start([
    { toolCalls: [{ name: "weather", input: { city: "Oslo" }, id: "c1" }] },
    "It is fine in Oslo.",
    "You are welcome.",
  ]);
  const { text, message } = await talk.ask("weather?");
  expect(text).toBe("It is fine in Oslo.");
  expect(message?.parts.find(({ type }) => type === "tool-weather")).toMatchObject({
    state: "output-available",
    input: { city: "Oslo" },
    output: { city: "Oslo", celsius: expect.any(Number) as number },
  });
  const result = server.requests[1]?.body.messages?.at(-1);
  expect(result).toMatchObject({ role: "tool", tool_call_id: "c1" });
  expect(JSON.parse(String(result?.content))).toMatchObject({ city: "Oslo" });
  // The whole of it is there when the user goes on.
  expect((await talk.ask("thanks")).text).toBe("You are welcome.");
  expect(server.requests[2]?.body.messages?.map(({ role }) => role)).toEqual([
    "system",
    "user",
    "assistant",
    "tool",
    "assistant",
    "user",
  ]);
});

test("an approval and a tool of the page go through the provider too", async () => {
  const { talk, server } = await start([
    { toolCalls: [{ name: "deleteFiles", input: { files: ["a.txt"] }, id: "c1" }] },
    "Gone.",
    { toolCalls: [{ name: "timeZone", input: {}, id: "c2" }] },
    "You are in Rome.",
  ]);
  await talk.ask("delete a.txt");
  expect((await talk.answer((id) => talk.approve(id, true))).text).toBe("Gone.");
  expect(server.requests[1]?.body.messages?.at(-1)).toMatchObject({ role: "tool", content: '{"deleted":["a.txt"]}' });
  await talk.ask("where am I?");
  const zone = { timeZone: "Europe/Rome", localTime: "12:00" };
  expect((await talk.answer((id) => talk.result(id, zone))).text).toBe("You are in Rome.");
  expect(JSON.parse(String(server.requests[3]?.body.messages?.at(-1)?.content))).toEqual(zone);
});

test("a refused key", async () => {
  const { talk, server, log } = await start([
    { status: 401, message: `Incorrect API key provided: ${KEY}. You can find it at …` },
    "Better.",
  ]);
  const { error } = await talk.ask("hello");
  expectTold(log, error, "did not accept the key", "Check OPENAI_API_KEY");
  // Nothing of the failure is in the way of the next try.
  expect((await talk.ask("again")).text).toBe("Better.");
  expect(server.requests[1]?.body.messages).toMatchObject([
    { role: "system" },
    { role: "user", content: "hello" },
    { role: "user", content: "again" },
  ]);
});

test("an unknown model", async () => {
  const { talk, log } = await start([{ status: 404 }]);
  expectTold(log, (await talk.ask("hello")).error, 'does not know the model "tiny"', "Set PERDURE_MODEL");
});

test("a rate limit that passes is not noticed", async () => {
  const { talk, server, log } = await start([{ status: 429, retryAfterSeconds: 0 }, "Here I am."]);
  const { text, error } = await talk.ask("hello");
  expect([text, error, server.requests.length, log]).toEqual(["Here I am.", undefined, 2, []]);
});

test("a rate limit that stays", async () => {
  const limit = { status: 429, retryAfterSeconds: 0 };
  const { talk, server, log } = await start([limit, limit, "Later."]);
  expectTold(log, (await talk.ask("hello")).error, "too many requests", "Wait a moment");
  expect(server.requests).toHaveLength(2);
  expect((await talk.ask("again")).text).toBe("Later.");
});

test("an account without credit", async () => {
  const broke = { status: 429, code: "insufficient_quota", retryAfterSeconds: 0 };
  const { talk, log } = await start([broke, broke]);
  expectTold(log, (await talk.ask("hello")).error, "no credit left", "billing");
});

test("a server with a problem", async () => {
  const broken = { status: 500, retryAfterSeconds: 0 };
  const { talk, log } = await start([broken, broken]);
  expectTold(log, (await talk.ask("hello")).error, "a problem of its own (status 500)");
});

test("a request that is not accepted, with the provider's words and without the key", async () => {
  const { talk, log } = await start([{ status: 400, message: `Bad field.\n  (key ${KEY})` }]);
  expectTold(log, (await talk.ask("hello")).error, "did not accept the request (status 400)", "Bad field. (key …)");
});

test("a server that is not there", async () => {
  settings({ OPENAI_BASE_URL: `http://127.0.0.1:${await freePort()}/v1`, PERDURE_MODEL: "tiny" });
  const log = watchLog();
  const talk = await openTalk(await startAgents());
  const { error } = await talk.ask("hello");
  expectTold(log, error, "is not running or not reachable (ECONNREFUSED)", "check OPENAI_BASE_URL");
});

test("a connection that breaks off once is taken up again where it was", async () => {
  const { talk, server, log } = await start([{ text: ["Once ", "upon ", "a ", "time"], cutAfter: 3 }, "a time."]);
  const { text, error } = await talk.ask("tell me a story");
  expect({ text, error, log }).toEqual({ text: "Once upon a time.", error: undefined, log: [] });
  expect(server.requests[1]?.body.messages?.slice(-2)).toEqual([
    { role: "assistant", content: "Once upon " },
    { role: "user", content: CONTINUE_PROMPT },
  ]);
});

test("a connection that breaks off again: what came is kept, and the conversation goes on", async () => {
  const broken = { text: ["Once ", "upon ", "a ", "time"], cutAfter: 3 };
  const { talk, server, log } = await start([broken, broken, "The end."]);
  const { text, error, message } = await talk.ask("tell me a story");
  expectTold(log, error, "broke off before the end", "What came is kept");
  expect(text).toBe("Once upon ");
  expect(message?.parts.some((part) => "state" in part && part.state === "streaming")).toBe(false);
  expect((await talk.ask("go on")).text).toBe("The end.");
  expect(server.requests[2]?.body.messages?.map(({ role, content }) => [role, content]).slice(1)).toEqual([
    ["user", "tell me a story"],
    ["assistant", "Once upon "],
    ["user", "go on"],
  ]);
});

test("a silent server can be stopped", async () => {
  const { talk, server, log } = await start([{ text: "Well", hang: true }, "Yes?"]);
  const answer = talk.ask("hello");
  await talk.said("first-1", "Well");
  talk.cancel("first-1");
  expect(await answer).toMatchObject({ text: "Well", error: undefined });
  await expect.poll(() => server.requests[0]?.aborted).toBe(true);
  expect((await talk.ask("are you there?")).text).toBe("Yes?");
  expect(log).toEqual([]);
});

test("arguments that the tool does not take are told to the model, not thrown at the user", async () => {
  const { talk, server } = await start([
    { toolCalls: [{ name: "weather", input: '{"city":', id: "c1" }] },
    "I meant Oslo.",
  ]);
  expect((await talk.ask("weather?")).text).toBe("I meant Oslo.");
  expect(server.requests[1]?.body.messages?.at(-1)).toMatchObject({ role: "tool", tool_call_id: "c1" });
});

test("text files are read as text, pictures as pictures, and links are not fetched", async () => {
  const { talk, server } = await start(["Read."]);
  await talk.ask({
    id: "m1",
    role: "user",
    parts: [
      { type: "text", text: "Read these." },
      { type: "file", filename: "a.txt", mediaType: "text/plain", url: `data:text/plain;base64,${btoa("some words")}` },
      { type: "file", filename: "p.png", mediaType: "image/png", url: "data:image/png;base64,iVBORw0KGgo=" },
      { type: "file", filename: "x.png", mediaType: "image/png", url: `${server.url}/secret.png` },
    ],
  });
  const content = server.requests[0]?.body.messages?.at(-1)?.content;
  expect(content).toMatchObject([
    { type: "text", text: "Read these." },
    { type: "text", text: "The file a.txt:\n\nsome words" },
    { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
    { type: "text", text: "(x.png is not attached: it is only a link.)" },
  ]);
});

/** A port where nobody listens. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
