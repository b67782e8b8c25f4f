// What the app knows better of a network than we do.
import { expect, test } from "vitest";
import { serverTool } from "../../think/harness.ts";
import { openSdk } from "./kit.ts";

const words = Array.from({ length: 60 }, (_, i) => `word${i} `);
const whole = words.join("").trim();

test("`canEditMessages: false`: an answer comes when it is whole, and no message is ever changed", async () => {
  for (const canEditMessages of [undefined, false]) {
    const gate = Promise.withResolvers<string>();
    const kit = await openSdk("discord", {
      ...(canEditMessages === false && { capabilities: { canEditMessages } }),
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step }) => (step === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it."),
    });
    await kit.deliver(kit.network.says("hi"));
    await kit.until(() => expect(kit.model.calls).toHaveLength(1));
    const before = canEditMessages === undefined ? ["Half"] : [];
    await kit.until(() => expect(kit.texts()).toEqual(before));
    gate.resolve("now");
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done" }]));
    expect(kit.texts()).toEqual(["Half\n\nof it."]);
    const shown = kit.network.seen().flatMap(({ versions }) => versions);
    expect(shown.includes("Half")).toBe(canEditMessages === undefined);
  }
});

test("`maxMessageLength`: what is longer is several messages, whole and in order", async () => {
  const kit = await openSdk("discord", { capabilities: { maxMessageLength: 300 }, script: () => ({ text: words }) });
  await kit.deliver(kit.network.says("hi"));
  await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done" }]));
  expect(whole.length).toBeGreaterThan(300);
  expect(kit.texts().length).toBeGreaterThan(1);
  for (const text of kit.texts()) expect(text.length).toBeLessThanOrEqual(300);
  expect(kit.texts().join(" ").split(/\s+/)).toEqual(whole.split(" "));
});

test("`supportsActions: false`: questions are answered in words; true: with buttons", async () => {
  for (const supportsActions of [true, false]) {
    const ran: string[] = [];
    const kit = await openSdk("telegram", {
      capabilities: { supportsActions },
      tools: { pay: serverTool(() => (ran.push("paid"), "paid"), { needsApproval: true }) },
      script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "All is paid."),
    });
    await kit.deliver(kit.network.says("pay"));
    const question = () => kit.network.seen().find(({ text }) => text.includes("May I call"));
    await kit.until(() => expect(question()).toBeDefined());
    expect(question()?.buttons.map(({ label }) => label)).toEqual(supportsActions ? ["Approve", "Reject"] : []);
    const code = /YES (\w{4})/.exec(question()?.text ?? "")?.[1];
    expect(code === undefined).toBe(supportsActions);
    const press = kit.network.presses?.bind(kit.network);
    await kit.deliver(
      code === undefined ? [press?.("Approve")].filter((one) => one !== undefined) : kit.network.says(`YES ${code}`),
    );
    await kit.until(() => expect(kit.texts()).toContain("All is paid."));
    expect(ran).toEqual(["paid"]);
  }
});

test("`maxFileBytes`: a larger file is not sent, and its place says so; 0: none is", async () => {
  const files = [100, 2_000].map((size) => ({ mediaType: "image/png", data: new Uint8Array(size).fill(7) }));
  for (const [maxFileBytes, sent] of [
    [1_000, [100]],
    [0, []],
  ] as const) {
    const kit = await openSdk("telegram", { capabilities: { maxFileBytes }, script: () => ({ text: "Here.", files }) });
    await kit.deliver(kit.network.says("look"));
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done" }]));
    const seen = kit.network.seen();
    expect(seen[0]?.text).toContain("Here.");
    expect(seen.flatMap(({ file }) => (file === undefined ? [] : [file.bytes.length]))).toEqual(sent);
    expect(seen.filter(({ text }) => text.includes("could not be sent"))).toHaveLength(2 - sent.length);
  }
});
