import { AIChatAgent, type ChatTurnOptions } from "perdure";
import { memoryStorage, serve } from "perdure/node";
import { expect, onTestFinished, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { type ChatClient, connectTo, textIn, user } from "./client.ts";
import { exchange, openChat } from "./harness.ts";

test.each([
  ["a text", "no", "no"],
  ["nothing", undefined, ""],
  ["null", null, ""],
  ["an object", { a: 1 }, ""],
])("onChatMessage that throws %s ends the turn with an error", async (_what, thrown, text) => {
  const chat = await openChat({
    respond: () => {
      throw thrown;
    },
  });
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  const end = await client.done("r1");
  expect(end).toMatchObject({ error: true, outcome: "error" });
  expect(end.body).toContain(text);
  expect(chat.takeErrors()).toHaveLength(1);
  expect(await chat.stored()).toMatchObject([{ id: "u1" }]);
});

test("the same Response for two turns: the second fails, and the chat goes on", async () => {
  const response = new Response("hello");
  let given = 0;
  const chat = await openChat({ respond: () => (++given < 3 ? response : new Response("fresh")) });
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  client.request("r2", [user("u2")]);
  expect(await client.done("r2")).toMatchObject({ outcome: "error" });
  client.request("r3", [user("u3")]);
  expect(await client.done("r3")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "hello", "u2", "u3", "fresh"]);
  expect(chat.takeErrors()).toHaveLength(1);
});

test("JSON that comes over several lines of an event is one chunk", async () => {
  const events = [
    'data: {\ndata:   "type": "text-start",\ndata:   "id": "t"\ndata: }',
    'data: {\ndata:   "type": "text-delta", "id": "t",\ndata:   "delta": "whole"\ndata: }',
  ];
  let open: (() => void) | undefined;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(`${events.join("\n\n")}\n\n`));
      open = () => controller.close();
    },
  });
  const chat = await openChat({
    respond: () => new Response(body, { headers: { "content-type": "text/event-stream" } }),
  });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  await a.said("r1", "whole");
  await b.close();
  const late = await chat.connect();
  late.ack("r1");
  await late.said("r1", "whole");
  open?.();
  await a.done("r1");
  expect(textIn((await chat.stored())[1])).toBe("whole");
});

/** An agent that does something odd to its own chat while it answers. */
async function openOdd(act: (agent: AIChatAgent, options: ChatTurnOptions) => unknown): Promise<ChatClient> {
  class Odd extends AIChatAgent {
    #acted = false;
    override onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
      if (this.#acted) return new Response(`after ${options.requestId}`);
      this.#acted = true;
      const done = act(this, options);
      return done instanceof Promise ? done.then(() => new Response("acted")) : new Response("acted");
    }
  }
  const host = await serve({ agents: { Odd }, storage: memoryStorage(), port: 0, signals: false, graceMs: 0 });
  onTestFinished(() => host.stop());
  return connectTo(`${host.url}/agents/odd/one`);
}

async function goesOn(client: ChatClient): Promise<void> {
  client.request("next", [user("next")]);
  expect(await client.done("next")).toMatchObject({ outcome: "completed" });
  await client.said("next", "after next");
}

test("clearing inside onChatMessage ends the turn, and nothing of it is left", async () => {
  const client = await openOdd((agent) => agent.clearMessages());
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  expect(client.of("r1")).toHaveLength(1);
  await goesOn(client);
});

test("stopping itself inside onChatMessage", async () => {
  const client = await openOdd((agent, { requestId }) => agent.abortRequest(requestId));
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  await goesOn(client);
});

test("saveMessages inside onChatMessage, not waited for: its turn comes after", async () => {
  const client = await openOdd((agent) => void agent.saveMessages([user("s1")]));
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  await client.frame(({ id, done }) => done === true && id !== "r1", "the second turn");
  await goesOn(client);
});

test("onChatMessage that never comes back is stopped like any other", async () => {
  const client = await openOdd(() => new Promise(() => {}));
  client.request("r1", [user("u1")]);
  await client.flushed();
  client.cancel("r1");
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  await goesOn(client);
});

test("stop, and clear, right after the request", async () => {
  // Never comes to its end by itself: a quick answer could be over before the next frame is read.
  const chat = await openChat({ respond: () => new Response(new ReadableStream()) });
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  client.cancel("r1");
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  client.request("r2", [user("u1"), user("u2")]);
  client.clear();
  await client.done("r2");
  await chat.stable();
  expect(await chat.stored()).toEqual([]);
  expect(client.of("r2").filter(({ done }) => done === true)).toHaveLength(1);
});

