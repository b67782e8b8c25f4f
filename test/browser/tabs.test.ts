import { test } from "vitest";
import { longAnswer } from "../../examples/start/model/guide-text.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";
import { begins, words } from "./words.ts";

const stage = useStage({ delayMs: 3, page: "production" });
const LONG = words(longAnswer());
const said = async (tab: Tab) => words(await tab.answerText());

async function twoTabs(): Promise<[Tab, Tab]> {
  const tab = await stage.openTab();
  return [tab, await stage.openTab({ path: `/c/${tab.conversation()}` })];
}

test("what one tab asks, both see as it comes, under the same ids, and either can stop it", async () => {
  const [tab, other] = await twoTabs();
  await tab.send("Give me a long answer");
  await soon(async () => (await said(other)).length).toBeGreaterThan(20);
  await soon(() => other.at("stop").isVisible()).toBe(true);
  await soon(async () => begins(LONG, await said(other))).toBe(true);
  await other.at("stop").click();
  for (const one of [tab, other]) await one.settles();
  await tab.sees(() => tab.messages(), await other.messages());
  const stored = await stage.app.stored(tab.conversation());
  await soon(async () => (await tab.messages()).map(({ id }) => id)).toEqual(stored.map(({ id }) => id));
  await soon(async () => (await said(tab)).length).toBeLessThan(LONG.length);
});

test("two tabs of one window: the same", async () => {
  const tab = await stage.openTab();
  const other = await stage.openTab({ beside: tab, path: `/c/${tab.conversation()}` });
  await tab.ask("Show me some markdown");
  await other.sees(() => other.messages(), await tab.messages());
  await other.ask("Show me reasoning");
  await tab.sees(() => tab.messages(), await other.messages());
  await soon(() => tab.at("message").count()).toBe(4);
});

test("both ask at the same time: both are answered, in one order", async () => {
  const [tab, other] = await twoTabs();
  await Promise.all([tab.send("Show me some markdown"), other.send("Show me reasoning")]);
  for (const one of [tab, other]) {
    await soon(async () => (await one.messages()).map(({ role }) => role).join()).toMatch(/^(user,?|assistant,?){4}$/);
    await soon(() => one.answers().count()).toBe(2);
    await one.settles();
  }
  await tab.sees(() => tab.messages(), await other.messages());
  const stored = await stage.app.stored(tab.conversation());
  await tab.sees(
    async () => (await tab.messages()).map(({ id }) => id),
    stored.map(({ id }) => id),
  );
});

test("edit, regenerate and clear in one tab are seen in the other", async () => {
  const [tab, other] = await twoTabs();
  await tab.ask("Show me reasoning");
  await other.sees(() => other.messages(), await tab.messages());
  const before = (await other.messages()).at(-1)?.id;
  await tab.lastAnswer().getByTestId("regenerate").click();
  await soon(async () => (await other.messages()).at(-1)?.id).not.toBe(before);
  for (const one of [tab, other]) await one.settles();
  await other.sees(() => other.messages(), await tab.messages());
  await soon(() => other.at("message").count()).toBe(2);

  await tab.at("message").first().getByTestId("edit").click();
  await tab.at("edit-form").getByRole("textbox").fill("Which attachments can you read?");
  await tab.page.keyboard.press("Enter");
  await soon(() => other.lastText()).toContain("Send me one");
  for (const one of [tab, other]) await one.settles();
  await other.sees(() => other.messages(), await tab.messages());
  await soon(() => other.at("message").count()).toBe(2);

  await other.at("clear").click();
  await other.at("confirm-action").click();
  for (const one of [tab, other]) await one.at("empty").waitFor();
});

test("a tool of the page is answered by one tab only, and both go on with it", async () => {
  const [tab, other] = await twoTabs();
  await tab.send("Which time zone am I in?");
  for (const one of [tab, other]) {
    await soon(() => one.lastText()).toContain("Your browser says");
    await one.settles();
  }
  await tab.sees(() => tab.messages(), await other.messages());
  await soon(() => tab.answers().count()).toBe(1);
});

test("an error is told in the tab that asked; the other has the same messages", async () => {
  const [tab, other] = await twoTabs();
  await tab.send("Show me an error");
  await tab.at("error").waitFor();
  for (const one of [tab, other]) await one.settles();
  await other.sees(() => other.messages(), await tab.messages());
});
