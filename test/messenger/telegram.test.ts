import { telegramMessenger, type TelegramMessengerOptions } from "perdure/messengers/telegram";
import { tooManyRequests } from "perdure/testing";
import { expect, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA_THERE as ADA, BEN_THERE as BEN, openTelegram } from "./kit.ts";

const GROUP = -100;

test("a bot with one token answers from behind NAT, and the answer grows in one message", async () => {
  const kit = await openTelegram({ script: () => ({ text: ["Hel", "lo **you**", "."], delayMs: 20 }) });
  kit.telegram.says(7, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", parts: 1, maybeTwice: false }]));
  expect(kit.texts()).toEqual(["Hello you."]);
  expect(kit.telegram.seen(7, "bot")[0]?.entities).toEqual([{ type: "bold", offset: 6, length: 3 }]);
  expect(kit.telegram.calls.every(({ params }) => params.parse_mode === undefined)).toBe(true);
});

test("the same message ten times, and under another number, is one turn", async () => {
  const kit = await openTelegram();
  const update = kit.telegram.says(7, ADA, "hi");
  for (let i = 0; i < 9; i++) kit.telegram.repeats(update);
  kit.telegram.offers({ message: update.message });
  kit.telegram.says(7, ADA, "and this");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.model.calls).toHaveLength(2);
});

test("numbers of updates that begin anew after a silence lose nothing", async () => {
  const kit = await openTelegram({ fake: { pollMs: 50 } });
  kit.telegram.says(7, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  const last = () => kit.telegram.calls.findLast(({ method }) => method === "getUpdates");
  await kit.until(() => expect(last()?.params).not.toHaveProperty("offset"));
  const message = { message_id: 900, date: 1, chat: { id: 7, type: "private" }, from: ADA, text: "again" };
  kit.telegram.repeats({ update_id: 3, message });
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
});

test("in a group: who names it, replies to it, or commands it is answered, as a reply; others are not", async () => {
  const kit = await openTelegram();
  const { telegram } = kit;
  telegram.says(GROUP, BEN, "just talking");
  const named = telegram.says(GROUP, BEN, "@fake_bot hi") as { message?: { message_id: number } };
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(1));
  const [first] = telegram.seen(GROUP, "bot");
  expect(first?.replyTo).toBe(named.message?.message_id);
  telegram.says(GROUP, BEN, "and you?", { replyTo: first?.id ?? 0 });
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(2));
  telegram.says(GROUP, BEN, "/ask@other_bot this");
  telegram.says(GROUP, BEN, "/ask@Fake_Bot that");
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(3));
  expect(JSON.stringify(kit.model.calls[2]?.prompt)).toContain("Ben: /ask that");
  expect(kit.model.calls).toHaveLength(3);
  const [asked] = kit.model.calls;
  expect(JSON.stringify(asked?.prompt)).toContain("Ben: @fake_bot hi");
});

test("what somebody else's message says is read with a reply to it", async () => {
  const kit = await openTelegram();
  const said = kit.telegram.says(GROUP, ADA, "the sky is green") as { message?: { message_id: number } };
  kit.telegram.says(GROUP, BEN, "@fake_bot is it?", { replyTo: said.message?.message_id ?? 0 });
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(1));
  expect(JSON.stringify(kit.model.calls[0]?.prompt)).toContain("> the sky is green");
});

test("each topic of a group is a conversation, and is answered there", async () => {
  const kit = await openTelegram({ mentionOnReply: false });
  kit.telegram.says(GROUP, BEN, "@fake_bot one", { topic: 5 });
  kit.telegram.says(GROUP, BEN, "@fake_bot two", { topic: 6 });
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(2));
  expect(kit.telegram.seen(GROUP, "bot").map(({ topic }) => topic)).toEqual(expect.arrayContaining([5, 6]));
  await kit.until(() =>
    expect(kit.holder(`telegram:${GROUP}:5`).listDeliveries()).toMatchObject([{ state: "done", parts: 1 }]),
  );
  expect(kit.model.calls).toHaveLength(2);
});

