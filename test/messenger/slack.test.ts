import { slackMessenger } from "perdure/messengers/slack";
import { fakeSlack, slackRateLimited } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA_AT_SLACK as ADA, BEN_AT_SLACK as BEN, openSlack } from "./kit.ts";

const BOT = "<@UBOT>";
const promptOf = (call: unknown) => JSON.stringify((call as { readonly prompt?: unknown } | undefined)?.prompt);

test("a bot with two tokens answers from behind NAT, and the answer grows in one message", async () => {
  const kit = await openSlack({ script: () => ({ text: ["Hel", "lo **you**", "."], delayMs: 20 }) });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", parts: 1, maybeTwice: false }]));
  expect(kit.texts()).toEqual(["Hello you."]);
  expect(kit.slack.seen("D7", "bot")[0]?.blocks).toEqual([
    {
      type: "rich_text",
      elements: [
        {
          type: "rich_text_section",
          elements: [
            { type: "text", text: "Hello " },
            { type: "text", text: "you", style: { bold: true } },
            { type: "text", text: "." },
          ],
        },
      ],
    },
  ]);
});

test("a mention is two events and one turn, however often each comes; it is answered in a thread", async () => {
  const kit = await openSlack();
  kit.slack.says("C1", BEN, "just talking");
  const said = kit.slack.says("C1", BEN, `${BOT} hi &amp; <#C2|general> <https://x.example|there> <@U9>`);
  expect(said.events).toHaveLength(2);
  for (let i = 0; i < 9; i++) kit.slack.repeats(said);
  await kit.until(() => expect(kit.texts("C1")).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.slack.deliveries).toHaveLength(21));
  expect(kit.slack.seen("C1", "bot")[0]?.thread).toBe(said.ts);
  expect(kit.model.calls).toHaveLength(1);
  expect(promptOf(kit.model.calls[0])).toContain("Ben: @fake_bot hi & #general [there](https://x.example) @U9");
  expect(kit.holder(`slack:C1:${said.ts}`).messages[0]?.metadata).toMatchObject({ subject: "slack:U8" });
});

test("a thread is a conversation: who names the bot in it again goes on there; another message begins another", async () => {
  const kit = await openSlack();
  const { ts: thread } = kit.slack.says("C1", BEN, `${BOT} one`);
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(1));
  kit.slack.says("C1", ADA, "between us", { thread });
  kit.slack.says("C1", ADA, `${BOT} two`, { thread });
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(2));
  const { ts: other } = kit.slack.says("C1", ADA, `${BOT} three`);
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(3));
  expect(kit.slack.seen("C1", "bot").map((one) => one.thread)).toEqual([thread, thread, other]);
  expect(kit.holder(`slack:C1:${thread}`).messages).toHaveLength(4);
  expect(kit.holder(`slack:C1:${other}`).messages).toHaveLength(2);
});

test("where the bot was named once, all is answered if the app wants that; a thread below a direct message is its own", async () => {
  const kit = await openSlack({ respondTo: ["direct-message", "mention", "subscribed-thread"] });
  const { ts: thread } = kit.slack.says("C1", BEN, `${BOT} one`);
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(1));
  kit.slack.says("C1", BEN, "and this", { thread });
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(2));
  const { ts } = kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  kit.slack.says("D7", ADA, "below", { thread: ts });
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.slack.seen("D7", "bot").map((one) => one.thread)).toEqual([undefined, ts]);
  expect(kit.holder(`slack:D7:${ts}`).messages).toHaveLength(2);
});

test("what the bot, other bots and Slack itself say is not answered", async () => {
  const kit = await openSlack({ bots: false });
  kit.slack.says("D7", { id: "U9", name: "Beep", isBot: true }, "beep");
  kit.slack.says("D7", { id: "UBOT", name: "Bot" }, "I said this");
  kit.slack.offers({
    type: "message",
    subtype: "channel_join",
    channel: "D7",
    user: "U7",
    text: "joined",
    ts: "1.000001",
  });
  kit.slack.offers({ type: "reaction_added", user: "U7" });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.slack.deliveries).toHaveLength(5));
  await kit.until(() => expect(kit.texts()).toContain("Hello there."));
  expect(kit.model.calls).toHaveLength(1);
  // With other bots it may talk; with itself it never does.
  const open = await openSlack({ bots: true });
  open.slack.says("D7", { id: "UBOT", name: "Bot", isBot: true }, "I said this");
  open.slack.says("D7", { id: "U9", name: "Beep", isBot: true }, "beep");
  await open.until(() => expect(open.texts()).toContain("Hello there."));
  expect(open.model.calls).toHaveLength(1);
});

