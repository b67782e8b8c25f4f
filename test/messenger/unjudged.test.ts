// Rules of the app that fail: what they were asked about comes again, for a while, and holds up nothing else.
import { defineMessengers, messenger } from "perdure/messengers";
import { memoryChannel } from "perdure/testing";
import { expect, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, ADA_THERE, BEN, DM, type HostKit, type Kit, type KitOptions, openKit, openTelegram } from "./kit.ts";

const MINUTE = 60_000;
const NOT_JUDGED = "Sorry, I could not take that. Please try again later.";
const inGroup = { dm: false } as const;
const pays = {
  tools: { pay: serverTool(() => "paid", { needsApproval: true }) },
  script: ({ userText }: { readonly userText: string }) =>
    userText.includes("pay") ? { toolCalls: [{ toolName: "pay", input: {} }] } : `You said: ${userText}`,
};
const refusals = ({ events }: HostKit) =>
  events.flatMap(({ type, payload }) => (type === "messenger:refused" ? [(payload as { reason: string }).reason] : []));

/** Minutes pass, until it is so. */
async function inTheEnd(kit: HostKit, check: () => void): Promise<void> {
  for (let minutes = 0; minutes < 15; minutes++) {
    await kit.clock.advance(MINUTE);
    // What could not be stored comes again by the time of the network, which is ours.
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  await kit.until(check);
}

test("a press and a change that a rule fails about come again, and not for ever: who pressed is told", async () => {
  const kit = await openKit({
    ...{ ...pays, manual: true },
    approvers: () => {
      throw new Error("no directory");
    },
    allow: ({ kind }) => {
      if (kind === "edit") throw new Error("no directory either");
      return true;
    },
  });
  const said = kit.network.says(DM, ADA, "pay");
  const question = () => kit.network.seen(DM, "agent").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  kit.network.presses(DM, ADA, question()?.id ?? "", "Approve");
  kit.network.repeats({ ...said, kind: "edit", keys: ["update:edit"], text: "pay more" });
  await kit.until(() => expect(new Set(kit.errors)).toEqual(new Set(["no directory", "no directory either"])));
  expect(kit.network.told).toEqual([]);
  await inTheEnd(kit, () => expect(refusals(kit)).toEqual(["not judged", "not judged"]));
  await kit.until(() => expect(kit.network.told.map(({ text }) => text)).toEqual([NOT_JUDGED]));
  await kit.until(() => expect(kit.texts()).toContain(NOT_JUDGED));
  expect(question()).toBeDefined();
  kit.errors.length = 0;
}, 60_000);

test("a press at Telegram that a rule fails about does not come for ever: Telegram is told that we have it", async () => {
  const kit = await openTelegram({
    ...{ ...pays, manual: true },
    approvers: () => {
      throw new Error("no directory");
    },
  });
  kit.telegram.says(7, ADA_THERE, "pay");
  const question = () => kit.telegram.seen(7, "bot").find(({ buttons }) => buttons.length > 0);
  await kit.until(() => expect(question()).toBeDefined());
  const { update_id: pressed } = kit.telegram.presses(7, ADA_THERE, question()?.id ?? 0, "Approve");
  await inTheEnd(kit, () => expect(kit.telegram.told.map(({ text }) => text)).toEqual([NOT_JUDGED]));
  const asks = () => kit.telegram.calls.findLast(({ method }) => method === "getUpdates")?.params;
  await kit.until(() => expect(asks()).toMatchObject({ offset: pressed + 1 }));
  kit.errors.length = 0;
}, 60_000);

test("a rule that says neither yes nor no has failed: what it was asked about is refused in the end", async () => {
  const kit = await openKit({ manual: true, allow: (() => undefined) as unknown as () => boolean });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.errors.join()).toContain('allow() of "memory" returned undefined'));
  expect(refusals(kit)).toEqual([]);
  await inTheEnd(kit, () => expect(kit.texts()).toEqual([NOT_JUDGED]));
  expect(refusals(kit)).toEqual(["not judged"]);
  expect(kit.model.calls).toEqual([]);
  kit.errors.length = 0;
}, 60_000);

test("`authorize()` that throws refuses nobody: what it was asked about comes again", async () => {
  let broken = true;
  const kit = await openKit({
    make: (Base) =>
      class extends Base {
        override authorize(): boolean {
          if (broken) throw new Error("no rules");
          return true;
        }
      },
  });
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.errors).toContain("no rules"));
  broken = false;
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(refusals(kit)).toEqual([]);
  kit.errors.length = 0;
});

test("by webhook: a rule that cannot read something of its own is no delivery that cannot be read", async () => {
  let text = "{";
  const kit = await openTelegram({
    secretToken: "s3cret",
    allow: () => (JSON.parse(text) as { readonly all: boolean }).all,
  });
  const url = `${kit.host.url}/agents/talk/main/messengers/telegram/webhook`;
  const headers = { "x-telegram-bot-api-secret-token": "s3cret" };
  const message = { message_id: 5, date: 1, chat: { id: 7, type: "private" }, from: ADA_THERE, text: "hi" };
  const post = () => fetch(url, { method: "POST", body: JSON.stringify({ update_id: 1, message }), headers });
  expect((await post()).status).toBe(503);
  text = '{"all":true}';
  expect((await post()).status).toBe(200);
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  kit.errors.length = 0;
});

test("what was taken is not refused when it comes again, when its author may say no more this hour", async () => {
  const kit = await openKit({ limits: { perHour: 1 } });
  const said = kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  for (let i = 0; i < 9; i++) kit.network.repeats(said);
  kit.network.says(DM, ADA, "and more");
  const tooMuch = "That is more than I may answer now. Please try again later.";
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there.", tooMuch]));
  expect(refusals(kit)).toEqual(["rate"]);
  expect(kit.model.calls).toHaveLength(1);
});

