import { test } from "vitest";
import { expectFits, expectReachable, PHONE } from "./phone.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";

const stage = useStage({ delayMs: 3 });

const openPhone = (path?: string) => stage.openTab({ context: PHONE, ...(path !== undefined && { path }) });

test("nothing is wider than the screen: empty, with a table and code, with a tool, with a word without end", async () => {
  const tab = await openPhone();
  await expectFits(tab);
  await tab.ask("Show me some markdown");
  await expectFits(tab);
  await tab.ask("What is the weather in Lisbon?");
  await tab.at("tool-card").getByRole("button").tap();
  await expectFits(tab);
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  await expectFits(tab);
  await tab.ask("w".repeat(300));
  await expectFits(tab);
  await soon(() => tab.lastAnswer().locator(".markdown").isVisible()).toBe(true);
});

test("the list is a drawer: opens, closes by button, curtain and Escape, and choosing closes it", async () => {
  const tab = await openPhone();
  await tab.ask("Hello from a phone");
  const id = tab.conversation();
  const sidebar = tab.at("sidebar");
  const isInSight = () =>
    sidebar.evaluate((at) => {
      const { left, right } = at.getBoundingClientRect();
      return right > 0 && left < innerWidth && getComputedStyle(at).visibility === "visible";
    });
  const isOpen = () => tab.page.locator(".drawer[data-open]").count();
  await tab.sees(isInSight, false);

  for (const close of [
    () => tab.at("close-menu").tap(),
    () => tab.page.touchscreen.tap(370, 350),
    () => tab.page.keyboard.press("Escape"),
  ]) {
    await tab.at("menu").tap();
    await tab.sees(isOpen, 1);
    await tab.sees(isInSight, true);
    await expectFits(tab);
    // A touch that meets the drawer while it still moves may miss: a person would touch again.
    const closed = async () => {
      if ((await isOpen()) === 1) await close();
      return isOpen();
    };
    await tab.sees(closed, 0);
    await tab.sees(isInSight, false);
  }

  await tab.at("menu").tap();
  await tab.at("new-conversation").tap();
  await tab.sees(isOpen, 0);
  await tab.at("empty").waitFor();
  await soon(() => tab.conversation()).not.toBe(id);
  await tab.at("menu").tap();
  await tab.at("conversation-item").filter({ hasText: "Hello from a phone" }).getByRole("link").tap();
  await tab.sees(isOpen, 0);
  await soon(() => tab.answers().count()).toBe(1);
  await soon(() => tab.conversation()).toBe(id);
});

test("what was said last is in sight, after each question and each answer, also with tall ones above", async () => {
  const tab = await openPhone();
  const left = () => tab.page.locator(".scroll").evaluate((at) => at.scrollHeight - at.scrollTop - at.clientHeight);
  await tab.ask("Show me some markdown");
  await soon(left).toBeLessThan(3);
  await tab.ask("What is the weather in Lisbon?");
  await soon(left).toBeLessThan(3);
  await tab.at("tool-card").getByRole("button").tap();
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  await tab.settles();
  await soon(left).toBeLessThan(3);
  await tab.at("approve").tap();
  await soon(() => tab.lastText()).toContain("You approved");
  await tab.settles();
  await soon(left).toBeLessThan(3);
  await tab.ask("Show me some markdown");
  await soon(left).toBeLessThan(3);
  await soon(() => tab.at("jump").count()).toBe(0);
});

test("everything can be reached with a finger", async () => {
  const tab = await openPhone();
  await expectReachable(tab.at("suggestion").first());
  for (const name of ["menu", "theme", "attach", "composer-input"]) await expectReachable(tab.at(name));
  await tab.send("Give me a long answer");
  await expectReachable(tab.at("stop"));
  await tab.at("stop").tap();
  await tab.settles();
  for (const name of ["regenerate", "copy"]) await expectReachable(tab.lastAnswer().getByTestId(name));
  await expectReachable(tab.at("message").first().getByTestId("edit"));
  await tab.at("message").first().getByTestId("edit").tap();
  await tab.at("edit-form").waitFor();
  const hidden = () =>
    tab.page.evaluate(() => {
      const [box, field] = [document.querySelector(".scroll"), document.activeElement];
      return (box?.getBoundingClientRect().top ?? 0) - (field?.getBoundingClientRect().top ?? 0);
    });
  await soon(hidden).toBeLessThan(1);
  await tab.at("edit-form").getByRole("button", { name: "Cancel" }).tap();
  await expectReachable(tab.at("clear"));

  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  for (const name of ["approve", "deny"]) await expectReachable(tab.at(name));
  await tab.at("deny").tap();
  await soon(() => tab.lastText()).toContain("You said no");

  await tab.at("menu").tap();
  const row = tab.at("conversation-item").filter({ hasText: "Give me a long answer" });
  for (const name of ["rename", "delete"]) await expectReachable(row.getByTestId(name));
  await row.getByTestId("delete").tap();
  for (const name of ["confirm-cancel", "confirm-action"]) await expectReachable(tab.at(name));
  await tab.at("confirm-action").tap();
  await tab.at("empty").waitFor();
  await soon(() => row.count()).toBe(0);
});

test("turning the screen and coming to a narrow window keep what is there", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me some markdown");
  const shown = await tab.messages();
  for (const [width, height] of [
    [375, 700],
    [700, 375],
    [820, 1100],
    [320, 500],
  ] as const) {
    await tab.page.setViewportSize({ width, height });
    await expectReachable(tab.at("composer-input"));
    await soon(() => tab.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(width);
    await soon(() => tab.messages()).toEqual(shown);
  }
});
