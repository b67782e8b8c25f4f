// Published adapters of the Chat SDK, each against a fake of its network.
import { expect, test, describe } from "vitest";
import { serverTool } from "../../think/harness.ts";
import { openSdk, openWithFiles, prompted } from "./kit.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";

const names = Object.keys(NETWORKS) as NetworkName[];
const paragraph = (n: number) =>
  `Tree ${n}: ${"Trees keep - what they have been told - in *rings*! (See #4.) ".repeat(6).trim()}`;
/** Longer than the network takes at once, and full of what has a meaning in Markdown. */
const longFor = (name: NetworkName) =>
  Array.from({ length: name === "github" ? 170 : 40 }, (_, i) => paragraph(i)).join("\n\n");
/** GitHub's adapter neither tells of files nor takes any. */
const withFiles = names.filter((name) => name !== "github");
const picture = (length = 40_000) => ({
  name: "p.jpg",
  mediaType: "image/jpeg",
  bytes: new Uint8Array(length).fill(7),
});
const IMAGES = { allow: ["image/*"], maxBytes: 100_000 };
const ZIP = { mediaType: "application/zip", data: new Uint8Array(500).fill(3) };
/** What the network knows a picture by: Telegram gives them no names. */
const shownAs = (name: NetworkName) => (name === "telegram" ? "image" : "p.jpg");
const wordsOf = (text: string) => text.match(/[a-z0-9]+/gi) ?? [];

