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
/** So many messages are on the page at most, of 5000. */
const MOST_DRAWN = 120;
const ELEMENTS_PER_MESSAGE = 40;
/** A hundred and more pages on a busy machine. */
const SLOW_MS = 120_000;

const stage = useStage(async () => ({ dir: await seedConversation(ID, messages), page: "production" }));

/** The places in the whole conversation of the seeded messages that are shown. */
const places = async (tab: Tab) =>
  (await tab.messages()).filter(({ id }) => /^m\d+$/.test(id)).map(({ id }) => Number(id.slice(1)));

/** How many messages the page has, drawn or not. */
const loaded = (tab: Tab) =>
  tab.page
    .locator(".stretch")
    .evaluateAll((all) => all.reduce((sum, at) => sum + Number(at.getAttribute("data-count")), 0));

/** The places of the messages that are in the window. */
async function placesInSight(tab: Tab): Promise<number[]> {
  return tab.page.evaluate(() => {
    const box = document.querySelector(".scroll")?.getBoundingClientRect() ?? new DOMRect();
    return [...document.querySelectorAll("[data-testid=message]")]
      .filter((at) => at.getBoundingClientRect().bottom > box.top && at.getBoundingClientRect().top < box.bottom)
      .map((at) => Number(at.getAttribute("data-id")?.slice(1)));
  });
}

async function isInSight(tab: Tab, id: string): Promise<boolean> {
  return (await placesInSight(tab)).includes(Number(id.slice(1)));
}

/**
 * Scrolls up, waits until there is again something to scroll to, and tells how far the first message in sight has moved,
 * and whether the window is full of messages.
 */
function goUp(tab: Tab, by: number): Promise<{ moved: number; shown: boolean }> {
  return tab.page.evaluate(async (step) => {
    const box = document.querySelector(".scroll") ?? document.body;
    const { top, bottom } = box.getBoundingClientRect();
    const first = [...box.querySelectorAll("[data-id]")].find((at) => at.getBoundingClientRect().bottom > top);
    const before = first?.getBoundingClientRect().top ?? Number.NaN;
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    box.scrollTop -= step;
    do {
      await frame();
      await frame();
    } while (box.scrollTop < 1500);
    const middle = document.elementFromPoint(innerWidth / 2, (top + bottom) / 2);
    return {
      moved: (first?.getBoundingClientRect().top ?? Number.NaN) - before,
      shown: middle?.closest("[data-id]") !== null,
    };
  }, by);
}

/** Goes to the top again and again until there is nothing more, and tells how much was on the page at most. */
function toTheTop(tab: Tab): Promise<{ messages: number; elements: number }> {
  return tab.page.evaluate(async () => {
    const box = document.querySelector(".scroll") ?? document.body;
    const most = { messages: 0, elements: 0 };
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    do {
      box.scrollTop = 0;
      await frame();
      most.messages = Math.max(most.messages, box.querySelectorAll("[data-id]").length);
      most.elements = Math.max(most.elements, box.querySelectorAll("*").length);
    } while (box.querySelector("[data-testid=load-older]") !== null);
    box.scrollTop = 0;
    await frame();
    await frame();
    await frame();
    return most;
  });
}

/** Fails unless the messages are the last ones before `end`, all of them, in order. */
function expectNoGap(shown: readonly number[], end = (shown.at(-1) ?? 0) + 1): void {
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
  expectNoGap(shown, COUNT);
  expect(shown.length).toBeGreaterThan(10);
  expect(shown.length).toBeLessThan(FEW_MESSAGES);
  expect(bytes()).toBeLessThan(FEW_BYTES);
  await soon(() =>
    tab.page.locator(".scroll").evaluate((at) => at.scrollHeight - at.scrollTop - at.clientHeight),
  ).toBeLessThan(2);
});

test("older ones come before the top is reached, and what is read stays in its place to the pixel", async () => {
  const { tab, bytes } = await openLong();
  const before = await loaded(tab);
  for (let round = 0; round < 25; round++) {
    const { moved, shown } = await goUp(tab, 700);
    expect(Math.abs(moved - 700)).toBeLessThanOrEqual(2);
    expect(shown).toBe(true);
  }
  await soon(() => loaded(tab)).toBeGreaterThanOrEqual(before + 40);
  expectNoGap(await placesInSight(tab));
  expect(bytes()).toBeLessThan(FEW_BYTES * 2);
});

test(
  "all are reached, the page stays small, and what comes in above does not move what is read",
  async () => {
    const { tab } = await openLong();
    const most = await toTheTop(tab);
    await soon(() => loaded(tab)).toBe(COUNT);
    await soon(async () => (await placesInSight(tab))[0]).toBe(0);
    expect(most.messages).toBeLessThan(MOST_DRAWN);
    expect(most.elements).toBeLessThan(MOST_DRAWN * ELEMENTS_PER_MESSAGE);
    // Down again in strides: every place has its messages, one behind the other.
    const box = tab.page.locator(".scroll");
    let last = -1;
    for (const share of [0.1, 0.25, 0.5, 0.75, 0.9, 1]) {
      await box.evaluate((at, part) => (at.scrollTop = at.scrollHeight * part), share);
      await soon(async () => (await placesInSight(tab)).length).toBeGreaterThan(2);
      const seen = await placesInSight(tab);
      expectNoGap(seen);
      expect(seen[0]).toBeGreaterThan(last);
      last = seen.at(-1) ?? last;
    }
    await soon(async () => (await placesInSight(tab)).at(-1)).toBe(COUNT - 1);
    await soon(async () => (await places(tab)).length).toBeLessThan(MOST_DRAWN);
  },
  SLOW_MS,
);

test("a search finds an old message and goes to it", async () => {
  const { tab } = await openLong();
  await tab.page.keyboard.press("Control+k");
  await tab.at("search-input").fill("assistant 4211");
  await soon(() => tab.at("hit").first().getAttribute("data-id")).toBe("m4211");
  await soon(() => tab.at("hit").first().locator("mark").allTextContents()).toContain("4211");
  await tab.page.keyboard.press("Enter");
  await tab.sees(() => tab.at("search-dialog").count(), 0);
  const found = tab.page.locator('[data-id="m4211"]');
  await found.waitFor();
  await soon(() => isInSight(tab, "m4211")).toBe(true);
  await soon(() => found.evaluate((at) => at === document.activeElement)).toBe(true);
  await tab.at("jump").click();
  await soon(async () => (await placesInSight(tab)).at(-1)).toBe(COUNT - 1);
});

test("a question is answered as anywhere else, and the conversation is not sent again for it", async () => {
  const { tab, bytes } = await openLong();
  const [before, start] = [await loaded(tab), bytes()];
  await tab.ask("Hello");
  await soon(() => tab.lastText()).toContain("I am the built-in guide");
  expect(bytes() - start).toBeLessThan(FEW_BYTES);
  const shown = await tab.messages();
  await soon(() => loaded(tab)).toBe(before + 2);
  expectNoGap(await places(tab), COUNT);
  const stored = await stage.app.stored(ID);
  expect(stored.length).toBe(COUNT + 2);
  expect(stored.slice(-2).map(({ id }) => id)).toEqual(shown.slice(-2).map(({ id }) => id));
  await tab.reload();
  await soon(async () => (await tab.messages()).slice(-2)).toEqual(shown.slice(-2));
});
