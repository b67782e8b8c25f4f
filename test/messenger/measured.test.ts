// What was measured of other ways to talk at networks, and must not be so here.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { defineMessengers, messenger } from "perdure/messengers";
import { slackMessenger } from "perdure/messengers/slack";
import { telegramMessenger } from "perdure/messengers/telegram";
import { memoryChannel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, ADA_AT_SLACK, ADA_THERE, DM, openKit, openSlack, openTelegram } from "./kit.ts";

const PICTURE = { name: "p.png", mediaType: "image/png" } as const;
const forEver = { kind: "held", until: new Promise<never>(() => undefined) } as const;

test("a network that never answers holds nobody up: what was to be made is made again and says so, what was to be changed is changed once", async () => {
  const kit = await openKit({ manual: true, network: { paceMs: 1_000 } });
  kit.network.plan("create", forEver);
  kit.network.says(DM, ADA, "hi");
  await kit.until(() => expect(kit.network.calls.map(({ op }) => op)).toEqual(["create"]));
  await kit.clock.advance(30_000);
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: true }]));
  expect(kit.texts()).toEqual(["Hello there."]);
  const other = await openKit({
    ...{ manual: true, network: { paceMs: 1_000 } },
    tools: { wait: serverTool(() => gate.promise) },
    script: ({ step }) => (step === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it."),
  });
  const gate = Promise.withResolvers<string>();
  other.network.says(DM, ADA, "hi");
  await other.until(() => expect(other.texts()).toEqual(["Half"]));
  for (let i = 0; i < 2; i++) other.network.plan("edit", forEver);
  gate.resolve("now");
  await other.until(() => expect(other.network.calls.some(({ op }) => op === "edit")).toBe(true));
  for (let i = 0; i < 3; i++) await other.clock.advance(35_000);
  await other.until(() => expect(other.deliveries()).toMatchObject([{ state: "done", maybeTwice: false, parts: 1 }]));
  expect(other.texts()).toEqual(["Half\n\nof it."]);
});

test.each(["Telegram", "Slack"] as const)("at %s an answer without a line break grows before its end", async (name) => {
  const words = Array.from({ length: 30 }, (_, i) => `word${i} `);
  const script = () => ({ text: words, delayMs: 5, hang: true });
  const all = words.join("").trim();
  const kit = name === "Slack" ? await openSlack({ script }) : await openTelegram({ script });
  const says = (text: string) =>
    "slack" in kit ? kit.slack.says("D7", ADA_AT_SLACK, text) : kit.telegram.says(7, ADA_THERE, text);
  says("hi");
  await kit.until(() => expect(kit.texts()).toEqual([all]));
  expect(kit.deliveries()).toMatchObject([{ state: "open", parts: 1 }]);
  says("/stop");
  await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", parts: 1 }]));
  expect(kit.texts()).toEqual([`${all}\n\n(stopped)`]);
});

test.each(["Telegram", "Slack"] as const)(
  "%s never answers, and holds nobody up: what was to be made is made again, what was to be changed is changed once",
  async (name) => {
    const gate = Promise.withResolvers<string>();
    const terms: Parameters<typeof openKit>[0] = {
      manual: true,
      tools: { wait: serverTool(() => gate.promise) },
      script: ({ step }) => (step === 0 ? { text: "Half", toolCalls: [{ toolName: "wait", input: {} }] } : "of it."),
    };
    const { manual, tools, script } = terms;
    const kit =
      name === "Slack"
        ? await openSlack({ manual, tools, script, pace: { channelMs: 1_000, perSecond: 1000 } })
        : await openTelegram({ manual, tools, script, pace: { directMs: 1_000, groupMs: 1_000, perSecond: 1000 } });
    const there = "slack" in kit ? kit.slack : kit.telegram;
    const [make, change] = "slack" in kit ? ["chat.postMessage", "chat.update"] : ["sendMessage", "editMessageText"];
    const count = (method = "") => there.calls.filter((one) => one.method === method).length;
    there.plan(make ?? "", forEver);
    if ("slack" in kit) kit.slack.says("D7", ADA_AT_SLACK, "hi");
    else kit.telegram.says(7, ADA_THERE, "hi");
    await kit.until(() => expect(count(make)).toBe(1));
    await kit.clock.advance(30_000);
    await kit.until(() => expect(kit.texts()).toEqual(["Half"]));
    expect(count(make)).toBe(2);
    for (let i = 0; i < 2; i++) there.plan(change ?? "", forEver);
    gate.resolve("now");
    await kit.until(() => expect(count(change)).toBe(1));
    for (let i = 0; i < 3; i++) await kit.clock.advance(35_000);
    // Slack was asked, and has none: it is surely there once.
    const twice = name === "Telegram";
    await kit.until(() => expect(kit.deliveries()).toMatchObject([{ state: "done", maybeTwice: twice, parts: 1 }]));
    expect(kit.texts()).toEqual(["Half\n\nof it."]);
    expect(count(make)).toBe(2);
  },
);

/** Everything is elsewhere, it says. */
async function elsewhere(): Promise<{ readonly apiUrl: string; readonly asked: string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(`${request.url ?? ""} ${request.headers.authorization ?? ""}`.trim());
    response.writeHead(302, { location: "/elsewhere" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

test("a server that sends us elsewhere is not followed, and the token goes nowhere", async () => {
  const signal = new AbortController().signal;
  const telegram = await elsewhere();
  const there = telegramMessenger({ token: "1:fake", apiUrl: telegram.apiUrl }).channel;
  const place = { thread: "telegram:7", dm: true };
  await expect(there.create(place, { text: "hi" }, "k", signal)).rejects.not.toThrow("1:fake");
  await expect(there.edit(place, "1", { text: "hi" }, signal)).rejects.not.toThrow("1:fake");
  await expect(there.fetchFile?.({ ...PICTURE, id: "f1" }, signal)).rejects.not.toThrow("1:fake");
  expect(telegram.asked).toEqual(["sendMessage", "editMessageText", "getFile"].map((one) => `/bot1:fake/${one}`));
  const slack = await elsewhere();
  const here = slackMessenger({ botToken: "xoxb-secret", signingSecret: "s", apiUrl: slack.apiUrl }).channel;
  const channel = { thread: "slack:D7", dm: true };
  await expect(here.create(channel, { text: "hi" }, "k", signal)).rejects.not.toThrow("xoxb-secret");
  await expect(here.edit(channel, "1.0", { text: "hi" }, signal)).rejects.not.toThrow("xoxb-secret");
  expect(slack.asked).toEqual(["/chat.postMessage", "/chat.update"].map((path) => `${path} Bearer xoxb-secret`));
});

test("two messengers at one address are refused", () => {
  const made = () => messenger(memoryChannel().channel(), { allow: ["7"], path: "/hook" });
  expect(() => defineMessengers({ one: made(), two: made() })).toThrow('has the same `path` as "one"');
});