describe.each(names)("%s", (name) => {
  test("what somebody says is answered there, once, however often it is delivered", async () => {
    const kit = await openSdk(name);
    const said = kit.network.says("hi");
    for (let i = 0; i < 10; i++) expect(await kit.deliver(said)).toEqual([200]);
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    expect(kit.model.calls).toHaveLength(1);
    await kit.deliver(kit.network.says("and again"));
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there.", "Hello there."]));
  });

  test("ten deliveries at once are one turn", async () => {
    const kit = await openSdk(name);
    const [said] = kit.network.says("hi");
    if (said === undefined) throw new Error("Nothing was said.");
    const answers = await Promise.all(Array.from({ length: 10 }, () => kit.post(said)));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 10 }, () => 200));
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    expect(kit.model.calls).toHaveLength(1);
  });

  test("what could not be stored is refused, and comes again", async () => {
    let full = true;
    const kit = await openSdk(name, {
      allow: () => {
        if (full) throw new Error("The disk is full.");
        return true;
      },
    });
    const said = kit.network.says("hi");
    expect(await kit.deliver(said)).toEqual([503]);
    expect(await kit.deliver(said)).toEqual([503]);
    full = false;
    expect(await kit.deliver(said)).toEqual([200]);
    expect(await kit.deliver(said)).toEqual([200]);
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    expect(kit.model.calls).toHaveLength(1);
    expect(kit.errors.splice(0)).toEqual(["The disk is full.", "The disk is full."]);
  });

  test("what comes while a turn runs is not lost", async () => {
    const gate = Promise.withResolvers<string>();
    const kit = await openSdk(name, {
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step, userText }) =>
        step === 0 && userText.includes("one") ? { toolCalls: [{ toolName: "wait", input: {} }] } : "Done.",
    });
    expect(await kit.deliver(kit.network.says("one"))).toEqual([200]);
    expect(await kit.deliver(kit.network.says("two"))).toEqual([200]);
    expect(await kit.deliver(kit.network.says("three"))).toEqual([200]);
    gate.resolve("now");
    await kit.until(() => expect(kit.texts()).toHaveLength(3));
    expect(kit.holder().listDeliveries()).toHaveLength(3);
  });

  test("a long answer is there whole, in messages that the network takes; nothing is cut", async () => {
    const long = longFor(name);
    const kit = await openSdk(name, { script: () => ({ text: long.match(/.{1,900}/gs) ?? [], delayMs: 2 }) });
    await kit.deliver(kit.network.says("hi"));
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done" }]));
    expect(wordsOf(kit.texts().join("\n\n"))).toEqual(wordsOf(long));
    expect(kit.texts().length).toBeGreaterThan(1);
    for (const { versions } of kit.network.seen())
      for (const text of versions) expect(text.length).toBeLessThanOrEqual(kit.network.longest);
  }, 60_000);

  test("a delivery without the secret changes nothing", async () => {
    const kit = await openSdk(name);
    expect((await kit.post(kit.network.forged())).status).toBe(401);
    expect(kit.model.calls).toEqual([]);
  });

  test("the app may judge deliveries itself, before the adapter does", async () => {
    const asked: number[] = [];
    const kit = await openSdk(name, { verifyWebhook: (_request, body) => (asked.push(body.byteLength), false) });
    expect(await kit.deliver(kit.network.says("hi"))).toEqual([401]);
    expect(asked).toHaveLength(1);
    const picky = await openSdk(name, { verifyWebhook: () => new Response("no", { status: 418 }) });
    expect(await picky.deliver(picky.network.says("hi"))).toEqual([418]);
    expect([...kit.model.calls, ...picky.model.calls]).toEqual([]);
  });

  test("a network that says when to come again is heard; what was lost on the way is made again, and said to be maybe twice", async () => {
    const kit = await openSdk(name);
    await kit.network.breaks("rate");
    await kit.deliver(kit.network.says("hi"));
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    expect(kit.network.creates()).toBe(2);
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done", maybeTwice: false }]));
    await kit.network.breaks("lost-answer");
    await kit.deliver(kit.network.says("again"));
    await kit.until(() => expect(kit.holder().listDeliveries({ state: "done" })).toHaveLength(2));
    const [last] = kit.holder().listDeliveries();
    // GitHub can be asked what was said: there it is once.
    const twice = name !== "github";
    expect([last?.maybeTwice, kit.texts().length]).toEqual([twice, twice ? 3 : 2]);
  });

  test("what the network will not do fails, and is listed; the turn is as it was", async () => {
    const kit = await openSdk(name);
    await kit.network.breaks("refused");
    await kit.deliver(kit.network.says("hi"));
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "failed" }]));
    expect(kit.holder().messages.at(-1)?.parts).toMatchObject([{}, { type: "text", text: "Hello there." }]);
  });

  test("a message that somebody deleted while it grew is said anew, whole", async () => {
    const gate = Promise.withResolvers<string>();
    const kit = await openSdk(name, {
      delivery: { first: "text" },
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step }) => (step === 0 ? { text: "One.", toolCalls: [{ toolName: "wait", input: {} }] } : "Two."),
    });
    await kit.deliver(kit.network.says("hi"));
    await kit.until(() => expect(kit.texts()).toEqual(["One."]));
    kit.network.deletes(kit.network.seen()[0]?.id ?? "");
    gate.resolve("now");
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done" }]));
    expect(kit.texts().map(wordsOf)).toEqual([["One", "Two"]]);
  });

  test("a call that needs approval is answered by a press, or in words where there are no buttons", async () => {
    const ran: unknown[] = [];
    const kit = await openSdk(name, {
      approvers: () => true,
      tools: { pay: serverTool((input) => (ran.push(input), "paid"), { needsApproval: true }) },
      script: ({ step }) =>
        step === 0 ? { text: "I will pay.", toolCalls: [{ toolName: "pay", input: { amount: 5 } }] } : "All is paid.",
    });
    await kit.deliver(kit.network.says("pay it"));
    await kit.until(() => expect(kit.texts()).toHaveLength(2));
    expect(kit.texts()[1]).toContain('"amount": 5');
    const { presses } = kit.network;
    const code = /YES (\w{4})/.exec(kit.texts()[1] ?? "")?.[1] ?? "";
    expect(code !== "").toBe(presses === undefined);
    const answer = presses === undefined ? kit.network.says(`YES ${code}`) : [presses("Approve")];
    for (let i = 0; i < 3; i++) expect(await kit.deliver(answer)).toEqual([200]);
    await kit.until(() => expect(kit.texts()).toContain("All is paid."));
    expect(ran).toEqual([{ amount: 5 }]);
    if (presses === undefined) return;
    await kit.until(() => expect(kit.texts()[1]).toMatch(/Approved by (Ada|ada)/));
    // Nobody can press what is decided.
    expect(kit.network.seen()[1]?.buttons.filter(({ disabled }) => disabled !== true)).toEqual([]);
  });

  test("an answer that is owed when the life ends is given by the next one", async () => {
    const kit = await openSdk(name, { coalesceMs: 300 });
    expect(await kit.deliver(kit.network.says("hi"))).toEqual([200]);
    await kit.restart();
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    expect(kit.model.calls).toHaveLength(1);
  });
});

