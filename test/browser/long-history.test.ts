import { expect, test } from "vitest";
import type { AssistantMessage } from "../../examples/start/contract.ts";
import { seedConversation } from "./seed.ts";
import { useStage } from "./setup.ts";
import { countSocketBytes } from "./socket-bytes.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const COUNT = 5000;
const ID = "long-history";
const WORDS = "Some words that make this message about as long as messages are. ".repeat(10);
const messages = Array.from({ length: COUNT }, (_, at): AssistantMessage => {
  const role = at % 2 === 0 ? "user" : "assistant";
  return { id: `m${at}`, role, parts: [{ type: "text", text: `${role} ${at}. ${WORDS}` }] };
});
const ALL_BYTES = Buffer.byteLength(JSON.stringify(messages));
/** What a part of the conversation may cost: a small part. */
const FEW_BYTES = ALL_BYTES / 10;
const FEW_MESSAGES = 200;

const stage = useStage(async () => ({ dir: await seedConversation(ID, messages) }));

/** The places in the whole conversation of the seeded messages that are shown. */
const places = async (tab: Tab) =>
  (await tab.messages()).filter(({ id }) => /^m\d+$/.test(id)).map(({ id }) => Number(id.slice(1)));

/** Fails unless the messages are the last ones before `end`, all of them, in order. */
function expectNoGap(shown: readonly number[], end = COUNT): void {
  expect(shown).toEqual(Array.from({ length: shown.length }, (_, at) => end - shown.length + at));
}

async function openLong(): Promise<{ tab: Tab; bytes: () => number }> {
  const tab = await stage.openTab();
  const bytes = await countSocketBytes(tab.page);
  await tab.open(`/c/${ID}`);
  await soon(async () => (await places(tab)).at(-1)).toBe(COUNT - 1);
  return { tab, bytes };
}

test("only the newest messages come at first, and the end of them is in sight", async () => {
  const { tab, bytes } = await openLong();
  const shown = await places(tab);
  expectNoGap(shown);
  expect(shown.length).toBeGreaterThan(10);
  expect(shown.length).toBeLessThan(FEW_MESSAGES);
  expect(bytes()).toBeLessThan(FEW_BYTES);
  await soon(() =>
    tab.page.locator(".scroll").evaluate((at) => at.scrollHeight - at.scrollTop - at.clientHeight),
  ).toBeLessThan(2);
});

test("going up brings older ones, a page at a time, without a gap, and what is read stays in its place", async () => {
  const { tab, bytes } = await openLong();
  const box = tab.page.locator(".scroll");
  let before = await places(tab);
  for (let round = 0; round < 3; round++) {
    await box.hover();
    const top = () => tab.page.locator(`[data-id="m${before[0]}"]`).evaluate((at) => at.getBoundingClientRect().top);
    await box.evaluate((at) => (at.scrollTop = 0));
    await soon(async () => (await places(tab)).length).toBeGreaterThan(before.length);
    // What was at the top of the window is still in it: not thrown to the new top, and not to the end.
    await soon(top).toBeGreaterThan(-50);
    const height = await tab.page.evaluate(() => innerHeight);
    await soon(top).toBeLessThan(height);
    const now = await places(tab);
    expectNoGap(now);
    before = now;
  }
  expect(before.length).toBeLessThan(COUNT / 2);
  expect(bytes()).toBeLessThan(FEW_BYTES * 3);
});

test("a question is answered as anywhere else, and the conversation is not sent again for it", async () => {
  const { tab, bytes } = await openLong();
  const [before, start] = [(await places(tab)).length, bytes()];
  await tab.ask("Hello");
  expect(await tab.lastText()).toContain("I am the built-in guide");
  expect(bytes() - start).toBeLessThan(FEW_BYTES);
  const shown = await tab.messages();
  expect(shown.length).toBe(before + 2);
  expectNoGap(await places(tab));
  const stored = await stage.app.stored(ID);
  expect(stored.length).toBe(COUNT + 2);
  expect(stored.slice(-2).map(({ id }) => id)).toEqual(shown.slice(-2).map(({ id }) => id));
  await tab.reload();
  await soon(async () => (await tab.messages()).slice(-2)).toEqual(shown.slice(-2));
});
