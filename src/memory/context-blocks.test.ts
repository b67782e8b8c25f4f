import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import { MAX_BLOCKS, MAX_CONTENT_CHARS, MAX_DESCRIPTION_CHARS } from "./definition.ts";
import type { ContextProvider } from "./provider.ts";
import { staticContext } from "./providers.ts";
import { ContextBlocks } from "./context-blocks.ts";

const refused = (code: string, message: RegExp | string = "") =>
  expect.objectContaining({ code, message: expect.stringMatching(message) as string }) as Error;

async function open() {
  const probe = await probeHost();
  const errors: string[] = [];
  const failed = (error: unknown) => void errors.push(error instanceof Error ? error.message : String(error));
  /** The blocks of a session, as another life would make them. */
  const make = (session = "main") => new ContextBlocks(probe.host, { session, failed });
  return { ...probe, errors, make };
}

/** A text outside of the agent. */
function outside(text: string) {
  const store = { text, reads: 0, broken: false };
  const provider = {
    get: async () => {
      store.reads += 1;
      if (store.broken) throw new Error("The shelf is locked.");
      return store.text;
    },
    set: async (content: string) => {
      if (store.broken) throw new Error("The shelf is locked.");
      await Promise.resolve();
      store.text = content;
    },
  };
  return Object.assign(store, { provider });
}

test("a block without a provider is stored, per session, and is there in the next life", async () => {
  const { make } = await open();
  const blocks = make().withContext("memory", { description: "Facts", maxTokens: 100 });
  expect(blocks.getContextBlock("memory")).toEqual({
    label: "memory",
    description: "Facts",
    kind: "writable",
    content: "",
    tokens: 0,
    maxTokens: 100,
    writable: true,
    shared: false,
  });
  await blocks.replaceContextBlock("memory", "Ada likes tea.");
  expect(await blocks.appendContextBlock("memory", "She lives in Bern.")).toMatchObject({
    content: "Ada likes tea.\nShe lives in Bern.",
  });
  expect(make().withContext("memory").getContextBlock("memory")?.content).toBe("Ada likes tea.\nShe lives in Bern.");
  expect(make("other").withContext("memory").getContextBlock("memory")?.content).toBe("");
});

test("a shared block is one text for all sessions", async () => {
  const { make } = await open();
  const one = make("one").withContext("team", { shared: true, initial: "Be kind." });
  const two = make("two").withContext("team", { shared: true, initial: "Be kind." });
  expect(two.getContextBlock("team")?.content).toBe("Be kind.");
  await one.appendContextBlock("team", "Ship on Friday.");
  expect(two.getContextBlock("team")?.content).toBe("Be kind.\nShip on Friday.");
  await two.replaceContextBlock("team", "");
  expect(one.getContextBlock("team")?.content).toBe("");
});

test("appends at the same time, by several sessions, are all kept", async () => {
  const { make } = await open();
  const shelf = outside("");
  const sessions = ["a", "b", "c"].map((session) =>
    make(session).withContext("own", { shared: true }).withContext("shelf", { provider: shelf.provider }),
  );
  await Promise.all(
    Array.from({ length: 30 }, async (_, n) => {
      const blocks = sessions[n % 3];
      await Promise.all([blocks?.appendContextBlock("own", `${n}`), blocks?.appendContextBlock("shelf", `${n}`)]);
    }),
  );
  const numbers = (text = "") =>
    text
      .split("\n")
      .map(Number)
      .sort((a, b) => a - b);
  const all = Array.from({ length: 30 }, (_, n) => n);
  expect(numbers(sessions[0]?.getContextBlock("own")?.content)).toEqual(all);
  expect(numbers(shelf.text)).toEqual(all);
});

test("what would be too much is not written, and says how much it is", async () => {
  const { make } = await open();
  const blocks = make().withContext("memory", { maxTokens: 5 }).withContext("long");
  await blocks.replaceContextBlock("memory", "x".repeat(20));
  await expect(blocks.appendContextBlock("memory", "y".repeat(7))).rejects.toEqual(
    refused("limit", /"memory" would have about 7 tokens, and the limit is 5.*about 2 tokens shorter/),
  );
  expect(blocks.getContextBlock("memory")?.content).toBe("x".repeat(20));
  await expect(blocks.replaceContextBlock("long", "x".repeat(MAX_CONTENT_CHARS + 1))).rejects.toEqual(
    refused("limit", /characters/),
  );
  expect(blocks.getContextBlock("long")?.content).toBe("");
});

test("tokens are counted by the function that is given", async () => {
  const { host } = await open();
  const blocks = new ContextBlocks(host, { session: "s", countTokens: (text) => text.length });
  blocks.withContext("memory", { maxTokens: 4 });
  expect(await blocks.replaceContextBlock("memory", "four")).toMatchObject({ tokens: 4 });
  await expect(blocks.replaceContextBlock("memory", "fives")).rejects.toEqual(refused("limit"));
});

