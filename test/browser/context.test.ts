import { expect, test } from "vitest";
import { expectAccessible } from "./accessibility.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const stage = useStage();

const percent = async (tab: Tab) => Number(await tab.at("meter").getAttribute("data-percent"));
const ids = async (tab: Tab) => (await tab.messages()).map(({ id }) => id);

/** A conversation that fills more than half of the guide's window. */
async function fill(tab: Tab): Promise<void> {
  await tab.ask("Please remember this");
  for (let round = 0; round < 2; round++) await tab.ask("Show me compaction");
  await soon(() => percent(tab)).toBeGreaterThan(50);
}

/** Opens what fills the window, and from there the dialog that summarises. */
async function openCompact(tab: Tab): Promise<void> {
  await tab.at("meter").click();
  await tab.at("compact").click();
  await tab.at("compact-dialog").waitFor();
}

test("the meter grows with the conversation, and says what fills the window", async () => {
  const tab = await stage.openTab();
  await soon(() => tab.at("meter").count()).toBe(0);
  await tab.ask("Please remember this");
  await soon(() => percent(tab)).toBeGreaterThan(0);
  const before = await percent(tab);
  await tab.ask("Give me a long answer");
  await soon(() => percent(tab)).toBeGreaterThan(before + 10);
  await soon(() => tab.at("meter").textContent()).toMatch(/^\d+ % of the window, [\d,]+ of 6,000 tokens$/);

  await tab.at("meter").click();
  await tab.at("context-used").waitFor();
  const kinds = await tab.at("context-kind").evaluateAll((all) => all.map((one) => one.getAttribute("data-kind")));
  expect(kinds).toEqual(["system", "tools", "message"]);
  const parts = await tab.page.locator(".context-kinds > div:not([data-kind=free]) dd").allTextContents();
  const sum = parts.reduce((all, part) => all + Number(part.replaceAll(",", "")), 0);
  await soon(() => tab.at("context-used").textContent()).toContain(`${sum.toLocaleString("en")} of 6,000 tokens`);
  await expectAccessible(tab.page);
  await tab.page.keyboard.press("Escape");
  await tab.sees(() => tab.at("context").count(), 0);
  await soon(() => tab.page.evaluate(() => document.activeElement?.getAttribute("data-testid"))).toBe("meter");
});

test("a summary is shown before it is used, can be changed, stands in the conversation, and is taken back", async () => {
  const tab = await stage.openTab();
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await fill(tab);
  const [before, full] = [await ids(tab), await percent(tab)];
  await openCompact(tab);
  await tab.at("compact-focus").fill("the colour of the door");
  await tab.at("compact-write").click();
  const text = tab.at("compact-text");
  await text.waitFor();
  await soon(() => text.inputValue()).toContain("the colour of the door");
  await soon(() => tab.at("compact-size").textContent()).toMatch(/[\d,]+ tokens become about [\d,]+\./);
  await soon(() => tab.at("summary").count()).toBe(0);
  await text.fill("The door is green.");
  await tab.at("compact-apply").click();
  await tab.sees(() => tab.at("compact-dialog").count(), 0);

  for (const one of [tab, other]) {
    await one.at("summary").waitFor();
    await soon(() => one.at("summary").textContent()).toContain("4 messages are summarised for the model");
    await soon(() => ids(one)).toEqual(before);
  }
  // It stands behind the last message that it covers.
  const above = tab.at("summary").locator("xpath=preceding-sibling::article[1]");
  await soon(() => above.getAttribute("data-id")).toBe(before[3]);
  await soon(() => percent(tab)).toBeLessThan(full - 10);
  await soon(() => tab.at("meter").getAttribute("data-estimated")).toBe("true");
  await tab.at("summary-open").click();
  await soon(() => tab.page.locator(".summary-text").textContent()).toContain("The door is green.");
  await expectAccessible(tab.page);

  // The model goes on from it, and the page has it again after a reload.
  await tab.ask("Hello");
  await soon(() => tab.at("meter").getAttribute("data-estimated")).toBe(null);
  await tab.reload();
  await tab.at("summary").waitFor();
  await tab.at("summary-undo").click();
  for (const one of [tab, other]) await one.sees(() => one.at("summary").count(), 0);
  await soon(async () => (await ids(tab)).slice(0, before.length)).toEqual(before);
});