test("a gallery is one thing that somebody says, also when it is the last that they may say this hour", async () => {
  const kit = await openKit({ limits: { perHour: 1 } });
  const picture = (n: number) => ({ name: `p${n}.png`, mediaType: "image/png", bytes: new Uint8Array(9).fill(n) });
  for (const n of [1, 2, 3]) kit.network.sends(DM, ADA, [picture(n)], n === 1 ? "look" : "", { group: "g" });
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  expect(kit.model.calls[0]?.userText.match(/\[file: /g)).toHaveLength(3);
  expect(refusals(kit)).toEqual([]);
});

test("whom `authorize()` refuses leaves nothing behind, and subscribes no place", async () => {
  const options: KitOptions = {
    ...{ conversation: "session", respondTo: ["mention", "subscribed-thread"] },
    make: (Base) =>
      class extends Base {
        override authorize(identity: { id: string } | undefined) {
          return identity?.id !== "memory:8";
        }
      },
  };
  const kit = await openKit(options);
  const threads = ["memory:-1", "memory:-2", "memory:-3"];
  for (const thread of threads) kit.network.says(thread, BEN, "@memory_bot hey", inGroup);
  await kit.until(() => expect(refusals(kit)).toHaveLength(3));
  expect(kit.ports[0]?.sql("SELECT key FROM perdure_cell WHERE key LIKE 'messenger:thread:%'")).toEqual([]);
  // Where somebody may talk is a place; who may not makes it none that all is answered at.
  const bare = await openKit({
    ...options,
    subscribeOnMention: true,
    respondTo: ["direct-message", "subscribed-thread", "mention"],
  });
  bare.network.says("memory:-1", ADA, "@memory_bot hi", { ...inGroup, mentioned: false });
  bare.network.says("memory:-1", BEN, "@memory_bot hey", inGroup);
  await bare.until(() => expect(refusals(bare)).toHaveLength(1));
  bare.network.says("memory:-1", ADA, "between us", inGroup);
  bare.network.says(DM, ADA, "hello");
  await bare.until(() => expect(bare.texts()).toEqual(["Hello there."]));
  expect(bare.model.calls).toHaveLength(1);
});

// What has waited, and is judged again

/** In two groups of one agent, Ada is asked something, and somebody else says something meanwhile. */
async function openTwoGroups(options: KitOptions) {
  const kit = await openKit({ ...pays, manual: true, conversation: "session", ...options });
  const [first, second] = ["memory:-1", "memory:-2"] as const;
  for (const thread of [first, second]) {
    kit.network.says(thread, ADA, "@memory_bot pay", inGroup);
    const asks = () => kit.network.seen(thread, "agent").some(({ buttons }) => buttons.length > 0);
    await kit.until(() => expect(asks()).toBe(true));
  }
  const held = () => kit.lives.at(-1)?.listDeliveries({ state: "held" }).length;
  await kit.until(() => expect(held()).toBe(2));
  kit.network.says(first, BEN, "@memory_bot I am Ben", inGroup);
  kit.network.says(second, { id: "9", name: "Cy" }, "@memory_bot I am Cy", inGroup);
  await kit.until(() => expect(held()).toBe(4));
  return { kit, first, second, held };
}
const neverMind = (kit: Kit, thread: string) => kit.network.says(thread, ADA, "@memory_bot never mind", inGroup);

test("what cannot be judged in one group holds up no other, and is refused in the end", async () => {
  let broken = false;
  const { kit, first, second, held } = await openTwoGroups({
    allow: ({ author }) => {
      if (broken && author.id === BEN.id) throw new Error("no directory");
      return true;
    },
  });
  broken = true;
  for (const thread of [first, second]) neverMind(kit, thread);
  await kit.until(() => expect(kit.texts(second).at(-1)).toContain("I am Cy"));
  expect(kit.texts(first).at(-1)).toContain("never mind");
  await kit.until(() => expect(held()).toBe(1));
  // Who says something behind it waits too, and not for ever.
  kit.network.says(first, { id: "10", name: "Di" }, "@memory_bot I am Di", inGroup);
  await kit.until(() => expect(held()).toBe(2));
  await inTheEnd(kit, () => expect(kit.texts(first).at(-1)).toContain("I am Di"));
  expect(refusals(kit)).toEqual(["not judged"]);
  expect(kit.texts(first)).toContain(NOT_JUDGED);
  expect(held()).toBe(0);
  kit.errors.length = 0;
}, 60_000);

test("what waited at a messenger that there is not any more is refused, which is told", async () => {
  const other = memoryChannel();
  let isGone = false;
  const { kit, held } = await openTwoGroups({
    script: () => (isGone ? "Fine." : { toolCalls: [{ toolName: "pay", input: {} }] }),
    make: (Base) =>
      class extends Base {
        override getMessengers() {
          if (!isGone) return super.getMessengers();
          return defineMessengers({ other: messenger(other.channel(), { allow: ["7"] }) });
        }
      },
  });
  const [call] = kit.lives[0]?.pendingApprovals() ?? [];
  isGone = true;
  await kit.restart();
  expect(kit.lives.at(-1)?.answerApproval(call?.toolCallId ?? "", false, { approver: "Chris" })).toBe(true);
  await kit.until(() => expect(refusals(kit)).toEqual(['There is no messenger "memory" any more.']));
  await kit.until(() => expect(held()).toBe(2));
  expect(kit.model.calls.map(({ userText }) => userText).join()).not.toContain("I am");
});
