// Whatever an agent is called, its pictures and long outputs are there: for clients, for the model, after a restart.
import type { UIMessage } from "ai";
import { type ChildClass, type MediaRetention, Think } from "perdure";
import { getSubAgentByName, type ServedHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { buildAgentPath } from "../../src/wire/agent-path.ts";
import { connect, openHost, tempDir } from "../host/open-host.ts";
import { seeded } from "../support/seeded.ts";
import { serverTool } from "./harness.ts";

const picture = (seed: number) => Buffer.from(Uint8Array.from({ length: 40_000 }, (_, n) => (n * seed) % 251));
const LOG = Array.from({ length: 3_000 }, (_, n) => `line ${n} of the log`)
  .join("\n")
  .slice(0, 40_000);

const asked: string[] = [];

class Deep extends Think {
  static override readonly subAgents: readonly ChildClass[] = ["Deep"];
  override workspaceTools = false as const;
  override mediaRetention: MediaRetention = { keepInMessages: 1 };
  override getModel() {
    const look = { toolCalls: [{ toolName: "look", input: {} }] };
    const model = scriptedModel([look, "Fine.", "Fine.", "Fine.", "Fine."]);
    return model;
  }
  override getTools() {
    return { look: serverTool(() => ({ log: LOG })) };
  }
  override beforeStep({ messages }: { messages: unknown }): void {
    asked.push(JSON.stringify(messages));
  }
  override onRequest(): Response {
    return Response.json(this.name);
  }
}

const withPicture = (seed: number): UIMessage => ({
  id: `u${seed}`,
  role: "user",
  parts: [{ type: "file", mediaType: "image/png", url: `data:image/png;base64,${picture(seed).toString("base64")}` }],
});

/** As a person would type it into an address bar: only what would end the name is encoded. */
const typed = (name: string) =>
  name.replace(/[/?#%\\\s]/g, encodeURIComponent).replace(/[^\x21-\x7e]/gu, encodeURIComponent);

const ODD = [
  "a:b",
  ":",
  "1:2:3",
  "a%b",
  "100%",
  "%41",
  "a/b",
  "../up",
  "..a",
  ".hidden",
  "a b",
  " lead",
  "ü😀",
  "[x]",
  "a]b",
];
ODD.push(
  "files",
  "sub",
  "a?b#c",
  "back\\slash",
  "data:image",
  "http://x/y",
  "it's (me)!*",
  "x".repeat(512),
  "\n\t",
  "a&b=c;d,e@f$g+h",
);

function randomNames(count: number): string[] {
  const random = seeded(8);
  const letters = Array.from("ab:/%?#[]@!$&'()*+,;= .~-_\\^`{}|<>\"é漢😀\u200b");
  const one = () => Array.from({ length: 1 + random(12) }, () => letters[random(letters.length)] ?? "").join("");
  return Array.from({ length: count }, one).filter((name) => name !== "." && name !== "..");
}

/** The messages that clients are shown, and what each refers to. */
async function shown(host: ServedHost, address: string): Promise<{ messages: UIMessage[]; urls: string[] }> {
  const messages = (await (await fetch(`${host.url}${address}/get-messages`)).json()) as UIMessage[];
  const references = JSON.stringify(messages).matchAll(/(?:"| is at )(\/[^"\s]*\/files\/[0-9a-f]{64})/g);
  const urls = [...references].map(([, url]) => url ?? "");
  return { messages, urls };
}

/** A picture and a long output, moved out of their messages, while a client is connected by the address that it typed. */
async function fill(host: ServedHost, agent: { runTurn(options: object): Promise<unknown> }, by: string, seed: number) {
  const client = await connect(host, by);
  await agent.runTurn({ input: withPicture(seed) });
  await agent.runTurn({ input: "And now?" });
  await expect.poll(async () => (await shown(host, by)).urls.length).toBe(2);
  client.ws.close();
}

async function expectWhole(host: ServedHost, by: string, own: string, seed: number): Promise<void> {
  const { urls } = await shown(host, by);
  expect(
    urls.every((url) => url.startsWith(`${own}/files/`)),
    `${urls.join(" ")} of ${own}`,
  ).toBe(true);
  const bodies = await Promise.all(
    urls.map(async (url) => Buffer.from(await (await fetch(host.url + url)).arrayBuffer())),
  );
  expect(bodies.map((body) => body.toString("base64")).toSorted()).toEqual(
    [picture(seed).toString("base64"), Buffer.from(LOG).toString("base64")].toSorted(),
  );
}

test("an agent of any name keeps its pictures and long outputs, over restarts and under another prefix", async () => {
  const dir = tempDir();
  const names = [...new Set([...ODD, ...randomNames(15)])];
  const host = await openHost({ agents: { Deep }, dir });
  for (const [at, name] of names.entries()) {
    const own = buildAgentPath([{ className: "Deep", name }]);
    const by = `/agents/deep/${typed(name)}`;
    expect(await (await fetch(host.url + by)).json(), name).toBe(name);
    await fill(host, host.getAgentByName(Deep, name), by, at + 2);
    await expectWhole(host, by, own, at + 2);
  }
  await host.stop();
  const again = await openHost({ agents: { Deep }, dir, prefix: "v2/bots" });
  for (const [at, name] of names.entries()) {
    const step = { className: "Deep", name };
    const by = buildAgentPath([step], { prefix: "v2/bots" });
    const agent = again.getAgentByName(Deep, name);
    await expect.poll(async () => (await shown(again, by)).urls.every((url) => url.startsWith("/v2/bots/"))).toBe(true);
    await expectWhole(again, by, by, at + 2);
    asked.length = 0;
    await agent.runTurn({ input: "Once more?" });
    expect(asked.at(-1), name).toContain(
      picture(at + 2)
        .toString("base64")
        .slice(0, 200),
    );
    expect(asked.at(-1), name).toContain("line 1500 of the log");
  }
});

test("so does a child of any name", async () => {
  const host = await openHost({ agents: { Deep } });
  for (const [at, name] of ODD.entries()) {
    const path = [
      { className: "Deep", name: "p:q" },
      { className: "Deep", name },
    ] as const;
    const own = buildAgentPath(path);
    const by = `/agents//deep/p:q/sub/deep/${encodeURIComponent(name)}`;
    await fill(host, await getSubAgentByName(host.getAgentByName(Deep, "p:q"), Deep, name), by, at + 2);
    await expectWhole(host, by, own, at + 2);
  }
});

test("what a client has typed is in no row", async () => {
  const host = await openHost({ agents: { Deep }, log: false });
  const agent = host.getAgentByName(Deep, "anna");
  await fill(host, agent, "/agents//deep/%61nna", 7);
  await expectWhole(host, "/agents/deep/anna", "/agents/deep/anna", 7);
});

test("an app that mounts its agents elsewhere says where, and later messages and earlier ones refer to it", async () => {
  const dir = tempDir();
  const host = await openHost({ agents: { Deep }, dir });
  await fill(host, host.getAgentByName(Deep, "anna"), "/agents/deep/anna", 7);
  await host.stop();
  class Mounted extends Deep {
    override mediaRetention = { keepInMessages: 1, address: "/me/" };
  }
  const again = await openHost({ agents: { Deep: Mounted }, dir });
  await again.getAgentByName(Mounted, "anna").runTurn({ input: "Again?" });
  const isMounted = (url: string) => url.startsWith("/me/files/");
  await expect.poll(async () => (await shown(again, "/agents/deep/anna")).urls.every(isMounted)).toBe(true);
  expect((await shown(again, "/agents/deep/anna")).urls.length).toBeGreaterThan(1);
});