test("a sanitize hook that throws: a question is refused, an answer fails, and neither leaves anything half", async () => {
  let bad: string | undefined = "user";
  const chat = await openChat({
    respond: () => new Response("answer"),
    sanitize: (message) => {
      if (message.role === bad) throw new Error("no");
      return message;
    },
  });
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  expect(await client.done("r1")).toMatchObject({ error: true });
  expect(await chat.stored()).toEqual([]);
  bad = "assistant";
  client.request("r2", [user("u2")]);
  expect(await client.done("r2")).toMatchObject({ outcome: "error" });
  expect((await chat.stored()).map(textIn)).toEqual(["u2"]);
  bad = undefined;
  client.request("r3", [user("u2"), user("u3")]);
  expect(await client.done("r3")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored()).map(textIn)).toEqual(["u2", "u3", "answer"]);
  expect(chat.takeErrors().length).toBeGreaterThan(0);
});

test("what waits for its answer, and the answer under way, are not trimmed", async () => {
  const chat = await openChat({ maxPersistedMessages: 1 });
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  const first = await chat.stage();
  first.say("one");
  await client.said("r1", "one");
  client.request("r2", [user("u1"), user("u2")]);
  client.request("r3", [user("u1"), user("u2"), user("u3")]);
  await client.flushed();
  first.end();
  await client.done("r1");
  const second = await chat.stage();
  expect(second.messages.at(-1)).toMatchObject({ id: "u2" });
  second.say("two").end();
  await client.done("r2");
  const third = await chat.stage();
  expect(third.messages.at(-1)).toMatchObject({ id: "u3" });
  third.say("three").end();
  await client.done("r3");
  expect((await chat.stored()).map(textIn)).toEqual(["three"]);
});

test("regenerating the first message, and a request without any", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  let stored = await exchange(chat, client, 1);
  stored = await exchange(chat, client, 2, stored);
  client.request("r3", stored.slice(0, 1), { trigger: "regenerate-message" });
  (await chat.stage()).say("anew").end();
  await client.done("r3");
  expect((await chat.stored()).map(textIn)).toEqual(["question 1", "anew"]);
  client.request("r4", [], { trigger: "regenerate-message" });
  (await chat.stage()).say("more").end();
  await client.done("r4");
  expect((await chat.stored()).map(textIn)).toEqual(["question 1", "anew", "more"]);
});

test("a request id that is taken: while its turn runs it is that turn, after that its end is told again", async () => {
  const chat = await openChat();
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  b.request("r1", [user("u9")]);
  await b.flushed();
  stage.say("once").end();
  await Promise.all([a.done("r1"), b.done("r1")]);
  const c = await chat.connect();
  c.request("r1", [user("u9")]);
  expect(await c.done("r1")).toMatchObject({ outcome: "completed" });
  expect(chat.calls).toBe(1);
  expect((await chat.stored()).map(textIn)).toEqual(["u1", "once"]);
  await eventually(() => chat.responses.length === 1, "one response");
});

test("50 tabs that come and go during a stream: whoever is there at the end has all of it, once", async () => {
  const chat = await openChat();
  const sender = await chat.connect();
  sender.request("r1", [user("u1")]);
  const stage = await chat.stage();
  let whole = "";
  const say = (text: string) => {
    whole += text;
    stage.say(text);
  };
  say("0 ");
  await sender.said("r1", "0 ");
  const tabs: ChatClient[] = [];
  for (let i = 1; i <= 50; i++) {
    const tab = await chat.connect();
    if (i % 5 !== 0) tab.ack("r1");
    say(`${i} `);
    if (i % 3 === 0) tab.ws.terminate();
    else tabs.push(tab);
  }
  stage.end();
  for (const tab of [sender, ...tabs]) expect(await tab.done("r1")).toMatchObject({ outcome: "completed" });
  for (const [i, tab] of tabs.entries()) {
    const shown = tab.of("r1").some(({ seq }) => seq !== undefined);
    if (shown) await tab.said("r1", whole);
    else await tab.frame(({ messages }) => textIn(messages?.at(-1)) === whole, `the answer in tab ${i}`);
  }
  expect(textIn((await chat.stored())[1])).toBe(whole);
});

test("what only the server says of a message is not taken from a client, whatever frame it comes in", async () => {
  const chat = await openChat({ respond: () => new Response("hello") });
  const client = await chat.connect();
  const metadata = { perdure: { steeredInto: "a" }, mine: 1 };
  client.request("r1", [{ ...user("u1"), metadata }]);
  await client.done("r1");
  client.send({ type: "cf_agent_chat_messages", messages: [{ ...user("u2"), metadata }] });
  await client.flushed();
  const said = (await chat.stored()).filter(({ role }) => role === "user");
  expect(said.map((message) => message.metadata)).toEqual([{ mine: 1 }, { mine: 1 }]);
});
