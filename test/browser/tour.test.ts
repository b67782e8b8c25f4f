import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { HELPER_TOOLS } from "../../examples/start/contract.ts";
import { TOUR } from "../../examples/start/model/guide-tour.ts";
import { expectAccessible } from "./accessibility.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const stage = useStage({ delayMs: 1, page: "production" });

/** What only some machines have: programs in a jail, and a browser in one. */
const MACHINE = /^(?:run_process|browser_)/;
/** An answer that comes sooner is taken for one to the question before. */
const SECOND_QUESTION_MS = 450;
const PHONE = { width: 375, height: 700 };

/** Waits for the question of this tool. */
async function question(tab: Tab, tool: string, says: string) {
  const asked = tab.page.locator(`[data-tool="${tool}"] [data-testid="approval"]`).filter({ hasText: says });
  await asked.waitFor();
  await tab.settles();
  return asked;
}

/** Each card: its tool, and where it stands. */
function cards(tab: Tab): Promise<string[]> {
  return tab
    .at("tool-card")
    .evaluateAll((all) => all.map((card) => `${card.getAttribute("data-tool")} ${card.getAttribute("data-state")}`));
}

/** Nothing is wider than the window. */
async function expectFits(tab: Tab): Promise<void> {
  const wide = await tab.page.evaluate(() => document.querySelector(".scroll")?.scrollWidth ?? 0);
  expect(wide).toBeLessThanOrEqual(tab.page.viewportSize()?.width ?? 0);
}

test("a tour of every tool: from the first click to the end, with a reload in the middle", async () => {
  const tab = await stage.openTab();
  await tab.at("empty").getByRole("button", { name: "Use every tool" }).click();

  const extension = await question(tab, "load_extension", "load extension");
  await soon(() => extension.getByRole("region", { name: "source" }).textContent()).toContain(
    "Counts the words of a file",
  );
  await expectAccessible(tab.page);
  await extension.getByTestId("approve").click();

  // Code asks in its middle, twice on the same card; the first time the page is loaded anew.
  const first = await question(tab, "execute", "draft-1.md");
  await soon(() => first.textContent()).toMatch(/go on with its code[^]*The code wants to call "deleteFiles" with/);
  const before = { cards: await cards(tab), messages: await tab.messages() };
  await tab.reload();
  await question(tab, "execute", "draft-1.md");
  await soon(async () => ({ cards: await cards(tab), messages: await tab.messages() })).toEqual(before);
  await tab.page.setViewportSize(PHONE);
  await expectFits(tab);
  await tab.at("approve").click();
  const second = await question(tab, "execute", '"draft-2.md"]}');
  await setTimeout(SECOND_QUESTION_MS);
  await second.getByTestId("approve").click();

  await (await question(tab, "book_table", "Book a table for 2 at The Kettle")).getByTestId("approve").click();
  await (await question(tab, "deleteFiles", "old-notes.txt")).getByTestId("approve").click();
  await expectFits(tab);

  await tab.run("Tidier", "waiting").getByTestId("run-open").click();
  await tab.at("approve").click();
  await tab.at("back").click();
  await soon(() => tab.page.locator(".message-parts").first().textContent()).toContain("That was every tool");
  await soon(() => tab.at("message").count()).toBe(4);
  await tab.settles();

  const seen = new Set(await cards(tab));
  const names = [...new Set(TOUR.flatMap(({ tools }) => tools))].map((name) => name.replace("*", "tool_library"));
  const offered = names.filter((name) => !MACHINE.test(name) || seen.has(`${name} done`));
  for (const name of offered.filter((one) => !HELPER_TOOLS.has(one))) expect(seen).toContain(`${name} done`);
  expect(seen).toContain("edit failed");
  await soon(() => tab.page.locator('[data-testid="run"][data-state="done"]').count()).toBe(3);
  const [, answer] = await tab.messages();
  for (const mended of ["These lines come near: 4 Drink tea", "There is no tools.wether", "is not allowed. Allowed:"]) {
    expect(answer?.text).toContain(mended);
  }

  // What was done, in words: the code, what it returned and printed; a picture that can be seen.
  const code = tab.page.locator('[data-tool="execute"]').last();
  await code.getByRole("button").click();
  await soon(() => code.getByRole("region", { name: "Code" }).textContent()).toContain("tools.deleteFiles");
  await soon(() => code.getByRole("region", { name: "Result" }).textContent()).toContain('"draft-2.md"');
  await soon(() => code.getByRole("region", { name: "Printed" }).textContent()).toBe("asked for 2 cities");
  const picture = tab.page.locator(".tool-picture");
  await soon(() => picture.count()).toBe(seen.has("browser_screenshot done") ? 1 : 0);
  for (const one of await picture.all()) {
    await one.scrollIntoViewIfNeeded();
    await soon(() => one.evaluate((image) => image instanceof HTMLImageElement && image.naturalWidth)).toBeGreaterThan(
      0,
    );
  }
  await expectAccessible(tab.page);

  // All of it is stored, and looks the same from now on.
  const after = { cards: await cards(tab), messages: await tab.messages() };
  await tab.reload();
  await soon(() => cards(tab)).toEqual(after.cards);
  await soon(() => tab.messages()).toEqual(after.messages);
  const stored = await stage.app.stored(tab.conversation());
  expect(stored.map(({ id }) => id)).toEqual(after.messages.map(({ id }) => id));
  const calls = stored.flatMap(({ parts }) => parts).filter((part) => "toolCallId" in part);
  expect(calls.every(({ state }) => state === "output-available" || state === "output-error")).toBe(true);
  expect(new Set(calls.map((part) => ("toolName" in part ? part.toolName : part.type.slice(5))))).toEqual(
    new Set(offered),
  );
}, 120_000);