test("a message that is changed before its turn begins is read as it is then; later it is no new turn", async () => {
  const kit = await openSlack({ manual: true, coalesceMs: 5_000 });
  const { ts } = kit.slack.says("D7", ADA, "helo");
  await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
  kit.slack.edits("D7", ADA, ts, "hello");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  expect(promptOf(kit.model.calls[0])).toContain('"hello"');
  kit.slack.edits("D7", ADA, ts, "hello!");
  // Slack tells of what it changes by itself in the same way.
  const message = { type: "message", user: "U7", text: "hello!", ts };
  kit.slack.offers({ type: "message", subtype: "message_changed", channel: "D7", ts: "2.000001", message });
  kit.slack.says("D7", ADA, "next");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.model.calls).toHaveLength(2);
});

test("while a turn runs: another message is taken, a press is answered, and it can be stopped", async () => {
  const never = new Promise<never>(() => {});
  const kit = await openSlack({
    tools: { wait: serverTool(() => never), pay: serverTool(() => "paid", { needsApproval: true }) },
    script: ({ userText, step }) => {
      if (userText === "pay") return { toolCalls: [{ toolName: "pay", input: {} }] };
      if (userText === "hello") return "Hi Ben.";
      return step === 0 ? { text: "Working.", toolCalls: [{ toolName: "wait", input: {} }] } : "Paid.";
    },
  });
  kit.slack.says("D7", ADA, "go");
  await kit.until(() => expect(kit.texts()).toEqual(["Working."]));
  kit.slack.says("D8", BEN, "hello");
  await kit.until(() => expect(kit.texts("D8")).toEqual(["Hi Ben."]));
  const cy = { id: "U9", name: "Cy" };
  kit.slack.says("D9", cy, "pay");
  const question = () => kit.slack.seen("D9", "bot").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  const receipt = await kit.slack.presses("D9", cy, question()?.ts ?? "", "Reject");
  expect(receipt.status).toBe(200);
  await kit.until(() => expect(kit.slack.told).toEqual([{ channel: "D9", user: "U9", text: "Rejected by Cy" }]));
  await kit.until(() => expect(kit.texts("D9")[0]).toContain("Rejected by Cy"));
  await kit.slack.commands("D7", ADA, "/stop");
  await kit.until(() => expect(kit.texts()).toEqual(["Working.\n\n(stopped)"]));
});

test("in a thread the bot is stopped by its name, where many talk by nobody else than who asked; a command says so", async () => {
  const never = new Promise<never>(() => {});
  const kit = await openSlack({
    tools: { wait: serverTool(() => never) },
    script: () => ({ text: "Working.", toolCalls: [{ toolName: "wait", input: {} }] }),
  });
  const { ts: thread } = kit.slack.says("C1", ADA, `${BOT} go`);
  await kit.until(() => expect(kit.texts("C1")).toEqual(["Working."]));
  await kit.slack.commands("C1", ADA, "/stop");
  await kit.slack.commands("C1", ADA, "/other");
  expect(kit.slack.told.map(({ text }) => text)).toEqual([
    expect.stringContaining("in the thread"),
    "I do not know this command.",
  ]);
  kit.slack.says("C1", BEN, `${BOT} /stop`, { thread });
  await kit.until(() => expect(kit.slack.deliveries.filter(({ kind }) => kind === "events_api")).toHaveLength(4));
  expect(kit.texts("C1")).toEqual(["Working."]);
  kit.slack.says("C1", ADA, `${BOT} /stop`, { thread });
  await kit.until(() => expect(kit.texts("C1")).toEqual(["Working.\n\n(stopped)"]));
});

