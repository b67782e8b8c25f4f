import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { longAnswer } from "../../examples/start/model/guide-text.ts";
import { watchAnswer } from "./answer-watch.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import { LOOK_EVERY_MS, type Tab } from "./tab.ts";
import { begins, textOf, words } from "./words.ts";

/** A long answer takes some seconds, so that much can happen in the middle of it. */
const stage = useStage({ delayMs: 3, page: "production" });
const LONG = words(longAnswer());

const said = async (tab: Tab) => words(await tab.answerText());

/** Waits until at least so many words of the long answer are shown, and returns how many. */
async function speaks(tab: Tab, least = 40): Promise<number> {
  await soon(async () => (await said(tab)).length).toBeGreaterThanOrEqual(least);
  return (await said(tab)).length;
}

/**
 * Waits for the end of the answer. On the way there was never a gap, a word twice, or less than before: what `sizes`
 * tells begins with at least `least` words and only grows.
 */
async function onlyGrows(tab: Tab, sizes: () => Promise<number[]>, least = 0): Promise<void> {
  for (let now = await said(tab); now.length < LONG.length; now = await said(tab)) {
    expect(begins(LONG, now), now.join(" ")).toBe(true);
    await setTimeout(LOOK_EVERY_MS);
  }
  const seen = await sizes();
  expect(seen[0]).toBeGreaterThanOrEqual(least);
  expect(seen).toEqual(seen.toSorted((a, b) => a - b));
  expect(seen.at(-1)).toBe(LONG.length);
}

/** One question, one complete answer, the same here as in the store. */
async function expectWhole(...tabs: Tab[]): Promise<void> {
  for (const tab of tabs) {
    await tab.settles();
    await soon(async () => (await tab.messages()).map(({ role }) => role)).toEqual(["user", "assistant"]);
    await soon(() => said(tab)).toEqual(LONG);
    const shown = await tab.messages();
    const stored = await stage.app.stored(tab.conversation());
    expect(stored.map(({ id }) => id)).toEqual(shown.map(({ id }) => id));
    expect(textOf(stored[1])).toBe(longAnswer());
    await soon(() => tab.at("error").count()).toBe(0);
  }
}

test("a reload in the middle of an answer: it goes on without a gap and without a word twice", async () => {
  const tab = await stage.openTab();
  const sizes = await watchAnswer(tab.page);
  await tab.send("Give me a long answer");
  const first = await speaks(tab);
  await tab.reload();
  await onlyGrows(tab, sizes, first);
  await expectWhole(tab);
});

test("reloads, again and again, while it streams", async () => {
  const tab = await stage.openTab();
  const sizes = await watchAnswer(tab.page);
  await tab.send("Give me a long answer");
  let seen = 0;
  for (const least of [5, 60, 120, 180]) {
    seen = Math.max(seen, await speaks(tab, least));
    await tab.reload();
  }
  await onlyGrows(tab, sizes, seen);
  await expectWhole(tab);
});

test("a tab is closed in the middle; one that is opened later has it all", async () => {
  const tab = await stage.openTab();
  await tab.send("Give me a long answer");
  const first = await speaks(tab);
  const path = `/c/${tab.conversation()}`;
  await tab.page.close();
  const later = await stage.openTab({ path });
  await onlyGrows(later, await watchAnswer(later.page), first);
  await expectWhole(later);
});

test("the host is killed in the middle and started again: one answer, complete, in both tabs", async () => {
  const tab = await stage.openTab();
  const sizes = await watchAnswer(tab.page);
  await tab.send("Give me a long answer");
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  const otherSizes = await watchAnswer(other.page);
  await Promise.all([speaks(tab), speaks(other)]);
  for (const one of [tab, other]) one.expectsLoss();
  await stage.app.kill();
  await tab.at("offline").waitFor();
  await soon(async () => (await said(tab)).length).toBeLessThan(LONG.length);
  await stage.app.restart();
  await Promise.all([onlyGrows(tab, sizes), onlyGrows(other, otherSizes)]);
  await tab.at("offline").waitFor({ state: "hidden" });
  await expectWhole(tab, other);
});

test("the host is killed twice", async () => {
  const tab = await stage.openTab();
  const sizes = await watchAnswer(tab.page);
  tab.expectsLoss();
  await tab.send("Give me a long answer");
  let seen = await speaks(tab);
  for (const more of [60, 60]) {
    await stage.app.restart();
    seen = await speaks(tab, seen + more);
  }
  await onlyGrows(tab, sizes);
  await expectWhole(tab);
});

test("the connection is gone for a while in the middle: said so, and caught up afterwards", async () => {
  const link = await stage.openLink();
  const tab = await stage.openTab({ through: link });
  const sizes = await watchAnswer(tab.page);
  await tab.send("Give me a long answer");
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await speaks(tab);
  tab.expectsLoss();
  await link.cut();
  const cut = (await said(tab)).length;
  await tab.at("offline").waitFor();
  await speaks(other, cut + 100);
  await soon(async () => (await said(tab)).length).toBeLessThan(LONG.length);
  await link.mend();
  await onlyGrows(tab, sizes);
  await tab.at("offline").waitFor({ state: "hidden" });
  await expectWhole(tab, other);
});

test("nothing gets through for a while, and nobody is told: what was held back arrives", async () => {
  const link = await stage.openLink();
  const tab = await stage.openTab({ through: link });
  const sizes = await watchAnswer(tab.page);
  await tab.send("Give me a long answer");
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await speaks(tab);
  link.hold();
  const cut = (await said(tab)).length;
  await speaks(other, cut + 100);
  link.release();
  await onlyGrows(tab, sizes);
  await expectWhole(tab, other);
});

test("a message that is sent while offline goes out when the connection is back, once", async () => {
  const link = await stage.openLink();
  const tab = await stage.openTab({ through: link });
  await tab.ask("Hello");
  tab.expectsLoss();
  await link.cut();
  await tab.at("offline").waitFor();
  await tab.send("Show me reasoning");
  await tab.sees(async () => (await tab.messages()).length, 3);
  await link.mend();
  await tab.at("reasoning").waitFor();
  await tab.settles();
  const shown = await tab.messages();
  expect(shown.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
  expect((await stage.app.stored(tab.conversation())).map(({ id }) => id)).toEqual(shown.map(({ id }) => id));
});

test("what is cleared while a tab is away, and the host forgets that it was there, is cleared in that tab too", async () => {
  const link = await stage.openLink();
  const tab = await stage.openTab({ through: link });
  await tab.ask("Show me reasoning");
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await other.sees(() => other.answers().count(), 1);
  for (const one of [tab, other]) one.expectsLoss();
  await link.cut();
  await tab.at("offline").waitFor();
  await other.at("clear").click();
  await other.at("confirm-action").click();
  await other.at("empty").waitFor();
  await soon(() => stage.app.stored(tab.conversation())).toEqual([]);
  await stage.app.restart();
  await link.mend();
  await tab.at("empty").waitFor();
  await soon(() => tab.at("message").count()).toBe(0);
});
