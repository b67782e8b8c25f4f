// Each option of a messenger that no other test is about.
import { expect, test, vi } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, BEN, DM, openKit, openTelegram } from "./kit.ts";

const GROUP = "memory:-100";
const inGroup = { dm: false, title: "Group" } as const;

test("`subscribeOnMention: false`: who names the agent is answered, and what is said after it is not", async () => {
  for (const subscribeOnMention of [undefined, false]) {
    const respondTo = ["direct-message", "mention", "subscribed-thread"] as const;
    const kit = await openKit({ respondTo, ...(subscribeOnMention === false && { subscribeOnMention }) });
    kit.network.says(GROUP, BEN, "before", inGroup);
    kit.network.says(GROUP, BEN, "@memory_bot one", inGroup);
    await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(1));
    kit.network.says(GROUP, BEN, "two", inGroup);
    kit.network.says(GROUP, BEN, "@memory_bot three", inGroup);
    const heard = subscribeOnMention === false ? ["one", "three"] : ["one", "two", "three"];
    await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(heard.length));
    const said = kit.model.calls.map(({ userText }) => userText.split(" ").at(-1));
    expect(said).toEqual(heard);
  }
});

test("`channelSpeakerLabel` stands before what is said in a group, and not where two talk", async () => {
  const kit = await openKit({ channelSpeakerLabel: ({ id, name }) => `<${name} ${id}> ` });
  kit.network.says(GROUP, BEN, "@memory_bot hi", inGroup);
  await kit.until(() => expect(kit.texts(GROUP)).toHaveLength(1));
  kit.network.says(DM, ADA, "hello");
  await kit.until(() => expect(kit.texts()).toHaveLength(1));
  expect(kit.model.calls.map(({ userText }) => userText)).toEqual(["<Ben 8> @memory_bot hi", "hello"]);
  const bare = await openKit({ channelSpeakerLabel: () => "" });
  bare.network.says(GROUP, BEN, "@memory_bot hi", inGroup);
  await bare.until(() => expect(bare.texts(GROUP)).toHaveLength(1));
  expect(bare.model.calls[0]?.userText).toBe("@memory_bot hi");
});

test("`errorResponseText` stands behind what was said; an empty one says nothing more", async () => {
  for (const [errorResponseText, shown] of [
    ["It broke.", "Half\n\nIt broke."],
    ["", "Half"],
  ] as const) {
    const kit = await openKit({
      delivery: { errorResponseText },
      tools: { wait: serverTool(() => "done") },
      script: ({ step }) => {
        if (step > 0) throw new Error("secret detail");
        return { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] };
      },
    });
    kit.network.says(DM, ADA, "hi");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    expect(kit.texts()).toEqual([shown]);
    kit.errors.length = 0;
  }
});

test("`interruptedResponseText` stands behind an answer that is not carried on any more, and nothing is said before; it is one message", async () => {
  for (const [delivery, words] of [
    [{ interruptedResponseText: "It was cut off." }, "It was cut off."],
    [{}, "The answer was interrupted and could not be finished. Please try again."],
  ] as const) {
    const kit = await openKit({
      delivery,
      script: ({ index }) => ({ text: index === 0 ? "Half." : "And more.", hang: true }),
      make: (Base) =>
        class extends Base {
          override chatRecovery = { maxAttempts: 1 };
        },
    });
    kit.network.says(DM, ADA, "hi");
    await kit.until(() => expect(kit.texts()).toEqual(["Half."]));
    await kit.restart();
    await kit.until(() => expect(kit.texts()).toEqual(["Half.\n\nAnd more."]));
    await kit.restart();
    await kit.until(() => expect(kit.texts()).toEqual([`Half.\n\nAnd more.\n\n${words}`]));
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", parts: 1, maybeTwice: false }]));
    expect(kit.model.calls).toHaveLength(2);
    const [message] = kit.network.seen(DM, "agent");
    expect(message?.versions.filter((text) => text.includes(words))).toHaveLength(1);
    kit.errors.length = 0;
  }
});