test("a question in a thread is answered by a button there, once, and a button stops an answer", async () => {
  const ran: unknown[] = [];
  const never = new Promise<never>(() => {});
  const kit = await openSlack({
    tools: {
      pay: serverTool((input) => (ran.push(input), "paid"), { needsApproval: true }),
      wait: serverTool(() => never),
    },
    approvers: ({ author }) => author.id === "U8",
    delivery: { stopButton: "Stop" },
    script: ({ userText, step }) =>
      userText.endsWith("pay")
        ? step === 0
          ? { text: "I will pay.", toolCalls: [{ toolName: "pay", input: { amount: 5 } }] }
          : "All is paid."
        : { text: "Working.", toolCalls: [{ toolName: "wait", input: {} }] },
  });
  const { ts: thread } = kit.slack.says("C1", ADA, `${BOT} pay`);
  const question = () => kit.slack.seen("C1", "bot").find(({ buttons }) => buttons.length === 2);
  await kit.until(() => expect(question()).toBeDefined());
  const { ts = "" } = question() ?? {};
  await kit.slack.presses("C1", ADA, ts, "Approve");
  await kit.until(() => expect(kit.slack.told).toHaveLength(1));
  expect(kit.slack.told[0]).toMatchObject({ user: "U7", text: expect.stringContaining("You may not") as string });
  await kit.slack.presses("C1", BEN, ts, "Approve");
  await kit.until(() => expect(kit.texts("C1").at(-1)).toBe("All is paid."));
  expect(ran).toEqual([{ amount: 5 }]);
  await kit.until(() => expect(kit.texts("C1")[1]).toContain("Approved by Ben"));
  expect(kit.slack.seen("C1", "bot").every((one) => one.thread === thread && one.buttons.length === 0)).toBe(true);
  kit.slack.says("D7", ADA, "go");
  const growing = () => kit.slack.seen("D7", "bot").find(({ buttons }) => buttons[0]?.label === "Stop");
  await kit.until(() => expect(growing()).toBeDefined());
  await kit.slack.presses("D7", ADA, growing()?.ts ?? "", "Stop");
  await kit.until(() => expect(kit.texts()).toEqual(["Working.\n\n(stopped)"]));
});

test("a lost answer is asked about, and the message is there once; 429 waits; what cannot be said fails; no words hold a token", async () => {
  const kit = await openSlack({ manual: true });
  kit.slack.plan("chat.postMessage", { kind: "lost-answer" });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(kit.texts()).toEqual(["Hello there."]);
  kit.slack.plan("chat.postMessage", { kind: "lost-request" });
  kit.slack.says("D7", ADA, "again");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  await kit.until(() => expect(kit.deliveries()[0]).toMatchObject({ state: "done", maybeTwice: false }));
  kit.slack.plan("chat.postMessage", slackRateLimited(40));
  kit.slack.says("D7", ADA, "more");
  await kit.until(() => expect(kit.deliveries()[0]).toMatchObject({ attempts: 1 }));
  await kit.clock.advance(20_000);
  await kit.restart();
  await kit.clock.advance(15_000);
  expect(kit.texts()).toHaveLength(2);
  await kit.clock.advance(10_000);
  await kit.until(() => expect(kit.texts()).toHaveLength(3));
  kit.slack.plan("chat.postMessage", { kind: "answer", status: 200, error: "is_archived" });
  kit.slack.says("D7", ADA, "last");
  await kit.until(() => expect(kit.deliveries()[0]).toMatchObject({ state: "failed" }));
  expect(kit.deliveries()[0]?.error).toContain("is_archived");
  kit.slack.plan("chat.postMessage", { kind: "answer", status: 200, error: "token_revoked" });
  kit.slack.says("D7", ADA, "really the last");
  await kit.until(() => expect(kit.deliveries()[0]).toMatchObject({ state: "failed" }));
  expect(JSON.stringify([kit.deliveries(), kit.events, kit.errors])).not.toMatch(/xoxb|xapp/);
});

