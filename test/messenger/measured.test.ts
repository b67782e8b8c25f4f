// What was measured of other ways to talk at networks, and must not be so here.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { defineMessengers, messenger } from "perdure/messengers";
import { telegramMessenger } from "perdure/messengers/telegram";
import { memoryChannel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { ADA, ADA_AT_SLACK, ADA_THERE, DM, openKit, openSlack, openTelegram } from "./kit.ts";

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

test("a server that sends us elsewhere is not followed, and the token goes nowhere", async () => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? "");
    response.writeHead(302, { location: "/elsewhere" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { channel } = telegramMessenger({ token: "1:fake", apiUrl });
  const place = { thread: "telegram:7", dm: true };
  const failed = channel.create(place, { text: "hi" }, "k", new AbortController().signal);
  await expect(failed).rejects.not.toThrow("1:fake");
  expect(asked).toEqual(["/bot1:fake/sendMessage"]);
});

test("two messengers at one address are refused", () => {
  const made = () => messenger(memoryChannel().channel(), { allow: ["7"], path: "/hook" });
  expect(() => defineMessengers({ one: made(), two: made() })).toThrow('has the same `path` as "one"');
});
