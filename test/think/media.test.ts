// Large pictures and outputs are taken out of older messages; clients and models still see them.
import type { UIMessage } from "ai";
import { scriptedModel } from "perdure/testing";
import { expect, test, vi } from "vitest";
import { openThink, sent, serverTool } from "./harness.ts";
import { PATIENCE_MS } from "../support/until.ts";

const bytes = (seed: number) => Buffer.from(Uint8Array.from({ length: 60_000 }, (_, n) => (n * seed) % 251));
const dataUrl = (seed: number) => `data:image/png;base64,${bytes(seed).toString("base64")}`;
const log = Array.from({ length: 3_000 }, (_, n) => `line ${n} of the log`)
  .join("\n")
  .slice(0, 40_000);

const withPicture = (id: string, seed: number): UIMessage => ({
  id,
  role: "user",
  parts: [
    { type: "text", text: "What is this?" },
    { type: "file", mediaType: "image/png", filename: "boat.png", url: dataUrl(seed) },
  ],
});

const urlOf = (message: UIMessage | undefined) => message?.parts.find((part) => part.type === "file")?.url ?? "";

async function open(keepInMessages = 2) {
  const script = [{ toolCalls: [{ toolName: "look", input: {} }] }, ...Array.from({ length: 6 }, () => "Fine.")];
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override mediaRetention: { keepInMessages: number; days?: number } = { keepInMessages };
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => ({ log, shot: dataUrl(3) })) };
        }
      },
  );
  return Object.assign(kit, { model });
}

async function moved(kit: Awaited<ReturnType<typeof open>>): Promise<UIMessage[]> {
  await vi.waitFor(async () => expect(urlOf((await kit.stored())[0])).toContain("/files/"), PATIENCE_MS);
  return kit.stored();
}

test("clients get an address that answers with the picture, and models the picture itself", async () => {
  const kit = await open();
  const agent = await kit.agent();
  await agent.runTurn({ input: withPicture("u1", 7) });
  expect(urlOf((await kit.stored())[0])).toBe(dataUrl(7));
  await kit.ask("And now?");
  const messages = await moved(kit);
  const url = urlOf(messages[0]);
  const answer = await fetch(new URL(url, kit.host.url));
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("image/png");
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
  expect(answer.headers.get("content-disposition")).toBe("inline");
  expect(Buffer.from(await answer.arrayBuffer()).equals(bytes(7))).toBe(true);
  const etag = answer.headers.get("etag") ?? "";
  expect((await fetch(new URL(url, kit.host.url), { headers: { "if-none-match": etag } })).status).toBe(304);
  await kit.ask("Once more?");
  // The same conversation in the same bytes, wherever it is kept.
  const last = kit.model.calls.length - 1;
  const [before, after] = [sent(kit.model, last - 1), sent(kit.model, last)];
  expect(after.slice(0, before.length)).toEqual(before);
  expect(after[0]).toContain(bytes(7).toString("base64").slice(0, 100));
});

test("long outputs of tools are moved too, and a restart changes nothing", async () => {
  const kit = await open();
  await kit.ask("Look.");
  await kit.ask("And now?");
  await vi.waitFor(
    async () => expect(JSON.stringify((await kit.stored())[1])).toContain("the whole text is at"),
    PATIENCE_MS,
  );
  const stored = JSON.stringify((await kit.stored())[1]);
  expect(stored.length).toBeLessThan(10_000);
  const name = /\/files\/([0-9a-f]{64})\]/.exec(stored)?.[1] ?? "";
  expect(await (await fetch(`${kit.url}/files/${name}`)).text()).toBe(log);
  await kit.restart();
  await kit.ask("Once more?");
  const [before, after] = [sent(kit.model, 2), sent(kit.model, 3)];
  expect(after.slice(0, before.length)).toEqual(before);
  expect(JSON.stringify(after)).toContain("line 1500 of the log");
});

test("a client that still has the old copy does not edit by asking again", async () => {
  const kit = await open();
  const client = await kit.connect();
  const first = withPicture("u1", 7);
  client.request("r1", [first]);
  await client.done("r1");
  const answer = (await kit.stored())[1];
  client.request("r2", [first, answer, { id: "u2", role: "user", parts: [{ type: "text", text: "And now?" }] }]);
  await client.done("r2");
  await moved(kit);
  client.request("r3", [first], { trigger: "regenerate-message" });
  await client.done("r3");
  const rows = await kit.rows<{ n: number }>("SELECT count(*) AS n FROM perdure_message WHERE role = 'user'");
  expect(rows).toEqual([{ n: 2 }]);
  expect(urlOf((await kit.stored())[0])).toContain("/files/");
});

test.each(["0".repeat(64), "..%2f..%2fhost.db", "A".repeat(64), `${"a".repeat(64)}.draft`])(
  "no other name gives a file: %s",
  async (name) => {
    const kit = await open();
    await kit.ask("Hello");
    const answer = await fetch(`${kit.url}/files/${name}`);
    expect(answer.status).toBe(404);
  },
);

test("only reading is allowed, and what a browser might run is a download without rights", async () => {
  const kit = await open(1);
  const agent = await kit.agent();
  const page = `data:text/html;base64,${Buffer.from(`<script>alert(1)</script>${" ".repeat(40_000)}`).toString("base64")}`;
  const parts: UIMessage["parts"] = [{ type: "file", mediaType: "text/html", url: page }];
  await agent.runTurn({ input: { id: "u1", role: "user", parts } });
  const url = new URL(urlOf((await moved(kit))[0]), kit.host.url);
  expect((await fetch(url, { method: "DELETE" })).status).toBe(405);
  const head = await fetch(url, { method: "HEAD" });
  expect(head.headers.get("content-disposition")).toBe("attachment");
  expect(head.headers.get("content-security-policy")).toContain("sandbox");
});

test("a page that still shows a file whose time is over sees a picture that says so", async () => {
  const kit = await open();
  const agent = await kit.agent();
  await agent.runTurn({ input: withPicture("u1", 7) });
  await kit.ask("And now?");
  const url = new URL(urlOf((await moved(kit))[0]), kit.host.url);
  agent.mediaRetention = { keepInMessages: 2, days: 0 };
  await kit.ask("Later");
  await vi.waitFor(
    async () => expect(JSON.stringify((await kit.stored())[0])).toContain("was deleted after 0 days"),
    PATIENCE_MS,
  );
  await vi.waitFor(async () => expect((await fetch(url)).status).toBe(410), PATIENCE_MS);
  const answer = await fetch(url);
  expect(answer.headers.get("content-type")).toBe("image/svg+xml");
  expect(await answer.text()).toContain("This file was deleted.");
  await kit.ask("Still there?");
  expect(sent(kit.model, kit.model.calls.length - 1)[0]).toContain("was deleted after 0 days");
});