test("a lost answer in a long thread is found behind other pages; where nothing may be read it is made again, and said so", async () => {
  const kit = await openSlack();
  const { ts: thread } = kit.slack.says("C1", ADA, "a thread");
  for (let i = 0; i < 450; i++) kit.slack.says("C1", BEN, `word ${i}`, { thread });
  kit.slack.plan("chat.postMessage", { kind: "lost-answer" });
  kit.slack.says("C1", ADA, `${BOT} hi`, { thread });
  const at = `slack:C1:${thread}`;
  await kit.until(() => expect(kit.holder(at).listDeliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(kit.texts("C1")).toEqual(["Hello there."]);
  kit.slack.plan("chat.postMessage", { kind: "lost-answer" });
  await kit.lives[0]?.deliverNotice("Noted.", { channel: "slack", thread: at });
  await kit.until(() => expect(kit.holder(at).listDeliveries()).toMatchObject([{ state: "done" }, { state: "done" }]));
  expect(
    kit
      .holder(at)
      .listDeliveries()
      .some(({ maybeTwice }) => maybeTwice),
  ).toBe(false);
  expect(kit.texts("C1")).toEqual(["Hello there.", "Noted."]);
  expect(kit.slack.calls.filter(({ method }) => method === "conversations.replies").length).toBeGreaterThan(3);
  kit.slack.plan("chat.postMessage", { kind: "lost-answer" });
  kit.slack.plan("conversations.history", { kind: "answer", status: 200, error: "missing_scope" });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
  expect(kit.texts()).toEqual(["Hello there.", "Hello there."]);
});

test("a message that somebody deleted while it grew is said anew, whole", async () => {
  const done = Promise.withResolvers<string>();
  let call = 0;
  const kit = await openSlack({
    tools: { wait: serverTool(() => done.promise) },
    script: () => (call++ === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it."),
  });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Half"]));
  kit.slack.deletes("D7", kit.slack.seen("D7", "bot")[0]?.ts ?? "");
  done.resolve("done");
  await kit.until(() => expect(kit.texts()).toEqual(["Half\n\nof it."]));
});

test("nobody is called by what a model writes, no link is looked at, and what Slack does not take goes plain", async () => {
  const text = "<!channel> @everyone <@U7> & **b** [x](https://evil.example/?q=1) https://y.example/a_b_c.";
  const kit = await openSlack({ script: () => text });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done" }]));
  expect(kit.texts()).toEqual(["<!channel> @everyone <@U7> & b x https://y.example/a_b_c."]);
  expect(kit.slack.called).toEqual([]);
  const posts = kit.slack.calls.filter(({ method }) => method.startsWith("chat."));
  expect(posts.every(({ params }) => params.parse === "none" && params.link_names === "false")).toBe(true);
  expect(posts[0]?.params).toMatchObject({ unfurl_links: "false", unfurl_media: "false" });
  kit.slack.plan("chat.postMessage", { kind: "answer", status: 200, error: "invalid_blocks" });
  kit.slack.says("D7", ADA, "again");
  await kit.until(() => expect(kit.texts()[1]).toBe(text));
  expect(kit.slack.called).toEqual([]);
});

test("a connection that Slack wants replaced is, before it goes; one that breaks is made anew, and nothing is lost", async () => {
  const kit = await openSlack({ manual: true });
  const opened = () => kit.slack.calls.filter(({ method }) => method === "apps.connections.open").length;
  await kit.until(() => expect(kit.slack.connections).toBe(1));
  kit.slack.disconnects();
  await kit.until(() => expect([opened(), kit.slack.connections]).toEqual([2, 1]));
  expect(kit.errors).toEqual([]);
  kit.slack.says("D7", ADA, "one");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  kit.slack.drops();
  kit.slack.says("D7", ADA, "two");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.errors).toEqual([expect.stringContaining("The connection to Slack broke")]);
  kit.errors.length = 0;
  kit.slack.disconnects("too_many_websockets");
  await kit.until(() => expect(kit.events.some(({ type }) => type === "messenger:conflict")).toBe(true));
  kit.slack.says("D7", ADA, "three");
  await kit.clock.advance(31_000);
  await kit.until(() => expect(kit.texts()).toHaveLength(3));
  expect(kit.errors).toEqual([expect.stringContaining("too many processes")]);
  kit.errors.length = 0;
  expect(kit.model.calls).toHaveLength(3);
});

test("what could not be stored is not acknowledged, and comes again", async () => {
  let fails = true;
  const kit = await openSlack({
    manual: true,
    allow: () => {
      if (fails) throw new Error("no room");
      return true;
    },
  });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.errors).toContain("no room"));
  fails = false;
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.slack.deliveries.map(({ status }) => status)).toEqual(expect.arrayContaining([0, 200]));
  expect(kit.model.calls).toHaveLength(1);
  kit.errors.length = 0;
});

