import type { MessengerDefinition } from "perdure/messengers";
import { serverTool } from "../think/harness.ts";
import { expect, test, vi } from "vitest";
import { ADA, BEN, DM, openKit } from "./kit.ts";

const GROUP = "memory:-100";
const inGroup = { dm: false, title: "Group" } as const;
const long = (words: number) =>
  Array.from({ length: words }, (_, i) => (i % 40 === 39 ? `word${i}.\n\n` : `word${i}`)).join(" ");

test("what somebody says at a messenger is answered there", async () => {
  const kit = await openKit();
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", parts: 1, maybeTwice: false }]));
});

test("what is delivered ten times is one turn and one answer", async () => {
  const kit = await openKit();
  const event = kit.network.says(DM, ADA, "hi");
  for (let i = 0; i < 9; i++) kit.network.repeats(event);
  // The same message under another name of the network.
  kit.network.repeats({ ...event, keys: ["update:other"] });
  kit.network.says(DM, ADA, "and this");
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
  expect(kit.model.calls).toHaveLength(2);
});

test("an answer grows in one message, and a long one is several, whole and in order", async () => {
  const answer = long(900);
  const kit = await openKit({
    script: () => ({ text: answer.match(/.{1,50}/gs) ?? [], delayMs: 5 }),
    network: { textLimit: 1000 },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done" }]));
  const words = (text: string) => text.split(/\s+/).filter(Boolean);
  expect(kit.texts().length).toBeGreaterThan(5);
  expect(words(kit.texts().join(" "))).toEqual(words(answer));
  // Each message grew; only what it ends with may have gone on in the next one instead.
  for (const { versions } of kit.network.seen(DM, "agent"))
    for (const [i, text] of versions.entries()) {
      const before = versions[i - 1] ?? "";
      expect(text.startsWith(before) || before.startsWith(text)).toBe(true);
    }
});

test("a network that says when to come again is not asked before", async () => {
  const kit = await openKit({ manual: true });
  kit.network.plan("create", { kind: "rate", retryAfterMs: 40_000 });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ attempts: 1 }]));
  await kit.clock.advance(20_000);
  await kit.restart();
  await kit.clock.advance(15_000);
  const creates = () => kit.network.calls.filter(({ op }) => op === "create").length;
  expect(creates()).toBe(1);
  await kit.clock.advance(10_000);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(creates()).toBe(2);
});

test("a create whose answer is lost is made again, and the row says so; a network that can be asked has it once", async () => {
  const kit = await openKit({ delivery: { repeatedText: "(again)" } });
  kit.network.plan("create", { kind: "lost-answer" });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there.", "(again)\n\nHello there."]));
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
  expect(kit.events.filter(({ type }) => type === "delivery:repeated")).toHaveLength(1);
  const other = await openKit({ network: { finds: true } });
  other.network.plan("create", { kind: "lost-answer" });
  other.network.says(DM, ADA, "hi");
  await other.until(() => expect(other.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
  expect(other.texts()).toEqual(["Hello there."]);
});

test("what fails before it leaves is not unknown: it is sent once", async () => {
  const kit = await openKit({ manual: true });
  kit.network.plan("create", { kind: "unsent" });
  kit.network.plan("create", { kind: "unsent" });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false, attempts: 0 }]));
  expect(kit.texts()).toEqual(["Hello there."]);
});

test("a message that somebody deleted while it grew is said anew, whole", async () => {
  const done = Promise.withResolvers<string>();
  const wait = serverTool(() => done.promise);
  let call = 0;
  const script = () => (call++ === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it.");
  const kit = await openKit({ tools: { wait }, script });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Half"]));
  kit.network.deletes(kit.network.seen(DM, "agent")[0]?.id ?? "");
  done.resolve("done");
  await kit.until(() => expect(kit.texts()).toEqual(["Half\n\nof it."]));
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
});

test("a refused delivery fails, is listed, can be tried again and forgotten; the turn is as it was", async () => {
  const kit = await openKit();
  kit.network.plan("create", { kind: "refused" });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() =>
    expect(kit.deliveries()).toMatchObject([{ state: "failed", error: "The network says: refused." }]),
  );
  expect(kit.events.some(({ type }) => type === "delivery:failed")).toBe(true);
  const holder = kit.holder();
  await vi.waitFor(() => expect(holder.messages.map(({ role }) => role)).toEqual(["user", "assistant"]));
  const [{ id } = { id: "" }] = holder.listDeliveries({ state: "failed" });
  expect(holder.retryDelivery(id)).toBe(true);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done" }]));
  expect(holder.retryDelivery(id)).toBe(false);
  expect(holder.forgetDelivery(id)).toBe(true);
  expect(holder.forgetDelivery(id)).toBe(false);
  expect(kit.deliveries()).toEqual([]);
});

test("a text that the network cannot read goes as it is", async () => {
  const kit = await openKit();
  kit.network.plan("create", { kind: "format" });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
});