test("a group that gets another number keeps its conversation", async () => {
  const kit = await openTelegram();
  const chat = { id: -5, type: "group", title: "Friends" } as const;
  kit.telegram.says(chat, BEN, "@fake_bot hi");
  await kit.until(() => expect(kit.texts(-5)).toHaveLength(1));
  kit.telegram.migrates(-5, -1005);
  const holder = kit.holder("telegram:-5");
  await holder.saveMessages([{ id: "x", role: "user", parts: [{ type: "text", text: "Remind them." }] }]);
  await kit.until(() => expect(kit.texts(-1005)).toHaveLength(1));
  kit.telegram.says(-1005, BEN, "@fake_bot still there?");
  await kit.until(() => expect(kit.texts(-1005)).toHaveLength(2));
  expect(holder.messages.filter(({ role }) => role === "user")).toHaveLength(3);
});

test("a message that is changed before its turn begins is read as it is then; later it is no new turn", async () => {
  const kit = await openTelegram({ manual: true, coalesceMs: 5_000 });
  const said = kit.telegram.says(7, ADA, "helo") as { message?: { message_id: number } };
  const id = said.message?.message_id ?? 0;
  await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
  kit.telegram.edits(7, ADA, id, "hello");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  expect(JSON.stringify(kit.model.calls[0]?.prompt)).toContain('"hello"');
  kit.telegram.edits(7, ADA, id, "hello!");
  kit.telegram.says(7, ADA, "next");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.model.calls).toHaveLength(2);
});

test("while a turn runs: /stop is heard, others are answered, and a press too", async () => {
  const never = new Promise<never>(() => {});
  const kit = await openTelegram({
    tools: { wait: serverTool(() => never), pay: serverTool(() => "paid", { needsApproval: true }) },
    script: ({ userText, step }) => {
      if (userText === "pay") return { toolCalls: [{ toolName: "pay", input: {} }] };
      if (userText === "hello") return "Hi Ben.";
      return step === 0 ? { text: "Working.", toolCalls: [{ toolName: "wait", input: {} }] } : "Paid.";
    },
  });
  kit.telegram.says(7, ADA, "go");
  await kit.until(() => expect(kit.texts()).toEqual(["Working."]));
  kit.telegram.says(8, BEN, "hello");
  await kit.until(() => expect(kit.texts(8)).toEqual(["Hi Ben."]));
  kit.telegram.says(9, { id: 9, first_name: "Cy" }, "pay");
  const question = () => kit.telegram.seen(9, "bot").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  kit.telegram.presses(9, { id: 9, first_name: "Cy" }, question()?.id ?? 0, "Reject");
  await kit.until(() => expect(kit.telegram.told).toMatchObject([{ text: "Rejected by Cy" }]));
  kit.telegram.says(7, ADA, "/stop");
  await kit.until(() => expect(kit.texts()).toEqual(["Working.\n\n(stopped)"]));
});

test("a webhook with a secret: 200 once it is stored; a wrong secret is refused and changes nothing", async () => {
  const kit = await openTelegram({ secretToken: "s3cret" });
  const url = `${kit.host.url}/agents/talk/main/messengers/telegram/webhook`;
  const wrong = await fetch(url, { method: "POST", body: "{}", headers: { "x-telegram-bot-api-secret-token": "no" } });
  expect(wrong.status).toBe(401);
  kit.telegram.webhook = { url, secret: "s3cret" };
  const update = kit.telegram.says(7, ADA, "hi");
  kit.telegram.repeats(update);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.telegram.deliveries.map(({ status }) => status)).toEqual([200, 200]));
  const junk = await fetch(url, {
    ...{ method: "POST", body: "{", headers: { "x-telegram-bot-api-secret-token": "s3cret" } },
  });
  expect(junk.status).toBe(400);
  expect(kit.telegram.calls.some(({ method }) => method === "getUpdates")).toBe(false);
  kit.errors.length = 0;
});

