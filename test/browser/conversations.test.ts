import { expect, test } from "vitest";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const stage = useStage();

const titles = (tab: Tab) => tab.at("conversation-item").locator(".row-title").allTextContents();
const row = (tab: Tab, title: string) => tab.at("conversation-item").filter({ hasText: title });

test("several conversations, newest first, each with its title; going to and fro keeps them apart", async () => {
  const tab = await stage.openTab();
  await tab.ask("Hello there");
  const first = tab.conversation();
  await tab.at("new-conversation").click();
  await tab.at("empty").waitFor();
  await soon(() => tab.conversation()).not.toBe(first);
  const long = `Tell me ${"a lot ".repeat(20)}of things`;
  await tab.ask(long);
  await soon(() => titles(tab)).toEqual([expect.stringMatching(/^Tell me a lot .*…$/), "Hello there"]);
  const second = tab.conversation();

  await row(tab, "Hello there").getByRole("link").click();
  await soon(async () => (await tab.messages())[0]?.text).toBe("Hello there");
  await soon(() => tab.conversation()).toBe(first);
  await soon(() => row(tab, "Hello there").getByRole("link").getAttribute("aria-current")).toBe("page");
  await tab.page.goBack();
  await soon(async () => (await tab.messages())[0]?.text).toBe(long.trim());
  await soon(() => tab.conversation()).toBe(second);
  await tab.page.goForward();
  await soon(async () => (await tab.messages())[0]?.text).toBe("Hello there");
  // Something happens in the older one: it is the newest now.
  await tab.ask("Show me reasoning");
  await soon(async () => (await titles(tab))[0]).toBe("Hello there");
});

test("a new conversation that nothing was said in is not listed, and New does not pile up", async () => {
  const tab = await stage.openTab();
  await tab.at("new-conversation").click();
  const id = tab.conversation();
  await tab.at("new-conversation").click();
  await soon(() => tab.conversation()).toBe(id);
  await soon(() => row(tab, "New conversation").count()).toBe(0);
});

test("rename: Enter keeps it and Escape does not, another tab sees it, and it is never overwritten", async () => {
  const tab = await stage.openTab();
  await tab.ask("Name me later");
  const other = await stage.openTab();
  await row(tab, "Name me later").hover();
  await row(tab, "Name me later").getByTestId("rename").click();
  await tab.at("rename-input").fill("Wrong");
  await tab.page.keyboard.press("Escape");
  await tab.sees(() => tab.at("rename-input").count(), 0);
  await soon(() => row(tab, "Name me later").count()).toBe(1);

  await row(tab, "Name me later").hover();
  await row(tab, "Name me later").getByTestId("rename").click();
  await tab.at("rename-input").fill("My plans");
  await tab.page.keyboard.press("Enter");
  for (const one of [tab, other]) await soon(() => row(one, "My plans").count()).toBe(1);
  await soon(() => tab.page.title()).toBe("My plans · Perdure");
  await tab.ask("Say more");
  await soon(() => row(tab, "My plans").count()).toBe(1);
  await soon(() => row(tab, "Name me later").count()).toBe(0);
});

test("delete asks first; then it is gone, for a tab that has it open too", async () => {
  const tab = await stage.openTab();
  await tab.ask("Forget me");
  const id = tab.conversation();
  const other = await stage.openTab({ path: `/c/${id}` });
  await tab.sees(() => other.answers().count(), 1);
  await row(tab, "Forget me").hover();
  await row(tab, "Forget me").getByTestId("delete").click();
  await soon(() => tab.at("confirm").textContent()).toContain("Delete “Forget me”?");
  await tab.at("confirm-cancel").click();
  await soon(() => row(tab, "Forget me").count()).toBe(1);

  await row(tab, "Forget me").hover();
  await row(tab, "Forget me").getByTestId("delete").click();
  await tab.at("confirm-action").click();
  for (const one of [tab, other]) await soon(() => row(one, "Forget me").count()).toBe(0);
  await tab.at("empty").waitFor();
  await soon(() => tab.conversation()).not.toBe(id);
  await other.at("closed").waitFor();
  await soon(() => other.at("message").count()).toBe(0);
  await other.at("closed").getByRole("button", { name: "Start a new one" }).click();
  await other.at("empty").waitFor();
  expect(await stage.app.stored(id)).toEqual([]);
});

test("a link to a conversation that nobody began works; one to something else is told in words", async () => {
  const tab = await stage.openTab({ path: "/c/brand-new" });
  await tab.ask("Hello from a link");
  await soon(() => row(tab, "Hello from a link").count()).toBe(1);
  await soon(() => tab.conversation()).toBe("brand-new");

  const lost = await stage.openTab({ path: "/c/not%20an%20id", waitsFor: "closed" });
  await soon(() => lost.at("closed").textContent()).toMatch(/This conversation is/);
  await lost.at("closed").getByRole("button", { name: "Start a new one" }).click();
  await lost.at("empty").waitFor();
});

test("the theme goes around, holds through a reload, and follows the system when told to", async () => {
  const tab = await stage.openTab({ context: { colorScheme: "light" } });
  const background = () => tab.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  const light = await background();
  await tab.at("theme").click();
  await soon(background).toBe(light);
  await tab.at("theme").click();
  const dark = await background();
  expect(dark).not.toBe(light);
  await tab.reload();
  await soon(background).toBe(dark);
  await tab.at("theme").click();
  await soon(background).toBe(light);
  await tab.page.emulateMedia({ colorScheme: "dark" });
  await soon(background).toBe(dark);
});
