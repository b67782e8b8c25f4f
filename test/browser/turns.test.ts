import { expect, test } from "vitest";
import { longAnswer } from "../../examples/start/model/guide-text.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";
import { begins, textOf, words } from "./words.ts";

/** Slow enough to do something in the middle of an answer. */
const stage = useStage({ delayMs: 5, page: "production" });
const LONG = words(longAnswer());

/** Waits until some of a long answer is there. */
async function speaks(tab: Tab): Promise<void> {
  await soon(async () => words(await tab.answerText()).length).toBeGreaterThan(20);
}

test.each(["button", "Escape"])("stop by %s: what was said stays as it is, here and in the store", async (how) => {
  const tab = await stage.openTab();
  await tab.send("Give me a long answer");
  await speaks(tab);
  if (how === "button") await tab.at("stop").click();
  else await tab.page.keyboard.press("Escape");
  await tab.settles();
  const said = words(textOf((await stage.app.stored(tab.conversation())).at(-1)));
  expect(said.length).toBeLessThan(LONG.length);
  expect(begins(LONG, said)).toBe(true);
  await tab.sees(async () => words(await tab.answerText()), said);
  await tab.reload();
  await tab.sees(async () => words(await tab.answerText()), said);
  await tab.ask("Hello");
  await soon(async () => (await tab.messages()).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
});

test("regenerate: another answer in the place of the last", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me reasoning");
  const [question, first] = await tab.messages();
  await tab.lastAnswer().getByTestId("regenerate").click();
  await soon(async () => (await tab.messages()).at(-1)?.id).not.toBe(first?.id);
  await soon(async () => (await tab.messages()).at(-1)?.text).toBe(first?.text);
  await tab.settles();
  const shown = await tab.messages();
  expect(shown.map(({ id, role }) => [id === question?.id, role])).toEqual([
    [true, "user"],
    [false, "assistant"],
  ]);
  expect((await stage.app.stored(tab.conversation())).map(({ id }) => id)).toEqual(shown.map(({ id }) => id));
});

test("edit: the question changes in its place, what came after it is answered anew", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me reasoning");
  await tab.ask("Hello");
  const first = tab.at("message").first();
  await first.getByTestId("edit").click();
  const form = tab.at("edit-form");
  await soon(() => form.getByRole("textbox").inputValue()).toBe("Show me reasoning");
  await tab.page.keyboard.press("Escape");
  await tab.sees(() => form.count(), 0);
  await soon(() => tab.at("message").count()).toBe(4);

  await first.getByTestId("edit").click();
  await form.getByRole("textbox").fill("Which attachments can you read?");
  await form.getByRole("button", { name: "Send" }).click();
  await soon(() => tab.lastText()).toContain("Send me one");
  await tab.settles();
  const shown = await tab.messages();
  expect(shown.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(shown[0]?.text).toBe("Which attachments can you read?");
  expect((await stage.app.stored(tab.conversation())).map(({ id }) => id)).toEqual(shown.map(({ id }) => id));
});

test("clear asks first, then forgets, also while an answer streams", async () => {
  const tab = await stage.openTab();
  await soon(() => tab.at("clear").isDisabled()).toBe(true);
  await tab.send("Give me a long answer");
  await speaks(tab);
  await tab.at("clear").click();
  await tab.at("confirm-cancel").click();
  await tab.sees(() => tab.at("confirm").count(), 0);
  await soon(() => tab.at("message").count()).toBe(2);
  await tab.at("clear").click();
  await tab.at("confirm-action").click();
  await tab.at("empty").waitFor();
  await tab.settles();
  expect(await stage.app.stored(tab.conversation())).toEqual([]);
  await tab.reload();
  await tab.at("empty").waitFor();
  await soon(() => tab.at("message").count()).toBe(0);
});

test("a message that is sent while an answer streams waits and is answered next", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me some markdown");
  await speaks(tab);
  await tab.send("Show me reasoning");
  await tab.sees(async () => (await tab.messages()).filter(({ role }) => role === "user").length, 2);
  await tab.sees(() => tab.at("reasoning").count(), 1);
  await tab.settles();
  await soon(async () => (await tab.messages()).map(({ role }) => role).join()).toBe("user,assistant,user,assistant");
  await soon(async () => (await tab.messages())[1]?.text).toContain("That is what formatted text looks like.");
  const shown = await tab.messages();
  expect((await stage.app.stored(tab.conversation())).map(({ id }) => id)).toEqual(shown.map(({ id }) => id));
});

test("the end stays in sight while it grows, unless the reader goes up; the button goes back down", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me some markdown");
  await tab.send("Give me a long answer");
  const box = tab.page.locator(".scroll");
  const left = () => box.evaluate((at) => at.scrollHeight - at.scrollTop - at.clientHeight);
  const height = () => box.evaluate((at) => at.scrollHeight - at.clientHeight);
  const tall = (await height()) + 200;
  await soon(height).toBeGreaterThan(tall);
  await soon(left).toBeLessThan(48);
  await box.hover();
  await tab.page.mouse.wheel(0, -400);
  await tab.at("jump").waitFor();
  const [top, before] = [await box.evaluate((at) => at.scrollTop), await height()];
  await soon(height).toBeGreaterThan(before);
  await soon(() => box.evaluate((at) => at.scrollTop)).toBe(top);
  await tab.at("jump").click();
  await soon(left).toBeLessThan(48);
  await tab.sees(() => tab.at("jump").count(), 0);
});

test("what is written but not sent outlives a reload, for each conversation alone", async () => {
  const tab = await stage.openTab();
  await tab.at("composer-input").fill("half a thou");
  await tab.reload();
  await soon(() => tab.at("composer-input").inputValue()).toBe("half a thou");
  await tab.ask("Hello");
  await soon(() => tab.at("composer-input").inputValue()).toBe("");
  await tab.at("composer-input").fill("here");
  await tab.at("new-conversation").click();
  await tab.sees(() => tab.at("composer-input").inputValue(), "");
  // The socket of the one that is left again may not be open yet, and the browser says so.
  tab.expectsLoss();
  await tab.page.goBack();
  await tab.sees(() => tab.at("composer-input").inputValue(), "here");
});