test("a second message of the same person, while an answer is written, is a turn of its own after it, by both ways in", async () => {
  for (const secretToken of [undefined, "s3cret"]) {
    const gate = Promise.withResolvers<string>();
    const kit = await openTelegram({
      ...(secretToken !== undefined && { secretToken }),
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ userText, step }) =>
        step === 0 && userText === "one" ? { text: "First", toolCalls: [{ toolName: "wait", input: {} }] } : userText,
    });
    const url = `${kit.host.url}/agents/talk/main/messengers/telegram/webhook`;
    if (secretToken !== undefined) kit.telegram.webhook = { url, secret: secretToken };
    kit.telegram.says(7, ADA, "one");
    await kit.until(() => expect(kit.texts()).toEqual(["First"]));
    kit.telegram.says(7, ADA, "two");
    kit.telegram.says(7, ADA, "three");
    // All are taken while the first one runs.
    await kit.until(() => expect(kit.deliveries()).toHaveLength(3));
    expect(kit.model.calls).toHaveLength(1);
    gate.resolve("now");
    await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
    expect(kit.texts()).toEqual(["First\n\none", "two", "three"]);
    expect(kit.model.calls).toHaveLength(4);
  }
});

test("by webhook: what the app's own code throws on is not said to be taken, and comes again until it is stored", async () => {
  let throws = 2;
  const kit = await openTelegram({
    secretToken: "s3cret",
    allow() {
      if (throws-- > 0) throw new Error("no directory");
      return true;
    },
  });
  const url = `${kit.host.url}/agents/talk/main/messengers/telegram/webhook`;
  kit.telegram.webhook = { url, secret: "s3cret" };
  kit.telegram.says(7, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.telegram.deliveries.map(({ status }) => status)).toEqual([503, 503, 200]));
  expect(kit.model.calls).toHaveLength(1);
  expect(kit.errors).toContain("no directory");
  kit.errors.length = 0;
});

test("by webhook: a turn that throws was taken, is said to have failed, once, and the next message is answered", async () => {
  const kit = await openTelegram({
    secretToken: "s3cret",
    script: ({ userText }) => {
      if (userText === "hi") throw new Error("secret detail");
      return "Here.";
    },
  });
  const url = `${kit.host.url}/agents/talk/main/messengers/telegram/webhook`;
  kit.telegram.webhook = { url, secret: "s3cret" };
  const update = kit.telegram.says(7, ADA, "hi");
  const failed = "Something went wrong. Please try again.";
  await kit.until(() => expect(kit.texts()).toEqual([failed]));
  kit.telegram.repeats(update);
  kit.telegram.says(7, ADA, "still there?");
  await kit.until(() => expect(kit.texts()).toEqual([failed, "Here."]));
  await kit.until(() => expect(kit.telegram.deliveries.map(({ status }) => status)).toEqual([200, 200, 200]));
  kit.errors.length = 0;
});

test("the webhook is registered when the agent starts, with its secret", async () => {
  const kit = await openTelegram({ secretToken: "s3cret", register: { url: "http://127.0.0.1:9/hook" } });
  await kit.until(() => expect(kit.telegram.webhook).toEqual({ url: "http://127.0.0.1:9/hook", secret: "s3cret" }));
  await kit.telegram.close();
});

test("verifyWebhook decides instead of a secret", async () => {
  const kit = await openTelegram({ verifyWebhook: (request) => request.headers.get("x-from") === "us" });
  const url = `${kit.host.url}/agents/talk/main/messengers/telegram/webhook`;
  const post = (from: string) => fetch(url, { method: "POST", body: "{}", headers: { "x-from": from } });
  expect((await post("them")).status).toBe(401);
  expect((await post("us")).status).toBe(200);
});

test("polling beside a webhook is a conflict that is told; written out, polling takes the webhook away", async () => {
  const kit = await openTelegram({ manual: true });
  await kit.until(() => expect(kit.telegram.calls.some(({ method }) => method === "getUpdates")).toBe(true));
  kit.telegram.webhook = { url: "http://127.0.0.1:9/" };
  kit.telegram.offers({});
  await kit.until(() => expect(kit.events.some(({ type }) => type === "messenger:conflict")).toBe(true));
  expect(kit.errors.join()).toContain("while webhook is active");
  kit.errors.length = 0;
  const other = await openTelegram({ mode: "polling" });
  await other.until(() => expect(other.telegram.calls.some(({ method }) => method === "deleteWebhook")).toBe(true));
});

