import { expect, test } from "vitest";
import { expectAccessible } from "./accessibility.ts";
import { expectFits, expectReachable, PHONE } from "./phone.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const stage = useStage();

/** Which version each message is that has several. */
const places = (tab: Tab) =>
  tab.at("branches").evaluateAll((all) => all.map((one) => one.getAttribute("data-place") ?? ""));
const texts = async (tab: Tab) => (await tab.messages()).map(({ text }) => text);
const focus = (tab: Tab) => tab.page.evaluate(() => document.activeElement?.getAttribute("data-testid"));

async function edit(tab: Tab, at: number, text: string): Promise<void> {
  const message = tab.at("message").nth(at);
  await message.hover();
  await message.getByTestId("edit").click();
  await tab.at("edit-form").getByRole("textbox").fill(text);
  await tab.page.keyboard.press("Enter");
}

/** A conversation in which the first question has two versions, of which the second is shown. */
async function twoWays(): Promise<Tab> {
  const tab = await stage.openTab();
  await tab.ask("Please remember this");
  await tab.ask("How do I search?");
  await edit(tab, 0, "What do versions look like?");
  await soon(() => tab.lastText()).toContain("Nothing that was said here is lost");
  await tab.settles();
  await tab.sees(() => places(tab), ["2/2"]);
  return tab;
}

test("an answer that is given again is a second version; the keys go back and forth, and the focus stays", async () => {
  const tab = await stage.openTab();
  await tab.ask("Please remember this");
  await soon(() => places(tab)).toEqual([]);
  const [, first] = await tab.messages();
  await tab.lastAnswer().getByTestId("regenerate").click();
  await tab.sees(() => places(tab), ["2/2"]);
  await tab.settles();
  const second = (await tab.messages()).at(-1);
  expect(second?.id).not.toBe(first?.id);

  await tab.at("previous-branch").focus();
  await tab.page.keyboard.press("Enter");
  await tab.sees(async () => (await tab.messages()).at(-1)?.id, first?.id);
  await tab.sees(() => places(tab), ["1/2"]);
  await tab.sees(() => focus(tab), "previous-branch");
  await soon(() => tab.at("branches").getAttribute("aria-label")).toBe("Version 1 of 2");
  await soon(() => tab.at("previous-branch").getAttribute("aria-disabled")).toBe("true");
  // At the first there is nothing before it.
  await tab.page.keyboard.press("Enter");
  await tab.page.keyboard.press("Tab");
  await tab.page.keyboard.press("Enter");
  await tab.sees(async () => (await tab.messages()).at(-1)?.id, second?.id);
  await tab.sees(() => focus(tab), "next-branch");

  await tab.lastAnswer().getByTestId("regenerate").click();
  await tab.sees(() => places(tab), ["3/3"]);
  await tab.settles();
  await expectAccessible(tab.page);
});

test("an edit is another version: the old one stays, with all that came after it", async () => {
  const tab = await twoWays();
  await soon(() => tab.at("message").count()).toBe(2);
  await tab.at("previous-branch").click();
  await tab.sees(() => places(tab), ["1/2"]);
  await tab.sees(async () => (await tab.messages()).map(({ role }) => role).join(), "user,assistant,user,assistant");
  const old = await texts(tab);
  expect([old[0], old[2]]).toEqual(["Please remember this", "How do I search?"]);
  // What is said now is said on this branch.
  await tab.ask("Hello");
  await soon(async () => (await texts(tab)).slice(0, 4)).toEqual(old);
  await tab.at("next-branch").first().click();
  await tab.sees(async () => (await texts(tab))[0], "What do versions look like?");
  await soon(() => tab.at("message").count()).toBe(2);
});

test("two tabs on two branches: neither moves the other, each goes on, and a reload stays there", async () => {
  const tab = await twoWays();
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await other.sees(() => places(other), ["2/2"]);
  await other.at("previous-branch").click();
  await other.sees(() => places(other), ["1/2"]);
  const here = await texts(tab);
  await other.ask("Show me reasoning");
  await soon(() => texts(tab)).toEqual(here);
  const there = await texts(other);
  await tab.ask("Hello");
  await soon(() => texts(other)).toEqual(there);
  await soon(async () => (await texts(tab)).slice(0, 2)).toEqual(here);
  await other.reload();
  await other.sees(() => texts(other), there);
  await tab.reload();
  await soon(async () => (await texts(tab)).at(-1)).toContain("I am the built-in guide");
  await soon(async () => (await texts(tab)).slice(0, 2)).toEqual(here);
});

test("a copy goes on from a message and leaves the original alone; the bar goes from one to the other", async () => {
  const tab = await stage.openTab();
  await tab.ask("Please remember this");
  await tab.ask("How do I search?");
  const original = await texts(tab);
  await soon(() => tab.at("copies").count()).toBe(0);
  await tab.at("message").nth(1).hover();
  await tab.at("message").nth(1).getByTestId("fork").click();
  await tab.sees(() => texts(tab), original.slice(0, 2));
  await tab.sees(() => tab.at("copies").locator("option").allTextContents(), ["Original", "Copy 1"]);
  await tab.ask("Show me versions");
  const copy = await texts(tab);
  await tab.reload();
  await tab.sees(() => texts(tab), copy);
  await expectAccessible(tab.page);
  await tab.at("copies").selectOption("Original");
  await tab.sees(() => texts(tab), original);
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await other.sees(() => texts(other), original);
  await other.at("copies").selectOption("Copy 1");
  await other.sees(() => texts(other), copy);
  await soon(() => texts(tab)).toEqual(original);
});

test("on a phone the versions fit, and a finger can hit the buttons", async () => {
  const tab = await stage.openTab({ context: PHONE });
  await tab.ask("Please remember this");
  await tab.at("message").last().getByTestId("regenerate").tap();
  await tab.sees(() => places(tab), ["2/2"]);
  await tab.settles();
  for (const id of ["previous-branch", "next-branch", "search", "meter"]) await expectReachable(tab.at(id));
  await expectReachable(tab.lastAnswer().getByTestId("pin"));
  await expectFits(tab);
  await tab.at("previous-branch").tap();
  await tab.sees(() => places(tab), ["1/2"]);
  await expectFits(tab);
});
