// The host on the platform's own runtime: what it does is seen from outside, as clients and the Worker's code see it.
import { setTimeout } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { bundled, type Frame, type Line, type Workerd } from "./kit.ts";

/** An object without events for ten seconds leaves memory. */
const HIBERNATED_MS = 12_000;

let worker: Workerd;
beforeAll(async () => {
  const { start, stop } = await bundled("worker.ts");
  worker = await start();
  return stop;
});

const echoOf = (line: Line, echo: string): Promise<Frame> =>
  until(() => line.frames.find((frame) => frame["echo"] === echo), `an echo of ${echo}`);

function say(line: Line, id: string, text: string): void {
  const message = { id: `m-${id}`, role: "user", parts: [{ type: "text", text }] };
  const body = JSON.stringify({ messages: [message] });
  line.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body } });
}

const ended = (line: Line, id: string): Promise<Frame> =>
  until(() => line.frames.find((frame) => frame["id"] === id && frame["done"] === true), `the end of ${id}`);

/** What the chunks of a turn say, in the order in which they came. */
function textOf(line: Line, id: string): string {
  return line.frames
    .filter((frame) => frame["type"] === "cf_agent_use_chat_response" && frame["id"] === id && frame["body"] !== "")
    .map((frame) => JSON.parse(String(frame["body"])) as { type: string; delta?: string })
    .map(({ type, delta }) => (type === "text-delta" ? delta : ""))
    .join("");
}

const WORDS = Array.from({ length: 40 }, (_, i) => `word${i} `).join("");

async function answersIn(name: string): Promise<string[]> {
  const answer = await fetch(`http://${worker.address}/agents/chat/${name}/get-messages`);
  const messages = (await answer.json()) as { role: string; parts: { type: string; text?: string }[] }[];
  return messages
    .filter(({ role }) => role === "assistant")
    .map(({ parts }) => parts.map(({ type, text }) => (type === "text" ? text : "")).join(""));
}

test("rows are there after a kill, and errors keep their code between objects", async () => {
  expect(await worker.call("Notes", "rows", "add", "one")).toBe(1);
  await worker.kill();
  await worker.start();
  expect(await worker.call("Notes", "rows", "add", "two")).toBe(2);
  await expect(worker.call("Notes", "rows", "nothing")).rejects.toMatchObject({ code: "not_found" });
});

test("an address that was only looked at stores nothing", async () => {
  expect(await worker.call("Notes", "looked at", "count")).toBe(0);
  expect(await worker.call("Notes", "looked at", "isBlank")).toBe(true);
  await worker.call("Notes", "looked at", "add", "one");
  expect(await worker.call("Notes", "looked at", "isBlank")).toBe(false);
});

test("a child is an object of its own, and goes with its parent", async () => {
  expect(await worker.call("Notes", "parent", "addBelow", "kid", "one")).toBe(1);
  expect(await worker.call("Notes", "parent", "addBelow", "kid", "two")).toBe(2);
  await worker.call("Notes", "parent", "forget");
  expect(await worker.call("Notes", "parent", "isBlank")).toBe(true);
  expect(await worker.call("Notes", "parent", "addBelow", "kid", "again")).toBe(1);
});

test("a schedule rings after a kill, with nobody connected", async () => {
  await worker.call("Notes", "due", "later", 1_500);
  await worker.kill();
  await setTimeout(2_000);
  await worker.start();
  await expect.poll(() => worker.call("Notes", "due", "count")).toBe(1);
});

test("clients call methods, and a class that is not there is refused for good", async () => {
  const line = await worker.open("/agents/notes/called");
  line.send({ type: "rpc", id: "1", method: "hello", args: ["you"] });
  const answer = await until(() => line.frames.find(({ id }) => id === "1"), "an answer");
  expect(answer).toMatchObject({ success: true, result: "hello you" });
  line.close();
  await until(() => line.closed() !== undefined, "the client's own end is answered");
  expect([1000, 1005]).toContain(line.closed());
  const stranger = await worker.open("/agents/nobody/x");
  await until(() => stranger.closed() !== undefined, "the stranger is refused");
  expect(stranger.closed()).toBe(4400);
});

test("pages of other origins are kept out", async () => {
  const answer = await fetch(`http://${worker.address}/agents/notes/origin`, {
    method: "POST",
    headers: { origin: "https://elsewhere.example" },
  });
  expect(answer.status).toBe(403);
});

