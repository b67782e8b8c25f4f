import { expect, test } from "vitest";
import { expectAccessible } from "./accessibility.ts";
import { expectFits, expectReachable, PHONE } from "./phone.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const stage = useStage({ delayMs: 8 });

/** Asks for two helpers and waits until one works and one asks. */
async function showHelpers(tab: Tab): Promise<void> {
  await tab.send("Show me helpers");
  await tab.run("Tidier", "waiting").waitFor();
  await tab.run("Researcher", "working").waitFor();
}

test("on a phone: one below the other, nothing too wide, everything within reach", async () => {
  const tab = await stage.openTab({ context: PHONE });
  await showHelpers(tab);
  await expectFits(tab);
  const [first, second] = [await tab.run("Researcher").boundingBox(), await tab.run("Tidier").boundingBox()];
  expect(second?.x).toBe(first?.x);
  await tab.run("Researcher", "done").waitFor();
  await expectFits(tab);
  await expectReachable(tab.run("Tidier").getByTestId("run-stop"));
  await expectReachable(tab.run("Tidier").getByTestId("run-open"));
  await tab.run("Tidier").getByTestId("run-open").tap();
  await tab.at("approval").waitFor();
  await expectFits(tab);
  for (const name of ["back", "approve", "deny"]) await expectReachable(tab.at(name));
  await tab.at("deny").tap();
  await soon(() => tab.lastText()).toContain("You said no");
  await tab.at("back").tap();
  await tab.run("Tidier", "done").waitFor();
  await tab.settles();
  await expectFits(tab);
});

test("by keyboard alone: to a helper, answer, and back to where one was", async () => {
  const tab = await stage.openTab();
  await showHelpers(tab);
  const { keyboard } = tab.page;
  const open = tab.run("Tidier").getByTestId("run-open");
  await open.focus();
  await keyboard.press("Enter");
  await tab.at("approval").waitFor();
  await tab.at("approve").focus();
  await keyboard.press("Enter");
  await soon(() => tab.lastText()).toContain("You approved");
  await tab.at("back").focus();
  await keyboard.press("Enter");
  await tab.run("Tidier", "done").waitFor();
  const focused = () => tab.page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
  await soon(focused).toBe("Open Tidier");
  // What a helper says can be scrolled without a mouse.
  const box = tab.run("Researcher", "done").getByTestId("run-words");
  await box.focus();
  await keyboard.press("End");
  await soon(() => box.evaluate((at) => at.scrollHeight - at.scrollTop - at.clientHeight)).toBeLessThan(3);
});

test("those who do not see are told: what state a helper is in, and what belongs to it", async () => {
  const tab = await stage.openTab();
  await showHelpers(tab);
  const tidier = tab.page.getByRole("region", { name: "Tidier", exact: true });
  await soon(() => tidier.getByRole("status").textContent()).toBe("Tidier: Needs approval");
  await soon(() => tidier.getByRole("button", { name: "Open and answer Tidier" }).count()).toBe(1);
  await tidier.getByRole("button", { name: "Stop Tidier" }).click();
  await soon(() => tidier.getByRole("status").textContent()).toBe("Tidier: Stopped");
  await tab.page.getByRole("region", { name: "What Researcher says" }).waitFor();
});

test.each([
  ["wide", {}],
  ["on a phone", PHONE],
])("nobody is kept out: helpers at work, asking, opened, done and stopped, %s", async (_name, context) => {
  const tab = await stage.openTab({ context });
  await showHelpers(tab);
  await expectAccessible(tab.page);
  await tab.run("Tidier").getByTestId("run-stop").click();
  await tab.run("Tidier", "stopped").waitFor();
  await tab.run("Researcher", "done").waitFor();
  await tab.settles();
  await expectAccessible(tab.page);
  await tab.run("Researcher").getByTestId("run-open").click();
  await tab.at("back").waitFor();
  await soon(() => tab.answers().count()).toBe(1);
  await expectAccessible(tab.page);
});
