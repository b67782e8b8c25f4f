// What goes wrong around a messenger, and what is a lot.
import { type Channel, ChannelError, type MessengerDefinition } from "perdure/messengers";
import { type BeforeHook, memoryStorage } from "perdure/node";
import { slackRateLimited, tooManyRequests } from "perdure/testing";
import { expect, test } from "vitest";
import { connectTo } from "../chat/client.ts";
import { tempDir } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { ADA, ADA_AT_SLACK, ADA_THERE, BEN, BEN_AT_SLACK, BEN_THERE, DM } from "./kit.ts";
import { type HostKit, type KitOptions, openKit, openSlack, openTelegram } from "./kit.ts";

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

type Terms = Pick<KitOptions, "script" | "tools" | "manual" | "host" | "conversation" | "delivery">;
type Who = "Ada" | "Ben";

interface There {
  readonly kit: HostKit;
  /** Where nobody else is. */
  says(who: Who, text: string): void;
  texts(who?: Who): string[];
  /** The next message is refused for so long. */
  rate(seconds: number): void;
  /** How often the network was asked to make a message, and for one that may have been made. */
  made(): number;
  asked(): number;
  /** Somebody presses what is asked of Ada, and what they are told. */
  question(): { readonly id: string; readonly text: string } | undefined;
  presses(who: Who, id: string, label: string): void;
  told(): string[];
  /** The names of the messenger, and of Ada's thread. */
  readonly name: string;
  readonly thread: string;
  /** Nobody can reach it any more. */
  goes(): Promise<void>;
  comes(): Promise<unknown>;
}

const NETWORKS = {
  async memory(terms: Terms): Promise<There> {
    let isGone = false;
    const kit = await openKit({
      ...{ ...terms, network: { finds: true } },
      make: (Base) =>
        class extends Base {
          override async getMessengers() {
            const { memory } = (await super.getMessengers()) as { memory: MessengerDefinition };
            const { create } = memory.channel;
            const reached: Channel["create"] = (...args) =>
              isGone ? Promise.reject(new ChannelError("unsent", "Nobody is there.")) : create(...args);
            return { memory: { ...memory, channel: { ...memory.channel, create: reached } } };
          }
        },
    });
    const place = (who: Who) => ({ Ada: DM, Ben: "memory:8" })[who];
    const count = (op: string) => kit.network.calls.filter((one) => one.op === op).length;
    return {
      ...{ kit, made: () => count("create"), asked: () => count("find"), name: "memory", thread: DM },
      question: () => kit.network.seen(DM, "agent").find(({ buttons }) => buttons.length > 0),
      presses: (who, id, label) => void kit.network.presses(DM, who === "Ada" ? ADA : BEN, id, label),
      told: () => kit.network.told.map(({ text }) => text),
      says: (who, text) => void kit.network.says(place(who), who === "Ada" ? ADA : BEN, text),
      texts: (who = "Ada") => kit.texts(place(who)),
      rate: (seconds) => kit.network.plan("create", { kind: "rate", retryAfterMs: seconds * 1000 }),
      goes: () => Promise.resolve(void (isGone = true)),
      comes: () => Promise.resolve((isGone = false)),
    };
  },
  async Telegram(terms: Terms): Promise<There> {
    const kit = await openTelegram(terms);
    const { telegram } = kit;
    const count = (method: string) => telegram.calls.filter((one) => one.method === method).length;
    return {
      ...{ kit, made: () => count("sendMessage"), asked: () => 0, name: "telegram", thread: "telegram:7" },
      question: () => {
        const found = telegram.seen(7, "bot").find(({ buttons }) => buttons.length > 0);
        return found && { id: String(found.id), text: found.text };
      },
      presses: (who, id, label) => void telegram.presses(7, who === "Ada" ? ADA_THERE : BEN_THERE, Number(id), label),
      told: () => telegram.told.map(({ text }) => text),
      says: (who, text) => void telegram.says(who === "Ada" ? 7 : 8, who === "Ada" ? ADA_THERE : BEN_THERE, text),
      texts: (who = "Ada") => kit.texts(who === "Ada" ? 7 : 8),
      rate: (seconds) => telegram.plan("sendMessage", tooManyRequests(seconds)),
      goes: () => telegram.close(),
      comes: () => telegram.listen(),
    };
  },
  async Slack(terms: Terms): Promise<There> {
    const kit = await openSlack(terms);
    const { slack } = kit;
    const count = (method: string) => slack.calls.filter((one) => one.method.startsWith(method)).length;
    return {
      ...{ kit, made: () => count("chat.postMessage"), asked: () => count("conversations.history") },
      ...{ name: "slack", thread: "slack:D7" },
      question: () => {
        const found = slack.seen("D7", "bot").find(({ buttons }) => buttons.length > 0);
        return found && { id: found.ts, text: found.text };
      },
      presses: (who, id, label) => void slack.presses("D7", who === "Ada" ? ADA_AT_SLACK : BEN_AT_SLACK, id, label),
      told: () => slack.told.map(({ text }) => text),
      says: (who, text) =>
        void slack.says(who === "Ada" ? "D7" : "D8", who === "Ada" ? ADA_AT_SLACK : BEN_AT_SLACK, text),
      texts: (who = "Ada") => kit.texts(who === "Ada" ? "D7" : "D8"),
      rate: (seconds) => slack.plan("chat.postMessage", slackRateLimited(seconds)),
      goes: () => slack.close(),
      comes: () => slack.listen(),
    };
  },
};
const networks = Object.keys(NETWORKS) as (keyof typeof NETWORKS)[];