test("a socket outlives the object's stay in memory, with state of any size and tags", async () => {
  const [small, large] = [
    await worker.open("/agents/notes/asleep?size=10"),
    await worker.open("/agents/notes/asleep?size=40000"),
  ];
  small.send("one");
  const before = await echoOf(small, "one");
  await setTimeout(HIBERNATED_MS);
  small.send("two");
  large.send("three");
  const [after, other] = [await echoOf(small, "two"), await echoOf(large, "three")];
  expect(after["born"]).not.toBe(before["born"]);
  expect(after).toMatchObject({ size: 10, tagged: 2 });
  expect(other).toMatchObject({ size: 40_000, tagged: 2, born: after["born"] });
});

test("a client is still in the session that it went to after the object has left memory", async () => {
  const line = await worker.open("/agents/chat/sessions");
  line.send({ type: "perdure_session", id: "c", op: "create", name: "another" });
  const created = await until(() => line.frames.find(({ id }) => id === "c"), "a session");
  const { id: session } = created["value"] as { id: string };
  line.send({ type: "perdure_session", id: "a", op: "attach", session });
  await until(() => line.frames.find(({ id }) => id === "a"), "the client is there");
  await setTimeout(HIBERNATED_MS);
  say(line, "in", "hello");
  await ended(line, "in");
  const answer = await fetch(`http://${worker.address}/agents/chat/sessions/get-messages`);
  expect(await answer.json()).toEqual([]);
});

test("a turn that was cut off by a kill goes on with nobody connected, and nothing that was seen is lost", async () => {
  const line = await worker.open("/agents/chat/cut");
  say(line, "q", "tell me");
  await until(() => textOf(line, "q").includes("word5 "), "some of the answer");
  const seen = textOf(line, "q");
  await worker.kill();
  await worker.start();
  await expect.poll(() => answersIn("cut"), { timeout: 45_000 }).toEqual([WORDS]);
  expect(WORDS.startsWith(seen)).toBe(true);
});

test("a cancel overtakes the turn that it stops", async () => {
  const line = await worker.open("/agents/chat/stopped");
  say(line, "q", "tell me");
  await until(() => textOf(line, "q").includes("word2 "), "some of the answer");
  line.send({ type: "cf_agent_chat_request_cancel", id: "q" });
  await ended(line, "q");
  expect(textOf(line, "q")).not.toContain("word39");
});

test("a tool that is an agent runs in its own object, and its parent's clients see it work", async () => {
  const line = await worker.open("/agents/chat/boss");
  say(line, "q", "ask the helper");
  await ended(line, "q");
  const events = line.frames.filter(({ type }) => type === "agent-tool-event");
  expect(events.length).toBeGreaterThan(2);
  expect(await answersIn("boss")).toEqual([WORDS]);
});

test("blobs of any size are rows, and go when they are deleted", async () => {
  expect(await worker.call("Notes", "blobs", "blobTrip", 3 * 1024 * 1024 + 1)).toEqual({ same: true, gone: true });
  expect(await worker.call("Notes", "blobs", "blobTrip", 0)).toEqual({ same: true, gone: true });
});

test("what was said is found after a kill, and nowhere once it is erased", async () => {
  const line = await worker.open("/agents/chat/sought");
  say(line, "q", "where is the lighthouse");
  await ended(line, "q");
  expect(await worker.call("Chat", "sought", "found", "lighthouse")).toBe(1);
  await worker.kill();
  await worker.start();
  expect(await worker.call("Chat", "sought", "found", "lighthouse word7")).toBe(0);
  expect(await worker.call("Chat", "sought", "found", "word7")).toBe(1);
  await worker.call("Chat", "sought", "forget");
  expect(await worker.call("Chat", "sought", "found", "lighthouse")).toBe(0);
  expect(await answersIn("sought")).toEqual([]);
});

test("files of a workspace are there after a kill, large ones too", async () => {
  const large = "0123456789".repeat(300_000);
  await worker.call("Chat", "files", "keep", "/notes/small.txt", "a line");
  await worker.call("Chat", "files", "keep", "/notes/large.txt", large);
  await worker.kill();
  await worker.start();
  expect(await worker.call("Chat", "files", "kept", "/notes/small.txt")).toBe("a line");
  expect((await worker.call("Chat", "files", "kept", "/notes/large.txt")) === large).toBe(true);
});