test.each<[string, string, Record<string, unknown>, RegExp]>([
  ["a path", "../etc", {}, /cannot be called/],
  ["a separator", "a:b", {}, /cannot be called/],
  ["nothing", "", {}, /cannot be called/],
  ["a prototype", "__proto__", {}, /cannot be called/],
  ["a long name", "x".repeat(65), {}, /at most 64/],
  ["no bound at all", "memory", { maxTokens: Number.NaN }, /maxTokens/],
  ["a long description", "memory", { description: "x".repeat(MAX_DESCRIPTION_CHARS + 1) }, /description/],
  ["a provider that cannot be read", "memory", { provider: {} }, /get\(\)/],
  ["a provider that is none", "memory", { provider: null }, /get\(\)/],
  ["a shared provider", "memory", { shared: true, provider: staticContext("x") }, /provider/],
  ["a text with a provider", "memory", { initial: "x", provider: staticContext("x") }, /provider/],
])("%s is no block", async (_name, label, options, message) => {
  const { make } = await open();
  expect(() => make().withContext(label, options)).toThrow(refused("bad_config", message));
  await expect(make().addContext(label, options)).rejects.toEqual(refused("bad_config", message));
});

test("a block cannot be declared twice, and there is an end to how many there are", async () => {
  const { make } = await open();
  const blocks = make().withContext("b0");
  expect(() => blocks.withContext("b0")).toThrow(refused("bad_config", /twice/));
  for (let n = 1; n < MAX_BLOCKS; n++) blocks.withContext(`b${n}`);
  expect(() => blocks.withContext("more")).toThrow(refused("bad_config", /at most/));
  await expect(blocks.addContext("more")).rejects.toEqual(refused("limit", /at most/));
  expect(await blocks.addContext("b3", { description: "Another" })).toMatchObject({ description: "Another" });
  expect(blocks.size).toBe(MAX_BLOCKS);
});

test("what is added and taken away at run time is remembered, but for providers", async () => {
  const { make } = await open();
  const declare = () =>
    make()
      .withContext("memory")
      .withContext("rules", { provider: staticContext("Be brief.") });
  const first = declare();
  expect(await first.addContext("notes", { description: "User notes", maxTokens: 50 })).toMatchObject({ content: "" });
  expect(await first.addContext("live", { provider: staticContext("now") })).toMatchObject({ content: "now" });
  await first.replaceContextBlock("notes", "Call Bob.");
  expect(first.removeContext("memory")).toBe(true);
  expect(first.removeContext("memory")).toBe(false);
  const labels = (blocks: ContextBlocks) => blocks.getContextBlocks().map(({ label }) => label);
  expect(labels(first)).toEqual(["rules", "notes", "live"]);
  const second = declare();
  expect(labels(second)).toEqual(["rules", "notes"]);
  expect(second.getContextBlock("notes")).toMatchObject({ description: "User notes", content: "Call Bob." });
  expect(second.getContextBlock("memory")).toBeUndefined();
  await second.addContext("memory", { description: "Back" });
  expect(labels(declare())).toEqual(["memory", "rules", "notes"]);
  second.removeContext("notes");
  await second.addContext("notes");
  expect(second.getContextBlock("notes")?.content).toBe("Call Bob.");
  second.removeContext("notes", { erase: true });
  await second.addContext("notes");
  expect(second.getContextBlock("notes")?.content).toBe("");
});

test("an added block that gets a provider, or loses it, is the one that was added last", async () => {
  const { make } = await open();
  const blocks = make();
  await blocks.addContext("x", { provider: staticContext("from outside") });
  await blocks.addContext("x", { initial: "stored" });
  expect(blocks.getContextBlock("x")).toMatchObject({ kind: "writable", content: "stored" });
  await blocks.addContext("x", { provider: staticContext("from outside") });
  expect(blocks.getContextBlock("x")).toMatchObject({ kind: "read-only", content: "from outside" });
  expect(make().size).toBe(0);
});

test("a frozen prompt has the same bytes whatever is written, until it is refreshed, also in the next life", async () => {
  const { make } = await open();
  let reads = 0;
  const provider = { get: () => `read ${++reads} times` };
  const declare = () => make().withContext("memory").withContext("now", { provider }).withCachedPrompt();
  const first = declare();
  const before = await first.systemPrompt();
  expect(before).toContain("read 1 times");
  await first.replaceContextBlock("memory", "Ada likes tea.");
  await first.addContext("notes");
  first.removeContext("now");
  expect(await first.systemPrompt()).toBe(before);
  expect(await declare().systemPrompt()).toBe(before);
  expect(reads).toBe(1);
  const after = await first.refreshSystemPrompt();
  expect(after).toContain("Ada likes tea.");
  expect(after).toContain('name="notes"');
  expect(after).not.toContain('name="now"');
  expect(await declare().systemPrompt()).toBe(after);
});

test("another declaration of the code is another prompt", async () => {
  const { make } = await open();
  const memory = (description: string) => make().withContext("memory", { description }).withCachedPrompt();
  const before = await memory("Facts").systemPrompt();
  expect(await memory("Facts").systemPrompt()).toBe(before);
  expect(await memory("Facts about the user").systemPrompt()).toContain("Facts about the user");
});