test("`stoppedText` stands behind what was said; an empty one says nothing more", async () => {
  for (const [stoppedText, shown] of [
    ["Ended.", "Working.\n\nEnded."],
    ["", "Working."],
  ] as const) {
    const kit = await openKit({ delivery: { stoppedText }, script: () => ({ text: "Working.", hang: true }) });
    kit.network.says(DM, ADA, "go");
    await kit.until(() => expect(kit.texts()).toEqual(["Working."]));
    kit.network.says(DM, ADA, "/stop");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done" }]));
    expect(kit.texts()).toEqual([shown]);
  }
});

test("`emptyResponseText` stands in the place of an answer without words; an empty one says nothing", async () => {
  for (const [delivery, shown] of [
    [{}, ["(no answer)"]],
    [{ emptyResponseText: "Nothing to say." }, ["Nothing to say."]],
    [{ emptyResponseText: "" }, []],
  ] as const) {
    const kit = await openKit({ delivery, script: () => "" });
    kit.network.says(DM, ADA, "hi");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    expect(kit.texts()).toEqual(shown);
  }
});

test("`showTools`: people see which tool works while it works, and not at the end; without it they do not", async () => {
  for (const showTools of [true, false]) {
    const gate = Promise.withResolvers<string>();
    const kit = await openKit({
      delivery: { showTools },
      tools: { search_trees: serverTool(() => gate.promise) },
      script: ({ step }) =>
        step === 0 ? { text: "Let me see.", toolCalls: [{ toolName: "search_trees", input: {} }] } : "Found.",
    });
    kit.network.says(DM, ADA, "hi");
    const during = showTools ? "Let me see.\n\n_search_trees …_" : "Let me see.";
    await kit.until(() => expect(kit.texts()).toEqual([during]));
    gate.resolve("oak");
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", parts: 1 }]));
    expect(kit.texts()).toEqual(["Let me see.\n\nFound."]);
    const shown = kit.network.seen(DM, "agent").flatMap(({ versions }) => versions);
    expect(shown.some((text) => text.includes("search_trees"))).toBe(showTools);
  }
});

test("`giveUpAfterMs`: what fails again and again is given up after it, and not before", async () => {
  const MINUTE = 60_000;
  const kit = await openTelegram({ manual: true, delivery: { giveUpAfterMs: 10 * MINUTE } });
  kit.telegram.plan("sendMessage", { kind: "answer", status: 500, description: "Internal" }, { times: 1_000 });
  const began = kit.clock.now();
  kit.telegram.says(7, { id: 7, first_name: "Ada" }, "hi");
  await kit.until(() => expect(kit.deliveries()[0]?.attempts).toBeGreaterThan(0));
  const state = () => kit.deliveries()[0]?.state;
  while (state() === "open") {
    const { nextAt = 0 } = kit.deliveries()[0] ?? {};
    const { attempts = 0 } = kit.deliveries()[0] ?? {};
    await kit.clock.set(Math.max(nextAt, kit.clock.now() + 1));
    await kit.until(() => expect(kit.deliveries()[0]?.attempts !== attempts || state() !== "open").toBe(true));
  }
  expect(kit.deliveries()).toMatchObject([{ state: "failed" }]);
  const waited = kit.clock.now() - began;
  expect(waited).toBeGreaterThan(10 * MINUTE);
  // The last wait is at most five minutes, and a bit.
  expect(waited).toBeLessThan(17 * MINUTE);
  expect(kit.events.filter(({ type }) => type === "delivery:failed")).toHaveLength(1);
});

test("`path`: the webhook is there, and not where it would be without", async () => {
  const kit = await openTelegram({ secretToken: "s3cret", path: "/hooks/bot" });
  const at = (path: string) => `${kit.host.url}/agents/talk/main${path}`;
  const headers = { "x-telegram-bot-api-secret-token": "s3cret" };
  const elsewhere = await fetch(at("/messengers/telegram/webhook"), { method: "POST", body: "{}", headers });
  expect(elsewhere.status).toBe(404);
  kit.telegram.webhook = { url: at("/hooks/bot"), secret: "s3cret" };
  kit.telegram.says(7, { id: 7, first_name: "Ada" }, "hi");
  await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
  await vi.waitFor(() => expect(kit.telegram.deliveries.map(({ status }) => status)).toEqual([200]));
});
