// What each network has of its own, and what would go wrong with the SDK's own runtime.
import { createHmac } from "node:crypto";
import { Readable } from "node:stream";
import type { Adapter, ChatInstance, StateAdapter } from "chat";
import { MessengerStateAgent } from "perdure/messengers";
import { type ChatSdkAdapter, chatSdkMessenger } from "perdure/messengers/chat-sdk";
import { expect, expectTypeOf, test } from "vitest";
import type { Bridge } from "../../../src/messenger/chat-sdk/bridge.ts";
import { fetchAttachment, fileRefs, postedFileId } from "../../../src/messenger/chat-sdk/files.ts";
import { networkOf } from "../../../src/messenger/chat-sdk/networks.ts";
import type { chatSdkState } from "../../../src/messenger/chat-sdk/state.ts";
import { serverTool } from "../../think/harness.ts";
import { openSdk } from "./kit.ts";
import { type Hook, NETWORKS } from "./networks.ts";
import { makeAdapter } from "./make-adapter.ts";

/** A Telegram update of our own making. */
const update = (more: object): Hook => ({
  headers: { "content-type": "application/json", "x-telegram-bot-api-secret-token": "s3cret" },
  body: JSON.stringify({ update_id: Math.floor(Math.random() * 1e9), ...more }),
});
const message = (id: number, more: object = {}) => ({
  ...{ message_id: id, date: 1, chat: { id: 7, type: "private" }, from: { id: 7, is_bot: false, first_name: "Ada" } },
  ...more,
});
const command = (text: string) => ({ text, entities: [{ type: "bot_command", offset: 0, length: text.length }] });

/** An event of Slack in a channel, signed. */
function slackEvent(event: object, eventId: string, retry = 0): Hook {
  const body = JSON.stringify({ type: "event_callback", team_id: "T1", event_id: eventId, event });
  const at = String(Math.floor(Date.now() / 1000));
  const hash = createHmac("sha256", "signing").update(`v0:${at}:${body}`).digest("hex");
  const headers = {
    ...{ "content-type": "application/json", "x-slack-request-timestamp": at, "x-slack-signature": `v0=${hash}` },
    ...(retry > 0 && { "x-slack-retry-num": String(retry) }),
  };
  return { headers, body };
}
const inChannel = { channel: "C1", channel_type: "channel", user: "U7", team: "T1", ts: "1700000500.000100" };

test("what is given to adapters is what the SDK gives them, and its adapters are ours", () => {
  expectTypeOf<ReturnType<Bridge["instance"]>>().toExtend<
    Omit<ChatInstance, "getState" | "getLogger" | "processMessage" | "handleIncomingMessage" | "processMessageUpdated">
  >();
  expectTypeOf<keyof ReturnType<typeof chatSdkState>>().toEqualTypeOf<keyof StateAdapter>();
  expectTypeOf<Required<ReturnType<Bridge["instance"]>>>().toHaveProperty("processMessage");
  expectTypeOf<keyof ReturnType<Bridge["instance"]>>().toEqualTypeOf<keyof ChatInstance>();
  expectTypeOf<Adapter>().toExtend<ChatSdkAdapter>();
});

test("an adapter that would read by itself is refused, and so is one without a decision on its webhook", async () => {
  const { config, close } = await NETWORKS.telegram();
  const make = (more: object) => () => chatSdkMessenger({ verifyWebhook: false, ...more } as never);
  for (const mode of ["polling", "auto"])
    expect(make({ adapter: await makeAdapter("telegram", { ...config, mode }) })).toThrow(/would read by itself/);
  const adapter = await makeAdapter("telegram", config);
  expect(make({ adapter, verifyWebhook: undefined })).toThrow(/`verifyWebhook` must be/);
  expect(make({ adapter: {} })).toThrow(/`adapter` must be/);
  expect(make({ adapter, secretToken: "s" })).toThrow(/no option "secretToken"/);
  expect(make({ adapter, capabilities: { canFly: true } })).toThrow(/no option "canFly"/);
  expect(make({ adapter, shard: () => "a" })).toThrow(/`stateAgent`/);
  expect(make({ adapter })()).toMatchObject({ listens: false });
  await close();
});