test("an answer that fails says so in the words of the app alone", async () => {
  const kit = await openKit({
    script: () => {
      throw new Error("secret detail");
    },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Something went wrong. Please try again."]));
  kit.errors.length = 0;
});

test("in a group the agent answers who names it, as a reply, and knows who speaks", async () => {
  const kit = await openKit();
  kit.network.says(GROUP, BEN, "just talking", inGroup);
  kit.network.says(GROUP, BEN, "@memory_bot hi", inGroup);
  await kit.until(() => expect(kit.texts(GROUP)).toEqual(["Hello there."]));
  expect(JSON.stringify(kit.model.calls[0]?.prompt)).toContain("Ben: @memory_bot hi");
  expect(kit.model.calls).toHaveLength(1);
  expect(kit.holder(GROUP).messages[0]?.metadata).toMatchObject({ subject: "memory:8", messenger: { id: "memory" } });
});

test("who is not named may not talk: stored, told once, no turn and no child", async () => {
  const kit = await openKit({ allow: ["7"] });
  kit.network.says("memory:8", BEN, "hi");
  kit.network.says("memory:8", BEN, "hello?");
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await kit.until(() => expect(kit.texts("memory:8")).toEqual(["Sorry, I may not talk with you."]));
  expect(kit.model.calls).toHaveLength(1);
  expect(() => kit.holder("memory:8")).toThrow("Nobody holds");
  expect(kit.events.filter(({ type }) => type === "messenger:refused")).toHaveLength(2);
});

test("an author may say so much in an hour", async () => {
  const kit = await openKit({ limits: { perHour: 2 } });
  for (const text of ["one", "two", "three", "four"]) kit.network.says(DM, ADA, text);
  await kit.until(() => expect(kit.texts().filter((text) => text === "Hello there.")).toHaveLength(2));
  await kit.until(() => expect(kit.texts().filter((text) => text.startsWith("That is more"))).toHaveLength(1));
});

test("other bots are not answered, unless the app wants that", async () => {
  const kit = await openKit();
  kit.network.says(DM, { ...BEN, isBot: true }, "beep");
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls).toHaveLength(1);
});

test("messages that come close together are one turn, and none is lost", async () => {
  const kit = await openKit({ manual: true, coalesceMs: 600 });
  for (const text of ["one", "two", "three"]) kit.network.says(DM, ADA, text);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls).toHaveLength(1);
  const prompt = JSON.stringify(kit.model.calls[0]?.prompt);
  for (const text of ["one", "two", "three"]) expect(prompt).toContain(text);
});

test("a message that is changed before its turn begins is read as it is then", async () => {
  const kit = await openKit({ manual: true, coalesceMs: 5_000 });
  const said = kit.network.says(DM, ADA, "helo");
  await kit.until(() => expect(kit.deliveries()).toHaveLength(1));
  kit.network.repeats({ ...said, kind: "edit", keys: ["update:edit"], text: "hello" });
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(JSON.stringify(kit.model.calls[0]?.prompt)).toContain('"hello"');
});

test("/stop ends the turn while it runs, and the message says so", async () => {
  const never = new Promise<never>(() => {});
  const kit = await openKit({
    tools: { wait: serverTool(() => never) },
    script: () => ({ text: "Working on it.", toolCalls: [{ toolName: "wait", input: {} }] }),
  });
  kit.network.says(DM, ADA, "go");
  await kit.until(() => expect(kit.texts()).toEqual(["Working on it."]));
  kit.network.says("memory:8", BEN, "hi there");
  kit.network.says(DM, ADA, "/stop");
  await kit.until(() => expect(kit.texts()).toEqual(["Working on it.\n\n(stopped)"]));
  await kit.until(() => expect(kit.texts("memory:8")).toEqual(["Working on it."]));
  expect(kit.model.calls).toHaveLength(2);
});

test("a notice is said once per key, also where a turn runs, and in order", async () => {
  const kit = await openKit();
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  const [root] = kit.lives;
  const say = () => root?.deliverNotice("The build is done.", { channel: "memory", thread: DM, key: "build-1" });
  expect(await say()).toBe(true);
  expect(await say()).toBe(false);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there.", "The build is done."]));
  await expect(root?.deliverNotice("x", { channel: "nowhere", thread: DM })).rejects.toThrow(
    'There is no messenger "nowhere"',
  );
});

test("what the agent says by itself in the conversation of a place goes there too", async () => {
  const kit = await openKit();
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  await kit.holder().saveMessages([{ id: "x", role: "user", parts: [{ type: "text", text: "Remind Ada." }] }]);
  await kit.until(() => expect(kit.texts()).toHaveLength(2));
});

test("a turn of a messenger knows who asked, in its tools too", async () => {
  const seen: unknown[] = [];
  const kit = await openKit({
    make: (Base) =>
      class extends Base {
        override beforeTurn() {
          seen.push(this.getMessengerContext());
        }
      },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  expect(seen).toMatchObject([
    { messenger: "memory", provider: "memory", thread: DM, dm: true, subject: "memory:7", author: ADA },
  ]);
  expect(kit.lives[0]?.getMessengerContext()).toBeUndefined();
});

test("a session for each thread instead of a child", async () => {
  const kit = await openKit({ conversation: "session" });
  kit.network.says(DM, ADA, "hi");
  kit.network.says("memory:8", BEN, "hello");
  await kit.until(() => expect([...kit.texts(), ...kit.texts("memory:8")]).toEqual(["Hello there.", "Hello there."]));
  expect(kit.lives).toHaveLength(1);
});

test("a button that is none of ours is a message where the messenger responds to actions, and nothing where it does not", async () => {
  const press = { kind: "press", text: "", press: { id: "p1", data: "refund:7" } } as const;
  const kit = await openKit({ respondTo: ["direct-message", "action"] });
  const event = kit.network.says(DM, ADA, "", press);
  kit.network.repeats(event);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["[button: refund:7]"]);
  const deaf = await openKit();
  deaf.network.says(DM, ADA, "", press);
  await deaf.until(() => expect(deaf.network.told).toHaveLength(1));
  expect(deaf.model.calls).toEqual([]);
});

test("what repeats calls by itself makes every message one that may be there twice", async () => {
  const kit = await openKit({
    make: (Base) =>
      class extends Base {
        override async getMessengers() {
          const { memory } = (await super.getMessengers()) as { memory: MessengerDefinition };
          return { memory: { ...memory, maybeTwice: "always" as const } };
        }
      },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
  expect(kit.texts()).toEqual(["Hello there."]);
});