test("one that cannot be stored does not keep back what others say, and comes again", async () => {
  let broken = true;
  const kit = await openTelegram({
    manual: true,
    allow: ({ author }) => {
      if (broken && author.id === "7") throw new Error("no directory");
      return true;
    },
  });
  kit.telegram.says(7, ADA, "hi");
  kit.telegram.says(8, BEN, "hi");
  await kit.until(() => expect(kit.texts(8)).toEqual(["Hello there."]));
  broken = false;
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls).toHaveLength(2);
  expect(kit.errors).toContain("no directory");
  kit.errors.length = 0;
});

test("a lost answer is sent again and the row says so; a 429 is waited out; a block ends it, and the token is in no words", async () => {
  const kit = await openTelegram({ manual: true });
  kit.telegram.plan("sendMessage", { kind: "lost-answer" });
  kit.telegram.says(7, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
  expect(kit.texts()).toEqual(["Hello there.", "Hello there."]);
  kit.telegram.plan("sendMessage", tooManyRequests(40));
  kit.telegram.says(7, ADA, "more");
  await kit.until(() => expect(kit.deliveries()[0]).toMatchObject({ attempts: 1 }));
  expect(kit.texts()).toHaveLength(2);
  await kit.clock.advance(41_000);
  await kit.until(() => expect(kit.texts()).toHaveLength(3));
  kit.telegram.plan("sendMessage", {
    kind: "answer",
    status: 403,
    description: "Forbidden: bot was blocked by the user",
  });
  kit.telegram.says(7, ADA, "last");
  await kit.until(() => expect(kit.deliveries()[0]).toMatchObject({ state: "failed" }));
  expect(kit.deliveries()[0]?.error).toContain("bot was blocked");
  expect(JSON.stringify([kit.deliveries(), kit.events, kit.errors])).not.toContain(kit.telegram.token);
});

test("a text whose form Telegram does not read goes plain", async () => {
  const kit = await openTelegram({ script: () => "Hello **you**." });
  kit.telegram.plan("sendMessage", {
    kind: "answer",
    status: 400,
    description: "Bad Request: can't parse entities: x",
  });
  kit.telegram.says(7, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello **you**."]));
});

test.each([
  [{ token: "nonsense" }, "@BotFather"],
  [{ token: "1:a", mode: "webhook" as const }, "needs `secretToken`"],
  [{ token: "1:a", secretToken: "not good!" }, "1 to 256"],
  [{ token: "1:a", register: { url: "https://a.example" } }, "`register` is for a webhook"],
  [{ token: "1:a", apiUrl: "ftp://a.example" }, "`apiUrl`"],
  [{ token: "1:a", tokn: "b" }, 'Did you mean "token"'],
  [{ token: "1:a", mode: "poll" }, '"polling" or "webhook"'],
  [{ token: "1:a", secretToken: "s", register: "https://a.example" }, "must be { url }"],
  [{ token: "1:a", secretToken: "s", register: { url: "nope" } }, "must be { url }"],
  [{ token: "1:a", pace: { perSecond: "25" } }, "perSecond must be a number"],
])("options that cannot work are refused: %j", (options, words) => {
  expect(() => telegramMessenger(options as TelegramMessengerOptions)).toThrow(words);
});

test("what somebody says at Telegram is an act that the app may refuse", async () => {
  const asked: string[] = [];
  const kit = await openTelegram({
    make: (Base) =>
      class extends Base {
        override authorize(identity: { id: string } | undefined, act: string) {
          asked.push(`${identity?.id ?? "nobody"} ${act}`);
          return act !== "chat.submit";
        }
      },
  });
  kit.telegram.says(7, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(['"chat.submit" is not allowed here.']));
  expect(asked).toEqual(["telegram:7 chat.submit"]);
  expect(kit.model.calls).toEqual([]);
});