test("without a frozen prompt it is made from what the blocks hold", async () => {
  const { make } = await open();
  const blocks = make().withContext("memory");
  expect(await blocks.systemPrompt()).toContain("(empty)");
  await blocks.replaceContextBlock("memory", "One.");
  expect(await blocks.systemPrompt()).toContain("One.");
  const frozen = await blocks.freezeSystemPrompt();
  await blocks.replaceContextBlock("memory", "Two.");
  expect(await blocks.systemPrompt()).toBe(frozen);
  expect(await make().withContext("memory").systemPrompt()).toContain("Two.");
});

test("two that freeze at the same time get the same prompt", async () => {
  const { make } = await open();
  let reads = 0;
  const declare = () =>
    make()
      .withContext("x", { provider: { get: async () => `${++reads}` } })
      .withCachedPrompt();
  const [a, b] = await Promise.all([declare().systemPrompt(), declare().systemPrompt()]);
  expect(a).toBe(b);
});

test("without blocks there is no prompt, and nothing is written", async () => {
  const { make, commits } = await open();
  const before = commits();
  expect(await make().systemPrompt()).toBe("");
  expect(await make().withCachedPrompt().systemPrompt()).toBe("");
  expect(make().tools()).toEqual({});
  expect(commits()).toBe(before);
});

test("a provider that cannot be read keeps what it gave last, also in the next life, and is reported", async () => {
  const { make, errors } = await open();
  const shelf = outside("Ada likes tea.");
  const declare = () => make().withContext("shelf", { provider: shelf.provider });
  const first = declare();
  expect(await first.systemPrompt()).toContain("Ada likes tea.");
  shelf.broken = true;
  shelf.text = "Ada likes coffee.";
  const during = await first.systemPrompt();
  expect(during).toContain("Ada likes tea.");
  expect(await declare().systemPrompt()).toBe(during);
  expect(errors).toEqual(Array(2).fill('Reading the block "shelf" failed: The shelf is locked.'));
  shelf.broken = false;
  expect(await first.systemPrompt()).toContain("Ada likes coffee.");
});

test("a provider that was never read says so, and one that is slow holds nobody up for ever", async () => {
  const { make, clock, errors } = await open();
  const blocks = make()
    .withContext("bad", { provider: { get: () => 42 as unknown as string } })
    .withContext("slow", { provider: { get: () => new Promise<string>(() => {}) } })
    .withContext("none", { provider: { get: () => null } });
  const made = blocks.systemPrompt();
  await clock.advance(10_000);
  const prompt = await made;
  expect(prompt.match(/\(could not be read yet\)/g)).toHaveLength(2);
  expect(prompt).toContain("(empty)");
  expect(errors.sort()).toEqual([
    expect.stringContaining('"bad" failed: its provider returned number') as string,
    expect.stringContaining('"slow" was given up') as string,
  ]);
});

test("of what is too long for a prompt the beginning is kept, with a note", async () => {
  const { make } = await open();
  const blocks = make().withContext("long", { provider: staticContext("x".repeat(MAX_CONTENT_CHARS + 1)) });
  const prompt = await blocks.systemPrompt();
  expect(prompt.length).toBeLessThan(MAX_CONTENT_CHARS + 1_000);
  expect(prompt).toMatch(/x\n\[Cut here: more than 100000 characters\.\]\n<\/block>$/);
});

test("a write that a provider refuses is told, and the block stays as it was", async () => {
  const { make } = await open();
  const shelf = outside("old");
  const blocks = make()
    .withContext("shelf", { provider: shelf.provider })
    .withContext("rules", { provider: staticContext("Be brief.") });
  await blocks.systemPrompt();
  shelf.broken = true;
  await expect(blocks.replaceContextBlock("shelf", "new")).rejects.toEqual(
    refused("provider_failed", /Writing the block "shelf" failed: The shelf is locked/),
  );
  await expect(blocks.appendContextBlock("shelf", "new")).rejects.toEqual(
    refused("provider_failed", /to add to it, failed: The shelf is locked/),
  );
  expect(blocks.getContextBlock("shelf")?.content).toBe("old");
  shelf.broken = false;
  expect(await blocks.appendContextBlock("shelf", "new")).toMatchObject({ content: "old\nnew" });
  await expect(blocks.replaceContextBlock("rules", "x")).rejects.toEqual(refused("read_only"));
  await expect(blocks.replaceContextBlock("nowhere", "x")).rejects.toEqual(refused("not_found"));
});

test("kinds follow from what a provider can do", async () => {
  const { make } = await open();
  const get = () => "";
  const kinds: [ContextProvider, string, boolean][] = [
    [{ get }, "read-only", false],
    [{ get, set: () => {} }, "writable", true],
    [{ get, load: () => "" }, "loadable", false],
    [{ get, load: () => "", set: () => {} }, "loadable", true],
    [{ get, search: () => [] }, "searchable", false],
    [{ get, search: () => [], set: () => {} }, "searchable", true],
    [{ get, search: () => [], load: () => "" }, "loadable", false],
  ];
  for (const [provider, kind, writable] of kinds) {
    expect(make().withContext("x", { provider }).getContextBlock("x")).toMatchObject({ kind, writable });
  }
});