test("Telegram: an edit changes what waits, and is never a turn; a gallery is one turn; a command for us is read", async () => {
  const kit = await openSdk("telegram", { coalesceMs: 2_500 });
  await kit.deliver([update({ message: message(50, { text: "helo" }) })]);
  const edited = { ...message(50, { text: "hello" }), edit_date: 2 };
  await kit.deliver([update({ edited_message: edited })]);
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["hello"]);
  // Also after whatever time.
  await kit.deliver([update({ edited_message: { ...edited, text: "hello!", edit_date: 9_999_999 } })]);
  const photo = (id: number, more: object = {}) =>
    update({
      message: message(id, { media_group_id: "g", photo: [{ file_id: `f${id}`, width: 1, height: 1 }], ...more }),
    });
  const gallery = [photo(60, { caption: "three trees" }), photo(61), photo(62)];
  expect(await kit.deliver([...gallery, ...gallery])).toEqual([200, 200, 200, 200, 200, 200]);
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  const [, said] = kit.model.calls;
  expect(said?.userText).toContain("three trees");
  expect(said?.userText.match(/\[file: /g)).toHaveLength(3);
  await kit.deliver([update({ message: message(70, command("/start")) })]);
  await kit.until(() => expect(kit.texts()).toHaveLength(3));
  expect(kit.model.calls.map(({ userText }) => userText).at(-1)).toBe("/start");
});

test("Telegram: the same message under another number is one turn", async () => {
  const kit = await openSdk("telegram");
  for (let i = 0; i < 3; i++)
    expect(await kit.deliver([update({ message: message(50, { text: "hi" }) })])).toEqual([200]);
  await kit.deliver([update({ message: message(51, { text: "and now?" }) })]);
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["hi", "and now?"]);
});

test("Telegram: /stop and another person's message do not wait for the turn that runs", async () => {
  const kit = await openSdk("telegram", {
    script: ({ userText }) => (userText === "slow" ? { text: ["Working", "."], delayMs: 1, hang: true } : "Here."),
  });
  await kit.deliver([update({ message: message(80, { text: "slow" }) })]);
  await kit.until(() => expect(kit.texts()).toEqual(["Working."]));
  const ben = { chat: { id: 8, type: "private" }, from: { id: 8, is_bot: false, first_name: "Ben" } };
  expect(await kit.deliver([update({ message: message(81, { text: "hi", ...ben }) })])).toEqual([200]);
  await kit.until(() => expect(kit.model.calls).toHaveLength(2));
  expect(await kit.deliver([update({ message: message(82, command("/stop")) })])).toEqual([200]);
  await kit.until(() => expect(kit.texts().at(0)).toBe("Working.\n\n(stopped)"));
});

test("Telegram: in a group who names the agent is answered; others are not", async () => {
  const kit = await openSdk("telegram");
  const group = { chat: { id: -100, type: "supergroup", title: "Trees" } };
  await kit.deliver([update({ message: message(90, { ...group, text: "nobody is meant" }) })]);
  const named = await nameOf(kit);
  const text = `@${named} what now?`;
  const entities = [{ type: "mention", offset: 0, length: named.length + 1 }];
  await kit.deliver([update({ message: message(91, { ...group, text, entities }) })]);
  await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done" }]));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual([`Ada: ${text}`]);
});

async function nameOf(kit: Awaited<ReturnType<typeof openSdk>>): Promise<string> {
  const { apiUrl, botToken } = kit.network.config as Record<string, string>;
  const told = (await (await fetch(`${apiUrl}/bot${botToken}/getMe`, { method: "POST" })).json()) as {
    readonly result: { readonly username: string };
  };
  return told.result.username;
}

test("Slack: a mention comes as two events, and is one turn in its thread", async () => {
  const kit = await openSdk("slack");
  const text = "<@UBOT> hello";
  const both = [
    slackEvent({ ...inChannel, type: "message", text }, "Ev1"),
    slackEvent({ ...inChannel, type: "app_mention", text }, "Ev2"),
  ];
  expect(await kit.deliver([...both, ...both])).toEqual([200, 200, 200, 200]);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["Ada: @helper hello"]);
});

test("Slack: what is delivered again with the number of its try is not taken for known before it is stored", async () => {
  let full = true;
  const kit = await openSdk("slack", {
    allow: () => {
      if (full) throw new Error("The disk is full.");
      return true;
    },
  });
  const event = { ...inChannel, channel: "D1", channel_type: "im", type: "message", text: "hi" };
  expect(await kit.deliver([slackEvent(event, "Ev9")])).toEqual([503]);
  full = false;
  expect(await kit.deliver([slackEvent(event, "Ev9", 1), slackEvent(event, "Ev9", 2)])).toEqual([200, 200]);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls).toHaveLength(1);
  kit.errors.length = 0;
});

