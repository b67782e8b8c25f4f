// What is bounded: what one person may have waiting, how fast the whole bot is, and how many deliveries are kept.
import { type Channel, ChannelError, type MessengerDefinition } from "perdure/messengers";
import { expect, test } from "vitest";
import { ADA, BEN, DM, openKit } from "./kit.ts";

test("an author may have so much waiting; others may say something, and so may they when it was answered", async () => {
  const kit = await openKit({
    limits: { waiting: 2 },
    script: ({ userText }) => (userText === "go" ? { text: "Working.", hang: true } : `You said: ${userText}`),
  });
  kit.network.says(DM, ADA, "go");
  await kit.until(() => expect(kit.texts()).toEqual(["Working."]));
  for (const text of ["two", "three", "four"]) kit.network.says(DM, ADA, text);
  kit.network.says("memory:8", BEN, "hi");
  await kit.until(() => expect(kit.texts("memory:8")).toEqual(["You said: hi"]));
  const refused = () => kit.events.filter(({ type }) => type === "messenger:refused").map(({ payload }) => payload);
  const tooMuch = { by: "memory:7", reason: "Too much waits already." };
  await kit.until(() => expect(refused()).toMatchObject([tooMuch, tooMuch]));
  kit.network.says(DM, ADA, "/stop");
  await kit.until(() => expect(kit.deliveries().every(({ state }) => state === "done")).toBe(true));
  kit.network.says(DM, ADA, "five");
  await kit.until(() => expect(kit.texts()).toContain("You said: five"));
  expect(kit.texts().filter((text) => text === "Too much waits already.")).toHaveLength(1);
  expect(kit.model.calls.map(({ userText }) => userText)).not.toContain("three");
});

test("one place that is told to wait holds up no other; when a third is, the whole bot waits, and then all is said", async () => {
  const kit = await openKit({ manual: true });
  const people = ["7", "8", "9", "10"].map((id) => ({ id, name: `N${id}` }));
  const called = () => kit.network.calls.filter(({ op }) => op === "create").map(({ thread }) => thread);
  for (const [i, who] of people.entries()) {
    const isTold = i < 3;
    if (isTold) kit.network.plan("create", { kind: "rate", retryAfterMs: 40_000 });
    kit.network.says(`memory:${who.id}`, who, "hi");
    const holder = () => kit.holder(`memory:${who.id}`).listDeliveries();
    await kit.until(() => expect(holder()).toMatchObject([{ state: "open", attempts: 1 }]));
    // Who is told by the network is called once; who is told by us is not called.
    expect(called()).toHaveLength(Math.min(i + 1, 3));
  }
  await kit.clock.advance(45_000);
  for (const { id } of people) await kit.until(() => expect(kit.texts(`memory:${id}`)).toEqual(["Hello there."]));
  expect(called()).toHaveLength(7);
});

test("of deliveries that are done the last 200 are kept, of those that failed 1,000", async () => {
  let refuses = false;
  const kit = await openKit({
    make: (Base) =>
      class extends Base {
        override async getMessengers() {
          const { memory } = (await super.getMessengers()) as { memory: MessengerDefinition };
          const { create } = memory.channel;
          const made: Channel["create"] = (...args) =>
            refuses ? Promise.reject(new ChannelError("refused", "It is archived.")) : create(...args);
          return { memory: { ...memory, channel: { ...memory.channel, create: made } } };
        }
      },
  });
  const [root] = kit.lives;
  const count = (state: "open" | "done" | "failed") => root?.listDeliveries({ state, limit: 10_000 }).length;
  const say = async (n: number) => {
    for (let i = 0; i < n; i++) await root?.deliverNotice(`n${i}`, { channel: "memory", thread: `memory:${i % 50}` });
    await kit.until(() => expect(count("open")).toBe(0));
  };
  await say(250);
  expect(count("done")).toBe(200);
  refuses = true;
  await say(1_040);
  expect([count("done"), count("failed")]).toEqual([200, 1_000]);
  // The newest are kept.
  expect(root?.listDeliveries({ state: "failed", limit: 1 })).toMatchObject([
    { error: "It is archived.", thread: "memory:39" },
  ]);
});