test("a socket that is not Slack's is not opened", async () => {
  const slack = await fakeSlack();
  onTestFinished(() => slack.close());
  const { botToken, appToken, url: apiUrl } = slack;
  const { channel } = slackMessenger({ botToken, appToken, apiUrl: apiUrl.replace("127.0.0.1", "localhost") });
  const cursor = { read: () => undefined, write: () => undefined };
  const listening = channel.listen?.(() => Promise.resolve(), cursor, new AbortController().signal);
  await expect(listening).rejects.toThrow("an address that is not its own");
  expect(slack.connections).toBe(0);
});

test("a webhook: signed, not long ago, 200 once it is stored; the address is confirmed; a command is answered", async () => {
  const kit = await openSlack({ signingSecret: "signing-secret" });
  const event = { type: "message", channel: "D7", channel_type: "im", user: "U7", text: "forged", ts: "5.000001" };
  const forged = JSON.stringify({ type: "event_callback", event_id: "E", event });
  expect((await kit.slack.request(forged, "bad")).status).toBe(401);
  expect((await kit.slack.request(forged, "old")).status).toBe(401);
  expect((await fetch(kit.slack.webhook ?? "", { method: "POST", body: forged })).status).toBe(401);
  expect(kit.model.calls).toEqual([]);
  const asked = await kit.slack.request(JSON.stringify({ type: "url_verification", challenge: "c4" }));
  expect([asked.status, await asked.text()]).toEqual([200, "c4"]);
  const said = kit.slack.says("D7", ADA, "hi");
  kit.slack.repeats(said);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.slack.deliveries.map(({ status }) => status)).toEqual([200, 200]));
  expect((await kit.slack.request("{")).status).toBe(400);
  expect((await kit.slack.request("[]")).status).toBe(400);
  await kit.slack.commands("C1", ADA, "/stop");
  expect(kit.slack.told).toEqual([{ channel: "C1", user: "U7", text: expect.stringContaining("thread") as string }]);
  await kit.slack.commands("D7", ADA, "/stop");
  expect(kit.slack.told).toHaveLength(1);
  expect(kit.slack.calls.some(({ method }) => method === "apps.connections.open")).toBe(false);
  kit.errors.length = 0;
});

test("a webhook whose delivery could not be stored says so, and gets it again; a second message waits for the first", async () => {
  let fails = true;
  const kit = await openSlack({
    signingSecret: "signing-secret",
    allow: () => {
      if (fails) throw new Error("no room");
      return true;
    },
    script: ({ userText }) => ({ text: Array.from({ length: 30 }, () => `${userText} `), delayMs: 10 }),
  });
  kit.slack.says("D7", ADA, "one");
  await kit.until(() => expect(kit.slack.deliveries.map(({ status }) => status)).toContain(503));
  fails = false;
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  kit.slack.says("D7", ADA, "two");
  const whole = (word: string) => Array.from({ length: 30 }, () => word).join(" ");
  await kit.until(() => expect(kit.texts()).toEqual([whole("one"), whole("two")]));
  expect(kit.model.calls).toHaveLength(2);
  // Without a line break in it, too, an answer grows before it ends.
  expect(kit.slack.seen("D7", "bot")[0]?.versions.length).toBeGreaterThan(1);
  kit.errors.length = 0;
});

test("a webhook brings presses too", async () => {
  const ran: unknown[] = [];
  const kit = await openSlack({
    signingSecret: "signing-secret",
    tools: { pay: serverTool((input) => (ran.push(input), "paid"), { needsApproval: true }) },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "All is paid."),
  });
  kit.slack.says("D7", ADA, "pay");
  const question = () => kit.slack.seen("D7", "bot").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  await kit.slack.presses("D7", ADA, question()?.ts ?? "", "Approve");
  await kit.until(() => expect(kit.texts().at(-1)).toBe("All is paid."));
  expect(ran).toEqual([{ amount: 5 }]);
});