test("Slack: what the adapter does on the side is waited for, where nothing has come out of it yet", async () => {
  const kit = await openSdk("slack", { config: { agentView: true } });
  const event = { ...inChannel, channel: "D1", channel_type: "im", type: "message", text: "hi" };
  expect(await kit.deliver([slackEvent(event, "Ev7"), slackEvent(event, "Ev7", 1)])).toEqual([200, 200]);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
});

test("Slack: a change before the turn is read, a stranger's press is told, and nobody calls everybody", async () => {
  const kit = await openSdk("slack", {
    coalesceMs: 2_500,
    approvers: () => false,
    tools: { pay: serverTool(() => "paid", { needsApproval: true }) },
    script: ({ step, userText }) =>
      step === 0 && userText === "pay" ? { toolCalls: [{ toolName: "pay", input: {} }] } : "Hey <!channel> and @here!",
  });
  const dm = { ...inChannel, channel: "D1", channel_type: "im", type: "message" };
  await kit.deliver([slackEvent({ ...dm, text: "helo" }, "Ev20")]);
  const changed = { type: "message", subtype: "message_changed", channel: "D1", channel_type: "im", ts: "1.1" };
  const now = { type: "message", user: "U7", text: "hello", ts: inChannel.ts, edited: { user: "U7", ts: "1.1" } };
  await kit.deliver([
    slackEvent({ ...changed, message: now, previous_message: { ...now, text: "helo", edited: undefined } }, "Ev21"),
  ]);
  await kit.until(() => expect(kit.texts()).toEqual(["Hey ‹!channel> and ＠here!"]));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["hello"]);
  await kit.deliver([slackEvent({ ...dm, text: "pay", ts: "1700000600.000100" }, "Ev22")]);
  await kit.until(() => expect(kit.network.seen().at(-1)?.buttons).toHaveLength(2));
  const press = kit.network.presses?.("Approve");
  if (press !== undefined) await kit.deliver([press]);
  await kit.until(() =>
    expect(kit.network.told()).toEqual(["You may not answer this. It still waits for somebody who may."]),
  );
});