test("when the window is full it happens by itself; a pinned message is not summarised", async () => {
  const tab = await stage.openTab();
  await tab.ask("Please remember this");
  await tab.at("message").first().hover();
  await tab.at("message").first().getByTestId("pin").click();
  await tab.sees(() => tab.page.locator(".message[data-pinned]").count(), 1);
  await soon(() => tab.at("message").first().getByTestId("pin").getAttribute("aria-pressed")).toBe("true");
  await tab.ask("Show me compaction");
  await tab.ask("Show me compaction");
  await soon(() => tab.at("summary").count()).toBe(0);
  await tab.ask("Show me compaction");
  await tab.ask("Hello");
  await tab.at("summary").first().waitFor();
  await soon(() => tab.at("message").count()).toBe(10);
  await tab.at("meter").click();
  await tab.at("context-used").waitFor();
  const kinds = () => tab.at("context-kind").evaluateAll((all) => all.map((one) => one.getAttribute("data-kind")));
  await soon(kinds).toEqual(["system", "tools", "summary", "carried", "pinned", "message"]);
  await tab.at("context-close").click();
  await tab.at("message").first().getByTestId("pin").click();
  await tab.sees(() => tab.page.locator(".message[data-pinned]").count(), 0);
});

test("what cannot be done is told in words: there is too little to summarise", async () => {
  const tab = await stage.openTab();
  await tab.ask("Hello");
  await openCompact(tab);
  await tab.at("compact-write").click();
  await tab.at("compact-problem").waitFor();
  await soon(async () => ((await tab.at("compact-problem").textContent()) ?? "").length).toBeGreaterThan(10);
  await soon(() => tab.at("compact-focus").isEditable()).toBe(true);
  await expectAccessible(tab.page);
  await tab.page.keyboard.press("Escape");
  await tab.sees(() => tab.at("compact-dialog").count(), 0);
});

test("search: marked words, by keys alone, and a word for nothing found", async () => {
  const tab = await stage.openTab();
  await soon(() => tab.at("search").isDisabled()).toBe(true);
  await tab.ask("Please remember the heron");
  await tab.ask("Show me some markdown");
  await tab.at("search").click();
  await tab.at("search-input").fill("zebra");
  await tab.sees(() => tab.at("search-status").textContent(), "Nothing was found.");
  await tab.at("search-input").fill("heron");
  await tab.sees(() => tab.at("search-status").textContent(), "One message");
  await soon(() => tab.at("hit").locator("mark").textContent()).toBe("heron");
  await soon(() => tab.at("hit").locator(".hit-head span").textContent()).toBe("You");
  await expectAccessible(tab.page);
  await tab.page.keyboard.press("ArrowDown");
  await soon(() => tab.page.evaluate(() => document.activeElement?.getAttribute("data-testid"))).toBe("hit");
  await tab.page.keyboard.press("Enter");
  await tab.sees(() => tab.at("search-dialog").count(), 0);
  const [first] = await tab.messages();
  await tab.sees(() => tab.page.evaluate(() => document.activeElement?.getAttribute("data-id")), first?.id);
  await soon(() =>
    tab
      .at("message")
      .first()
      .evaluate((at) => at.getBoundingClientRect().top),
  ).toBeGreaterThan(0);
});

/** Searches and opens the only hit. */
async function find(tab: Tab, words: string): Promise<void> {
  await tab.page.keyboard.press("Control+k");
  await tab.at("search-input").fill(words);
  await tab.sees(() => tab.at("search-status").textContent(), "One message");
  await tab.page.keyboard.press("Enter");
}

test("search goes to the words in a long message, to another version, and to a copy", async () => {
  const tab = await stage.openTab();
  await tab.ask("Please remember the heron");
  await tab.ask("Show me compaction");
  await find(tab, "is only here");
  const inSight = () =>
    tab.page.evaluate(() => {
      const [range] = CSS.highlights.get("found") ?? [];
      const box = document.querySelector(".scroll")?.getBoundingClientRect();
      const top = range instanceof Range ? range.getBoundingClientRect().top : Number.NaN;
      return box !== undefined && top > box.top && top < box.bottom;
    });
  await soon(inSight).toBe(true);

  await tab.at("message").first().hover();
  await tab.at("message").first().getByTestId("edit").click();
  await tab.at("edit-form").getByRole("textbox").fill("Please remember the stork");
  await tab.page.keyboard.press("Enter");
  await tab.sees(async () => (await tab.messages()).map(({ role }) => role).join(), "user,assistant");
  await tab.settles();
  await find(tab, "heron");
  await tab.sees(async () => (await tab.messages())[0]?.text, "Please remember the heron");
  await tab.sees(() => tab.at("branches").getAttribute("data-place"), "1/2");

  await tab.at("message").nth(1).hover();
  await tab.at("message").nth(1).getByTestId("fork").click();
  await tab.at("copies").waitFor();
  await tab.sees(() => tab.at("message").count(), 2);
  await tab.ask("Please remember the crane");
  await tab.at("copies").selectOption("Original");
  await tab.sees(async () => (await tab.messages()).some(({ text }) => text.includes("crane")), false);
  await find(tab, "crane");
  await tab.sees(
    async () => (await tab.messages()).map(({ text }) => text).includes("Please remember the crane"),
    true,
  );
  await soon(() => tab.at("copies").inputValue()).not.toBe("");
  await tab.sees(() => tab.at("looking").count(), 0);
});