test.each(networks)(
  "%s is down for a whole life: the answer comes with the next one, once, and is surely not there twice",
  async (name) => {
    const gate = Promise.withResolvers<string>();
    const { kit, goes, comes, says, texts, made, asked } = await NETWORKS[name]({
      manual: true,
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "wait", input: {} }] } : "Hello there."),
    });
    says("Ada", "hi");
    await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
    await goes();
    gate.resolve("now");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ attempts: 1, maybeTwice: false }]));
    await kit.restart();
    await kit.until(() => expect(kit.deliveries()[0]?.attempts).toBeGreaterThan(2));
    expect(kit.deliveries()).toMatchObject([{ state: "open", maybeTwice: false }]);
    await kit.restart();
    await comes();
    // What could not be reached was surely not told: nobody has to be asked.
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    expect(kit.events.filter(({ type }) => type.startsWith("delivery"))).toEqual([]);
    expect(texts()).toEqual(["Hello there."]);
    expect([made(), asked()]).toEqual([1, 0]);
    expect(kit.errors.filter((error) => !/ECONN|The connection to Slack broke/.test(error))).toEqual([]);
    kit.errors.length = 0;
  },
);

test.each(networks)(
  "%s and a full disk: what cannot be stored is not acknowledged, and comes again when there is room",
  async (name) => {
    const { kit, says, texts } = await NETWORKS[name]({
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
    says("Ada", `hi ${"y".repeat(4_000)}`);
    await kit.until(() => expect(kit.errors.length).toBeGreaterThan(0));
    expect(texts()).toEqual([]);
    expect(kit.model.calls).toEqual([]);
    port?.sql("DELETE FROM filler");
    await kit.until(() => expect(texts()).toEqual(["Hello there."]));
    expect(kit.model.calls).toHaveLength(1);
    kit.errors.length = 0;
  },
);

test.each(networks)(
  "%s and a clock that is set back a day, or forward a year: nothing is held up or repeated",
  async (name) => {
    const { kit, says, texts, rate, made } = await NETWORKS[name]({ manual: true });
    rate(40);
    says("Ada", "hi");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ attempts: 1 }]));
    await kit.clock.set(kit.clock.now() - 24 * 60 * 60_000);
    await kit.clock.advance(41_000);
    await kit.until(() => expect(texts()).toEqual(["Hello there."]));
    await kit.clock.set(kit.clock.now() + 365 * 24 * 60 * 60_000);
    says("Ada", "and now?");
    await kit.until(() => expect(texts()).toHaveLength(2));
    await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
    expect(made()).toBe(3);
  },
);

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