test("Slack: a client that repeats calls makes every message one that may be there twice", async () => {
  const kit = await openSdk("slack", { config: { webClientOptions: {} } });
  await kit.deliver(kit.network.says("hi"));
  await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
  const told = await openSdk("slack", { config: { webClientOptions: {} }, retries: false });
  await told.deliver(told.network.says("hi"));
  await told.until(() => expect(told.holder().listDeliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
});

test("Slack: that the network is asked who we are may fail, and is asked again", async () => {
  const kit = await openSdk("slack", { config: { apiUrl: "http://127.0.0.1:9/api/" } });
  expect(await kit.deliver(kit.network.says("hi"))).toEqual([503]);
  expect(kit.errors.splice(0)).toEqual(["slack did not say who we are."]);
});

test("Discord: the adapter's own answers reach the network", async () => {
  const kit = await openSdk("discord");
  const { presses } = kit.network;
  expect(presses).toBeDefined();
  const forged = await kit.post(kit.network.forged());
  expect([forged.status, await forged.text()]).toEqual([401, "Invalid signature"]);
});

test("what adapters keep is in rows of the agent, or in a child for each shard", async () => {
  const keysOf = (port: { sql: (query: string) => unknown[] } | undefined) =>
    (port?.sql("SELECT key FROM perdure_messenger_state ORDER BY key") as { key: string }[] | undefined)?.map(
      ({ key }) => key,
    );
  const kit = await openSdk("slack");
  await kit.deliver(kit.network.says("hi"));
  const kept = keysOf(kit.ports[0]);
  expect(kept).toContain("slack:thread-participants:slack:D1:");
  expect(kept?.filter((key) => /event-delivered/.test(key))).toEqual([]);
  const sharded = await openSdk("slack", { stateAgent: MessengerStateAgent, shard: (key) => key.split(":")[1] ?? "" });
  await sharded.deliver(sharded.network.says("hi"));
  await sharded.until(() => expect(sharded.texts()).toEqual(["Hello there."]));
  expect(keysOf(sharded.ports[0])).toEqual([]);
  const children = sharded.lives[0]?.listSubAgents(MessengerStateAgent).map(({ name }) => name);
  expect(children).toEqual(expect.arrayContaining(["thread-participants", "user"]));
});

test("of a file what is stored is ids, or where its message is; no address that anybody could open", async () => {
  const asked: unknown[] = [];
  const bytes = new Uint8Array([1, 2, 3]);
  const fetchData = () => Promise.resolve(bytes);
  const shown = (fetchMetadata?: Record<string, string>) => ({
    name: "a.png",
    mimeType: "image/png",
    fetchMetadata,
    fetchData,
  });
  const says = (one: object, raw: object = {}) =>
    ({ id: "5", text: "", author: {}, metadata: { edited: false }, attachments: [one], raw }) as never;
  const source = (name: string, more: object = {}) => {
    const adapter = { name, ...more } as unknown as ChatSdkAdapter;
    return { adapter, network: networkOf(adapter) };
  };
  const idOf = (of: ReturnType<typeof source>, one: object, raw?: object) =>
    JSON.parse(fileRefs(of, "x:1:2", says(one, raw))[0]?.id ?? "null") as unknown;
  const rehydrateAttachment = (given: unknown) => (asked.push(given), shown());
  const fetchMessage = (...given: unknown[]) => (asked.push(given), Promise.resolve(says(shown())));

  const other = source("other", { rehydrateAttachment });
  expect(idOf(other, shown({ mediaId: "m1" }))).toEqual({ by: { mediaId: "m1" } });
  expect(idOf(other, shown({ url: "https://there.invalid/a.png" }))).toBeNull();
  expect(idOf(other, { name: "a.png", fetchMetadata: { mediaId: "m1" } })).toBeNull();
  const reads = source("other", { fetchMessage });
  expect(idOf(reads, shown())).toEqual({ thread: "x:1:2", message: "5", at: 0 });
  const slack = source("slack", { rehydrateAttachment });
  const url = "https://files.slack.com/files-pri/T1-F1/a.png";
  expect(idOf(slack, shown({ url, teamId: "T1" }))).toEqual({ by: { url } });
  for (const opens of [`${url}?t=xoxe-1`, `${url}#t`, "https://u:p@files.slack.com/a.png"])
    expect(idOf(slack, shown({ url: opens }))).toBeNull();
  // A thread that was made of a message does not hold it.
  expect(idOf(source("discord"), shown(), { channel_id: "9" })).toEqual({ thread: "x:1:9", message: "5", at: 0 });

  const { signal } = new AbortController();
  const read = async (of: ReturnType<typeof source>, one: object, name = "a.png") => {
    const [file] = fileRefs(of, "x:1:2", says(one));
    const stream = await fetchAttachment(of, { ...file, name, mediaType: "image/png" }, signal);
    return new Response(stream).bytes();
  };
  expect(await read(other, shown({ mediaId: "m1" }))).toEqual(bytes);
  expect(await read(reads, shown())).toEqual(bytes);
  expect(asked).toMatchObject([{ type: "image", fetchMetadata: { mediaId: "m1" } }, ["x:1:2", "5"]]);
  await expect(read(reads, shown(), "b.png")).rejects.toMatchObject({ kind: "gone" });
});

test("a file that was posted is known by its own name, else by what the adapter says, else by our key", () => {
  const posted = { id: "file-1700000000000", raw: { uploadedFileIds: ["F1"] } };
  expect(postedFileId(posted, "file9")).toBe("F1");
  expect(postedFileId({ ...posted, raw: { uploadedFileIds: [] } }, "file9")).toBe("file-1700000000000");
  expect([postedFileId({}, "file9"), postedFileId({ id: "" }, "file9")]).toEqual(["file9", "file9"]);
});

test("a file is not asked for when nobody waits for it any more, and what failed says no address", async () => {
  const network = await NETWORKS.slack();
  const asked: string[] = [];
  // What Slack shows to those who may not read a file. The adapter tells where that was.
  const fileTransport = (url: URL) => {
    asked.push(url.href);
    return Promise.resolve(
      Object.assign(Readable.from([]), { statusCode: 200, headers: { "content-type": "text/html" } }),
    );
  };
  const adapter = await makeAdapter("slack", { ...network.config, fileTransport });
  const { channel } = chatSdkMessenger({ adapter, verifyWebhook: false });
  const state = () => Promise.resolve(null);
  channel.open?.({ state, stateIn: () => state });
  const id = JSON.stringify({ by: { url: "https://files.slack.com/files-pri/T1-F1/a.png" } });
  const file = { name: "a.png", mediaType: "image/png", id };
  await expect(channel.fetchFile?.(file, AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
  expect(asked).toEqual([]);
  const failed: unknown = await channel
    .fetchFile?.(file, new AbortController().signal)
    .catch((thrown: unknown) => thrown);
  expect(failed).toMatchObject({ kind: "unknown", message: expect.stringMatching(/files:read.*URL: …$/) as string });
  expect(asked).toHaveLength(1);
  await network.close();
});