test("without the scope for names people are called by their ids, and nobody is asked again", async () => {
  const kit = await openSlack();
  kit.slack.plan("users.info", { kind: "answer", status: 200, error: "missing_scope" });
  kit.slack.says("C1", BEN, `${BOT} hi`);
  await kit.until(() => expect(kit.texts("C1")).toHaveLength(1));
  expect(promptOf(kit.model.calls[0])).toContain("U8: @fake_bot hi");
  const asked = () => kit.slack.calls.filter(({ method }) => method === "users.info").length;
  const before = asked();
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  expect(asked()).toBe(before);
});

test("files go both ways; neither rows, events, words nor the model know where they are, or the token", async () => {
  const bytes = new Uint8Array(40_000).fill(3);
  const kit = await openSlack({
    attachments: { allow: ["image/*"] },
    script: () => ({ text: "Here.", files: [{ mediaType: "image/png", data: new Uint8Array(500).fill(7) }] }),
  });
  kit.slack.sends("D7", ADA, [{ name: "a.png", mediaType: "image/png", bytes }], "look");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  const [words, file] = kit.slack.seen("D7", "bot");
  expect([words?.text, file?.file?.bytes]).toEqual(["Here.", new Uint8Array(500).fill(7)]);
  const [, stored] = kit.holder().messages[0]?.parts ?? [];
  expect(stored).toMatchObject({ type: "file", mediaType: "image/png", filename: "a.png" });
  // What is lost before Slack is told to show it was surely not shown; behind it, nobody knows.
  kit.slack.plan("upload", { kind: "lost-answer" });
  kit.slack.says("D7", ADA, "again");
  const first = { state: "done", maybeTwice: false };
  await kit.until(() => expect(kit.deliveries()).toMatchObject([first, first]));
  kit.slack.plan("files.completeUploadExternal", { kind: "lost-answer" });
  kit.slack.says("D7", ADA, "and again");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: true }, first, first]));
  expect(kit.slack.seen("D7", "bot").filter((one) => one.file !== undefined)).toHaveLength(4);
  kit.slack.plan("files-pri", { kind: "answer", status: 404, error: "" });
  kit.slack.sends("D7", ADA, [{ name: "b.png", mediaType: "image/png", bytes }], "gone");
  await kit.until(() => expect(promptOf(kit.model.calls.at(-1))).toContain("[file: b.png (image/png), not read"));
  const rows = kit.ports.flatMap((port) =>
    port
      .sql<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'perdure_%'")
      .flatMap(({ name }) => port.sql(`SELECT * FROM ${name}`)),
  );
  expect(JSON.stringify([rows, kit.events, kit.errors, kit.model.calls])).not.toMatch(/xoxb|xapp|files-pri/);
});

test("what somebody says at Slack is an act that the app may refuse", async () => {
  const asked: string[] = [];
  const kit = await openSlack({
    make: (Base) =>
      class extends Base {
        override authorize(identity: { id: string } | undefined, act: string) {
          asked.push(`${identity?.id ?? "nobody"} ${act}`);
          return act !== "chat.submit";
        }
      },
  });
  kit.slack.says("D7", ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(['"chat.submit" is not allowed here.']));
  expect(asked).toEqual(["slack:U7 chat.submit"]);
  expect(kit.model.calls).toEqual([]);
});

test.each([
  [{ botToken: "nonsense", appToken: "xapp-a" }, "xoxb-"],
  [{ botToken: "xoxb-a" }, "one of the two"],
  [{ botToken: "xoxb-a", appToken: "xapp-a", signingSecret: "s" }, "one of the two"],
  [{ botToken: "xoxb-a", appToken: "xoxb-a" }, "xapp-"],
  [{ botToken: "xoxb-a", signingSecret: "" }, "is empty"],
  [{ botToken: "xoxb-a", appToken: "xapp-a", stopCommand: "stop" }, "begin with /"],
  [{ botToken: "xoxb-a", appToken: "xapp-a", apiUrl: "ftp://a.example" }, "`apiUrl`"],
  [{ botToken: "xoxb-a", appTokn: "xapp-a" }, 'Did you mean "appToken"'],
])("options that cannot work are refused: %j", (options, words) => {
  expect(() => slackMessenger(options)).toThrow(words);
});
