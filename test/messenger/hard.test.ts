// What goes wrong around a messenger, and what is a lot.
import { memoryStorage } from "perdure/node";
import { tooManyRequests } from "perdure/testing";
import { expect, test } from "vitest";
import { tempDir } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { ADA, ADA_AT_SLACK, ADA_THERE, BEN, BEN_AT_SLACK, DM, openKit, openSlack, openTelegram } from "./kit.ts";

const paragraph = (n: number) => `${n}. ${"Trees keep what they have been told in rings. ".repeat(4).trim()}`;
const block = (n: number) =>
  ["```ts", ...Array.from({ length: 30 }, (_, i) => `const x${n}_${i} = "*${i}*";`), "```"].join("\n");
/** More than 20,000 characters, of which code is the larger part. */
const LONG = Array.from({ length: 24 }, (_, i) => (i % 2 === 0 ? paragraph(i) : block(i).repeat(1))).join("\n\n");
const wordsOf = (text: string) =>
  text
    .replaceAll(/```\w*/g, " ")
    .split(/\s+/)
    .filter(Boolean);

const DOWN = {
  async Telegram(terms: Parameters<typeof openKit>[0] & { readonly manual: true }) {
    const kit = await openTelegram({ script: terms.script, tools: terms.tools, manual: true });
    const count = (method: string) => kit.telegram.calls.filter((one) => one.method === method).length;
    const says = () => void kit.telegram.says(7, ADA_THERE, "hi");
    return {
      kit,
      there: kit.telegram,
      says,
      texts: () => kit.texts(),
      made: () => count("sendMessage"),
      asked: () => 0,
    };
  },
  async Slack(terms: Parameters<typeof openKit>[0] & { readonly manual: true }) {
    const kit = await openSlack({ script: terms.script, tools: terms.tools, manual: true });
    const count = (method: string) => kit.slack.calls.filter((one) => one.method.startsWith(method)).length;
    const says = () => void kit.slack.says("D7", ADA_AT_SLACK, "hi");
    const [made, asked] = [() => count("chat.postMessage"), () => count("conversations.history")];
    return { kit, there: kit.slack, says, texts: () => kit.texts(), made, asked };
  },
};

test.each(["Telegram", "Slack"] as const)(
  "%s is down for a whole life: the answer comes with the next one, once, and is surely not there twice",
  async (name) => {
    const gate = Promise.withResolvers<string>();
    const { kit, there, says, texts, made, asked } = await DOWN[name]({
      manual: true,
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "wait", input: {} }] } : "Hello there."),
    });
    says();
    await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
    await there.close();
    gate.resolve("now");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ attempts: 1, maybeTwice: false }]));
    await kit.restart();
    await kit.until(() => expect(kit.deliveries()[0]?.attempts).toBeGreaterThan(2));
    expect(kit.deliveries()).toMatchObject([{ state: "open", maybeTwice: false }]);
    await kit.restart();
    await there.listen();
    // What could not be reached was surely not told: nobody has to be asked.
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    expect(kit.events.filter(({ type }) => type.startsWith("delivery"))).toEqual([]);
    expect(texts()).toEqual(["Hello there."]);
    expect([made(), asked()]).toEqual([1, 0]);
    expect(kit.errors.filter((error) => !/ECONN|The connection to Slack broke/.test(error))).toEqual([]);
    kit.errors.length = 0;
  },
);

test("a full disk: what cannot be stored is not acknowledged, and comes again when there is room", async () => {
  const kit = await openTelegram({
    manual: true,
    conversation: "self",
    host: { storage: undefined, dir: tempDir(), limits: { databaseBytes: 600_000 } },
  });
  const [port] = kit.ports;
  port?.sql("CREATE TABLE filler (bytes TEXT)");
  for (const size of [20_000, 2_000, 100])
    expect(() => {
      for (;;) port?.sql("INSERT INTO filler VALUES (?)", "x".repeat(size));
    }).toThrow();
  kit.telegram.says(7, ADA_THERE, `hi ${"y".repeat(4_000)}`);
  await kit.until(() => expect(kit.errors.length).toBeGreaterThan(0));
  expect(kit.texts()).toEqual([]);
  expect(kit.model.calls).toEqual([]);
  port?.sql("DELETE FROM filler");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls).toHaveLength(1);
  kit.errors.length = 0;
});

test("a clock that is set back a day, or forward a year, holds nothing up and repeats nothing", async () => {
  const kit = await openTelegram({ manual: true });
  kit.telegram.plan("sendMessage", tooManyRequests(40));
  kit.telegram.says(7, ADA_THERE, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ attempts: 1 }]));
  await kit.clock.set(kit.clock.now() - 24 * 60 * 60_000);
  await kit.clock.advance(41_000);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.clock.set(kit.clock.now() + 365 * 24 * 60 * 60_000);
  kit.telegram.says(7, ADA_THERE, "and now?");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
});

test("20,000 characters with code arrive whole, in order, each message valid, and the same whether they come at once or in pieces", async () => {
  expect(LONG.length).toBeGreaterThan(10_000);
  const text = `${LONG}\n\n${LONG}`;
  expect(text.length).toBeGreaterThan(20_000);
  const whole = await openTelegram({ script: () => text, delivery: { first: "whole" } });
  whole.telegram.says(7, ADA_THERE, "hi");
  await whole.until(() => expect(whole.deliveries()).toMatchObject([{ state: "done" }]));
  expect(whole.texts().length).toBeGreaterThan(4);
  expect(wordsOf(whole.texts().join(" "))).toEqual(wordsOf(text));
  for (const { text: shown, entities } of whole.telegram.seen(7, "bot")) {
    expect(shown.length).toBeLessThanOrEqual(4096);
    // Code stays code, also where it was cut.
    for (const { index } of shown.matchAll(/const x\d+_\d+ = .*/g))
      expect(
        entities.some(
          ({ type, offset, length }) =>
            type === "pre" && Number(offset) <= index && index < Number(offset) + Number(length),
        ),
      ).toBe(true);
  }
  const streamed = await openTelegram({ script: () => ({ text: text.match(/.{1,400}/gs) ?? [], delayMs: 5 }) });
  streamed.telegram.says(7, ADA_THERE, "hi");
  await streamed.until(() => expect(streamed.deliveries()).toMatchObject([{ state: "done" }]));
  expect(streamed.texts()).toEqual(whole.texts());
});

test("the same at Slack", async () => {
  const text = `${LONG}\n\n${LONG}`;
  const whole = await openSlack({ script: () => text, delivery: { first: "whole" } });
  whole.slack.says("D7", ADA_AT_SLACK, "hi");
  await whole.until(() => expect(whole.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(whole.texts().length).toBeGreaterThan(4);
  expect(wordsOf(whole.texts().join(" "))).toEqual(wordsOf(text));
  for (const { blocks } of whole.slack.seen("D7", "bot")) {
    const [rich] = blocks as { readonly elements: readonly { readonly type: string }[] }[];
    // Code stays code, also where it was cut, and nothing else is.
    for (const element of rich?.elements ?? [])
      expect(/const x\d+_\d+ = /.test(JSON.stringify(element))).toBe(element.type === "rich_text_preformatted");
  }
  const streamed = await openSlack({ script: () => ({ text: text.match(/.{1,400}/gs) ?? [], delayMs: 5 }) });
  streamed.slack.says("D7", ADA_AT_SLACK, "hi");
  await streamed.until(() => expect(streamed.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(streamed.texts()).toEqual(whole.texts());
});

test("a stream of a minute at a network that takes one call a second meets no 429", async () => {
  const words = Array.from({ length: 400 }, (_, i) => `word${i} `);
  const kit = await openTelegram({
    ...{ manual: true, pace: {}, fake: { perChatMs: 1_000 } },
    script: () => ({ text: words, delayMs: 10 }),
  });
  const began = kit.clock.now();
  kit.telegram.says(7, ADA_THERE, "hi");
  await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
  while (kit.deliveries()[0]?.state !== "done") {
    await kit.clock.advance(400);
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  expect(kit.clock.now() - began).toBeGreaterThan(40_000);
  expect(kit.telegram.calls.filter(({ method }) => method === "editMessageText").length).toBeGreaterThan(10);
  expect(kit.texts()).toEqual([words.join("").trim()]);
  const said = kit.telegram.calls.filter(({ method }) => /^(send|edit)Message/.test(method)).map(({ at }) => at);
  expect(said.slice(1).filter((at, i) => at - (said[i] ?? 0) < 1_000)).toEqual([]);
  expect(kit.events.filter(({ type }) => type.startsWith("delivery"))).toEqual([]);
});

test("two streams of a minute in threads of one channel at Slack, which takes one call a second, meet no 429", async () => {
  const words = Array.from({ length: 200 }, (_, i) => `word${i} `);
  const kit = await openSlack({
    ...{ manual: true, pace: {}, fake: { perChannelMs: 1_000 } },
    script: () => ({ text: words, delayMs: 15 }),
  });
  const began = kit.clock.now();
  const threads = [ADA_AT_SLACK, BEN_AT_SLACK].map((one) => `slack:C1:${kit.slack.says("C1", one, "<@UBOT> hi").ts}`);
  const states = () => threads.map((thread) => kit.holder(thread).listDeliveries()[0]?.state);
  await kit.until(() => expect(states()).toEqual(["open", "open"]));
  while (states().includes("open")) {
    await kit.clock.advance(400);
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  expect(kit.clock.now() - began).toBeGreaterThan(40_000);
  expect(kit.slack.calls.filter(({ method }) => method === "chat.update").length).toBeGreaterThan(10);
  expect(kit.texts("C1")).toEqual([words.join("").trim(), words.join("").trim()]);
  const said = kit.slack.calls.filter(({ method }) => /^chat\.(post|upd)/.test(method)).map(({ at }) => at);
  expect(said.slice(1).filter((at, i) => at - (said[i] ?? 0) < 1_000)).toEqual([]);
  expect(kit.events.filter(({ type }) => type.startsWith("delivery"))).toEqual([]);
});

test("an answer from the messenger, from code and by HTTP at once: the call runs once, and all show who", async () => {
  const ran: unknown[] = [];
  const kit = await openKit({
    tools: { pay: serverTool((input) => (ran.push(input), "paid"), { needsApproval: true }) },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "Paid."),
  });
  kit.network.says(DM, ADA, "pay");
  const question = () => kit.network.seen(DM, "agent").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  const holder = kit.holder();
  const { toolCallId = "" } = holder.pendingApprovals()[0] ?? {};
  const path = `${kit.host.url}/agents/talk/main/sub/talk/${encodeURIComponent(`messenger:memory:${encodeURIComponent(DM)}`)}`;
  const http = fetch(`${path}/chat/approvals/${toolCallId}`, {
    ...{ method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ approved: true }) },
  });
  kit.network.presses(DM, ADA, question()?.id ?? "", "Approve");
  holder.answerApproval(toolCallId, true, { approver: "Chris" });
  expect((await http).status).toBeLessThan(500);
  await kit.until(() => expect(kit.texts().at(-1)).toBe("Paid."));
  expect(ran).toEqual([{ amount: 5 }]);
  await kit.until(() => expect(kit.network.told).toHaveLength(1));
  const by = /Approved by (\w+)/.exec(kit.texts().join())?.[1];
  expect(["Ada", "Chris"]).toContain(by);
  expect(kit.network.told[0]?.text).toBe(`Approved by ${by ?? ""}`);
});

test("the life of the agent that speaks ends alone: what another holds goes on with its next life, in the same message", async () => {
  const pieces = Array.from({ length: 40 }, (_, n) => `word${n} `);
  let fails = false;
  const storage = memoryStorage();
  const open: typeof storage.open = (id, listener) => {
    const database = storage.open(id, listener);
    const durable = database.durable.bind(database);
    database.durable = async () => {
      if (fails && id === "Talk/main") {
        fails = false;
        throw new Error("The disk of the agent that speaks failed.");
      }
      return durable();
    };
    return database;
  };
  const kit = await openKit({
    script: ({ userText }) => (userText === "hi" ? { text: pieces, delayMs: 20 } : "Hello, Ben."),
    host: { storage: { ...storage, open } },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()[0]).toContain("word"));
  fails = true;
  kit.network.says("memory:8", BEN, "hello");
  await kit.until(() => expect(kit.texts()).toEqual([pieces.join("").trim()]));
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  await kit.until(() => expect(kit.texts("memory:8")).toEqual(["Hello, Ben."]));
  expect(kit.ports.filter(({ path }) => path.length === 1)).toHaveLength(2);
});