test("the same in memory: in each message, what is code is in a fence, and what is none is not", async () => {
  const text = `${LONG}\n\n${LONG}`;
  const whole = await openKit({ script: () => text, delivery: { first: "whole" } });
  whole.network.says(DM, ADA, "hi");
  await whole.until(() => expect(whole.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(whole.texts().length).toBeGreaterThan(4);
  expect(wordsOf(whole.texts().join(" "))).toEqual(wordsOf(text));
  for (const shown of whole.texts()) {
    expect(shown.length).toBeLessThanOrEqual(4096);
    let isCode = false;
    const odd = shown.split("\n").filter((line) => {
      if (line.startsWith("```")) isCode = !isCode;
      else return line !== "" && /^const x\d+_\d+ = /.test(line) !== isCode;
      return false;
    });
    expect(odd).toEqual([]);
    expect(isCode).toBe(false);
  }
  const streamed = await openKit({ script: () => ({ text: text.match(/.{1,400}/gs) ?? [], delayMs: 5 }) });
  streamed.network.says(DM, ADA, "hi");
  await streamed.until(() => expect(streamed.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(streamed.texts()).toEqual(whole.texts());
});

test("a stream of a minute at a network in memory that takes one call a second is never too fast", async () => {
  const words = Array.from({ length: 400 }, (_, i) => `word${i} `);
  const said: number[] = [];
  const kit = await openKit({
    ...{ manual: true, network: { paceMs: 1_000 } },
    script: () => ({ text: words, delayMs: 10 }),
    make: (Base) =>
      class extends Base {
        override async getMessengers() {
          const { memory } = (await super.getMessengers()) as { memory: MessengerDefinition };
          const { create, edit } = memory.channel;
          const slow =
            <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
            (...args: A) => {
              const soon = (said.at(-1) ?? 0) + 1_000 - kit.clock.now();
              said.push(kit.clock.now());
              if (soon > 0) return Promise.reject(new ChannelError("rate", "Too fast.", { retryAfterMs: soon }));
              return call(...args);
            };
          return { memory: { ...memory, channel: { ...memory.channel, create: slow(create), edit: slow(edit) } } };
        }
      },
  });
  const began = kit.clock.now();
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
  while (kit.deliveries()[0]?.state !== "done") {
    await kit.clock.advance(400);
    await new Promise((resolve) => setTimeout(resolve, 8));
  }
  expect(kit.clock.now() - began).toBeGreaterThan(40_000);
  expect(said.length).toBeGreaterThan(10);
  expect(said.slice(1).filter((at, i) => at - (said[i] ?? 0) < 1_000)).toEqual([]);
  expect(kit.texts()).toEqual([words.join("").trim()]);
  expect(kit.deliveries()).toMatchObject([{ parts: 1, maybeTwice: false }]);
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

const TOKENS: Readonly<Record<string, string>> = { ben: "Ben", cy: "Cy" };
const byToken: BeforeHook = (request) => {
  const name = TOKENS[new URL(request.url).searchParams.get("as") ?? ""];
  return name === undefined ? undefined : { identity: { id: name.toLowerCase(), name } };
};

/** Who answers first. */
const FIRST = ["the messenger", "a socket", "HTTP", "code"] as const;

const paying = (ran: unknown[]): Terms => ({
  tools: { pay: serverTool((input) => (ran.push(input), "paid"), { needsApproval: true }) },
  script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "Paid."),
});

test.each(networks.flatMap((name) => FIRST.map((first) => [name, first] as const)))(
  "a question is answered at %s, by a socket, by HTTP and from code at once, %s first: the call runs once, and who it was is shown",
  async (name, first) => {
    const ran: unknown[] = [];
    const host = { onBeforeConnect: byToken, onBeforeRequest: byToken };
    const there = await NETWORKS[name]({ ...paying(ran), host });
    const { kit, texts, question, told } = there;
    there.says("Ada", "pay");
    await kit.until(() => expect(question()).toBeDefined());
    const holder = kit.holder();
    const { toolCallId = "" } = holder.pendingApprovals()[0] ?? {};
    const child = encodeURIComponent(`messenger:${there.name}:${encodeURIComponent(there.thread)}`);
    const url = `${kit.host.url}/agents/talk/main/sub/talk/${child}`;
    const socket = await connectTo(`${url}?as=ben`);
    let answered: Promise<{ readonly status: number; readonly body: unknown }> | undefined;
    const ways: Readonly<Record<(typeof FIRST)[number], () => void>> = {
      "the messenger": () => there.presses("Ada", question()?.id ?? "", "Approve"),
      "a socket": () => socket.approve(toolCallId, true),
      HTTP: () => {
        const body = JSON.stringify({ approved: true });
        answered = fetch(`${url}/chat/tools/${toolCallId}?as=cy`, { method: "POST", body }).then(async (response) => ({
          ...{ status: response.status, body: (await response.json()) as unknown },
        }));
      },
      code: () => holder.answerApproval(toolCallId, true, { approver: "Chris" }),
    };
    // Code is no network: where it is not to be first, it comes when another has answered.
    for (const way of [first, ...FIRST.filter((one) => one !== first && one !== "code")]) ways[way]();
    await kit.until(() => expect(texts().at(-1)).toBe("Paid."));
    if (first !== "code") ways.code();
    await kit.until(() => expect(told()).toHaveLength(1));
    const by = holder.getToolApproval(toolCallId)?.by ?? "";
    expect(first === "code" ? ["Chris"] : ["Ada", "Ben", "Cy"]).toContain(by);
    expect(ran).toEqual([{ amount: 5 }]);
    // At the messenger: under the question, and told to who pressed.
    await kit.until(() => expect(texts().filter((text) => text.includes(`Approved by ${by}`))).toHaveLength(1));
    expect(told()).toEqual([`Approved by ${by}`]);
    expect(question()).toBeUndefined();
    // Who asks by HTTP is told whether it was they; who is connected sees the call approved, and its result once.
    expect(await answered).toEqual({ status: 200, body: { changed: by === "Cy" } });
    await socket.flushed();
    expect(JSON.stringify(socket.frames)).toContain('"approved":true');
    expect(holder.messages.flatMap(({ parts }) => parts).filter(({ type }) => type === "tool-pay")).toHaveLength(1);
  },
);

test.each(networks)(
  "%s: a stranger's press is refused and told, and so is one for other arguments than were shown; then who may presses",
  async (name) => {
    const ran: unknown[] = [];
    const { kit, says, question, presses, told, texts } = await NETWORKS[name](paying(ran));
    says("Ada", "pay");
    await kit.until(() => expect(question()?.text).toContain('"amount": 5'));
    const id = question()?.id ?? "";
    presses("Ben", id, "Approve");
    await kit.until(() => expect(told()).toEqual(["You may not answer this. It still waits for somebody who may."]));
    // As if the call had been asked about anew, with another amount, behind what the person looks at.
    const holder = kit.ports[kit.lives.indexOf(kit.holder())];
    const [{ digest } = { digest: "" }] = holder?.sql<{ digest: string }>("SELECT digest FROM perdure_tool_call") ?? [];
    holder?.sql("UPDATE perdure_tool_call SET digest = 'of something else'");
    presses("Ada", id, "Approve");
    await kit.until(() => expect(told()).toHaveLength(2));
    expect(told()[1]).not.toContain("Approved");
    expect(ran).toEqual([]);
    expect(question()?.id).toBe(id);
    holder?.sql("UPDATE perdure_tool_call SET digest = ?", digest);
    presses("Ada", id, "Approve");
    await kit.until(() => expect(texts().at(-1)).toBe("Paid."));
    expect(ran).toEqual([{ amount: 5 }]);
  },
);

test.each(networks)(
  "%s: while a turn runs, another person's message is answered, a press is answered, and /stop ends it",
  async (name) => {
    const never = new Promise<never>(() => undefined);
    const { kit, says, texts, question, presses, told } = await NETWORKS[name]({
      tools: { wait: serverTool(() => never), pay: serverTool(() => "paid", { needsApproval: true }) },
      script: ({ userText, step }) => {
        if (userText === "pay") return step === 0 ? { toolCalls: [{ toolName: "pay", input: {} }] } : "Not paid.";
        return { text: "Working.", toolCalls: [{ toolName: "wait", input: {} }] };
      },
    });
    says("Ben", "go");
    await kit.until(() => expect(texts("Ben")).toEqual(["Working."]));
    says("Ada", "pay");
    await kit.until(() => expect(question()).toBeDefined());
    presses("Ada", question()?.id ?? "", "Reject");
    await kit.until(() => expect(told()).toEqual(["Rejected by Ada"]));
    await kit.until(() => expect(texts().at(-1)).toBe("Not paid."));
    expect(texts("Ben")).toEqual(["Working."]);
    says("Ben", "/stop");
    await kit.until(() => expect(texts("Ben")).toEqual(["Working.\n\n(stopped)"]));
  },
);

test.each(networks)(
  "%s: the life of the agent that speaks ends alone: what another holds goes on with its next life, in the same message",
  async (name) => {
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
    const { kit, says, texts } = await NETWORKS[name]({
      script: ({ userText }) => (userText === "hi" ? { text: pieces, delayMs: 20 } : "Hello, Ben."),
      host: { storage: { ...storage, open } },
    });
    says("Ada", "hi");
    await kit.until(() => expect(texts()[0]).toContain("word"));
    fails = true;
    says("Ben", "hello");
    await kit.until(() => expect(texts()).toEqual([pieces.join("").trim()]));
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    await kit.until(() => expect(texts("Ben")).toEqual(["Hello, Ben."]));
    expect(kit.ports.filter(({ path }) => path.length === 1)).toHaveLength(2);
  },
);
