import { expect, test } from "vitest";
import { HttpChatTransport, type HttpChatTransportOptions } from "../../src/client/index.ts";
import { addressOf, eventually } from "../clients/harness.ts";
import { startTalk } from "../chat-client/talk.ts";
import { chatOver } from "./talk-client.ts";

const long = { text: ["one ", "two ", "three ", "four"], delayMs: 1 };
const WHOLE = ["user: count", "assistant: one two three four"];
/** Waits are over at once. */
const clock = { now: () => 0, after: (_ms: number, work: () => void) => (queueMicrotask(work), () => {}) };

/** `fetch` that notes what is asked and can lose the network. */
function wires() {
  const asked: string[] = [];
  const live = new Set<AbortController>();
  let down = false;
  const send: typeof fetch = async (input, init) => {
    const url = new URL(String(input));
    asked.push(`${init?.method ?? "GET"} ${url.pathname.split("/").slice(4).join("/")}${url.search}`);
    if (down) throw new TypeError("no network");
    const lost = new AbortController();
    live.add(lost);
    return fetch(input, { ...init, signal: lost.signal });
  };
  return {
    asked,
    fetch: send,
    cut(stays = false) {
      down = stays;
      for (const one of live) one.abort();
      live.clear();
    },
    mend: () => void (down = false),
  };
}

function open(host: { readonly port: number }, options: Partial<HttpChatTransportOptions> = {}) {
  const net = wires();
  const transport = new HttpChatTransport({
    agent: "Talk",
    name: "x",
    clock,
    fetch: net.fetch,
    ...options,
    host: addressOf(host),
  });
  return { net, ...chatOver(transport) };
}

test("a message is sent and its answer streamed; only the new message goes over the wire", async () => {
  const { host, agent, turns, model } = await startTalk({ script: ({ turn }) => `answer ${turn}` });
  const tab = open(host, {
    body: { zone: "UTC" },
    headers: () => ({ "x-a": "1" }),
    query: async () => ({ token: "t" }),
  });
  for (const turn of [0, 1]) await tab.chat.sendMessage({ text: `question ${turn}` });
  await tab.settles([0, 1].flatMap((n) => [`user: question ${n}`, `assistant: answer ${n}`]));
  expect(tab.chat.messages).toEqual(await agent.stored());
  expect(turns.map(({ body }) => body)).toEqual([{ zone: "UTC" }, { zone: "UTC" }]);
  expect(model.calls.at(-1)?.prompt).toHaveLength(3);
  expect(tab.net.asked).toEqual(["POST chat?token=t", "POST chat?token=t"]);
  // How the turn ended comes as data that is not kept.
  expect(tab.data).toMatchObject([{ type: "data-turn", data: { outcome: "completed" } }, {}]);
});

test("a stream that breaks goes on behind the last chunk", async () => {
  const { host, agent, say, turns } = await startTalk({ script: [long] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "count" });
  for (const shown of ["one ", "one two ", "one two three "]) {
    await say();
    await tab.shows("user: count", `assistant: ${shown}`);
    tab.net.cut();
  }
  await eventually(() => expect(tab.net.asked).toHaveLength(4));
  await say();
  await tab.settles(WHOLE);
  expect(tab.chat.messages).toEqual(await agent.stored());
  expect(turns).toHaveLength(1);
  expect(tab.net.asked.slice(1).every((line) => /^GET chat\/[^/]+\/stream\?after=\d+$/.test(line))).toBe(true);
});

test("a request that broke is repeated, and counts once", async () => {
  const { host, agent, turns } = await startTalk({ script: () => "ok" });
  let tries = 0;
  const flaky: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    if (tries++ > 0) return response;
    await response.body?.cancel();
    throw new TypeError("the answer was lost");
  };
  const tab = open(host, { fetch: flaky });
  await tab.chat.sendMessage({ text: "a" });
  await tab.settles(["user: a", "assistant: ok"]);
  expect(turns).toHaveLength(1);
  expect(await agent.stored()).toHaveLength(2);
});

test("a new page goes on with the stream, and can stop it", async () => {
  const { host, agent, say, ends } = await startTalk({ script: [long] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "count" });
  await say(2);
  await tab.shows("user: count", "assistant: one two ");
  const again = open(host);
  again.chat.messages = (await agent.stored()).slice(0, 1);
  void again.chat.resumeStream();
  await again.shows("user: count", "assistant: one two ");
  await again.chat.stop();
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  await tab.settles(["user: count", "assistant: one two "]);
  await again.settles(["user: count", "assistant: one two "]);
});

test("nothing runs: there is nothing to go on with", async () => {
  const { host } = await startTalk({ script: () => "ok" });
  const tab = open(host);
  await tab.chat.resumeStream();
  expect(tab.chat.status).toBe("ready");
});

test("stop before the first chunk, and stop without a network", async () => {
  const { host, say, ends, model } = await startTalk({ script: [{ hang: "before" }, long] });
  const tab = open(host);
  void tab.chat.sendMessage({ text: "a" });
  await eventually(() => expect(model.calls).toHaveLength(1));
  await tab.chat.stop();
  await eventually(() => expect(ends).toMatchObject([{ status: "aborted" }]));
  void tab.chat.sendMessage({ text: "count" });
  await say();
  await eventually(() => expect(tab.lines().at(-1)).toBe("assistant: one "));
  tab.net.cut(true);
  const stopped = tab.chat.stop();
  tab.net.mend();
  await stopped;
  await eventually(() => expect(ends).toHaveLength(2));
  expect(ends[1]).toMatchObject({ status: "aborted" });
});

test("errors: of the turn, and of a request that is refused", async () => {
  const { host } = await startTalk({ script: [{ error: new Error("boom") }] });
  const tab = open(host);
  await tab.chat.sendMessage({ text: "a" });
  expect(tab.chat).toMatchObject({ status: "error", error: { message: "boom" } });
  await tab.chat.sendMessage({ role: "user", parts: [{ type: "text", text: 1 as unknown as string }] });
  expect(tab.chat.status).toBe("error");
  expect(tab.chat.error?.message).toContain("messages[0]");
});