describe.each(withFiles)("files at %s", (name) => {
  test("a picture is read by the model; no token, and no address that opens by itself, is in a row, an event or a prompt", async () => {
    const kit = await openWithFiles(name, { attachments: IMAGES });
    expect(await kit.deliver(kit.network.sends?.(picture(), "look") ?? [])).toEqual([200]);
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    expect(prompted(kit)).toEqual(["look", ["image/jpeg", 40_000]]);
    const rows = kit.ports.flatMap((port) =>
      port
        .sql<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'perdure_%'")
        .flatMap((table) => port.sql(`SELECT * FROM ${table.name}`)),
    );
    const { botToken } = kit.network.config;
    for (const all of [rows, kit.events, kit.model.calls])
      for (const secret of [String(botToken), "/file/bot", "hm="]) expect(JSON.stringify(all)).not.toContain(secret);
    expect(kit.events).toEqual([]);
  });

  test("one of another kind, or too large, is said, and not asked for", async () => {
    const kit = await openWithFiles(name, { attachments: IMAGES });
    const program = { name: "run.exe", mediaType: "application/x-msdownload", bytes: new Uint8Array(9) };
    await kit.deliver(kit.network.sends?.(program, "run it") ?? []);
    await kit.until(() => expect(kit.texts()).toHaveLength(1));
    const mark = "[file: run.exe (application/x-msdownload), not read: files of this kind are not read here]";
    expect(prompted(kit)).toEqual(["run it", mark]);
    await kit.deliver(kit.network.sends?.(picture(100_001), "look") ?? []);
    await kit.until(() => expect(kit.texts()).toHaveLength(2));
    const large = `[file: ${shownAs(name)} (image/jpeg), not read: it is larger than 100000 bytes]`;
    expect(prompted(kit)).toEqual(["look", large]);
    expect(kit.events.map(({ type }) => type)).toEqual(["messenger:file-left", "messenger:file-left"]);
    expect(kit.network.asked?.()).toBe(0);
  });

  test("a file that was not fetched when the life ends is fetched by the next one, and the turn waits for it", async () => {
    const kit = await openWithFiles(name, { attachments: IMAGES });
    kit.network.breaksFile?.("read");
    expect(await kit.deliver(kit.network.sends?.(picture(), "look") ?? [])).toEqual([200]);
    await kit.until(() => expect(kit.network.asked?.()).toBe(1));
    await kit.restart();
    await kit.until(() => expect(kit.texts()).toEqual(["Hello there."]));
    expect(prompted(kit)).toEqual(["look", ["image/jpeg", 40_000]]);
    expect(kit.model.calls).toHaveLength(1);
  });

  test("a file of an answer is sent below its words, once", async () => {
    const kit = await openWithFiles(name, { script: () => ({ text: "Here.", files: [ZIP] }) });
    await kit.deliver(kit.network.says("pack it"));
    await kit.until(() =>
      expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done", parts: 2, maybeTwice: false }]),
    );
    const seen = kit.network
      .seen()
      .map(({ text, file }) => (file === undefined ? text : [file.name, file.bytes.length]));
    expect(seen).toEqual(["Here.", ["application.zip", 500]]);
  });

  test("a file whose sending was cut off is sent again, and said to be maybe twice", async () => {
    const kit = await openWithFiles(name, { script: () => ({ files: [ZIP] }) });
    kit.network.breaksFile?.("lost-answer");
    await kit.deliver(kit.network.says("pack it"));
    await kit.until(() => expect(kit.holder().listDeliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
    expect(kit.network.seen().map(({ file }) => file?.name)).toEqual(["application.zip", "application.zip"]);
  });
});

test.each(["github", "discord"] as const)(
  "a file that cannot be sent is said in its place, and told of: at %s, as it is called here",
  async (name) => {
    // Discord's adapter sends files to Discord alone, whatever server it was told to call.
    const kit = await openSdk(name, { script: () => ({ text: "Here.", files: [ZIP] }) });
    await kit.deliver(kit.network.says("pack it"));
    await kit.until(() => expect(kit.texts()).toEqual(["Here.", "(The file application.zip could not be sent.)"]));
    expect(kit.events).toMatchObject([
      { type: "delivery:file-left", payload: { file: "application.zip", reason: "files cannot be sent there" } },
    ]);
  },
);
