import { expect, test } from "vitest";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

const stage = useStage({ delayMs: 3 });
const MAX_STEPS = 80;

const press = (tab: Tab, key: string) => tab.page.keyboard.press(key);
const focused = (tab: Tab) =>
  tab.page.evaluate(() => {
    const at = document.activeElement;
    return at?.getAttribute("data-testid") ?? at?.className ?? "";
  });

/** Presses Tab until the focus is there, and checks on the way that it can be seen. @returns what it went through */
async function tabTo(tab: Tab, name: string, key = "Tab"): Promise<string[]> {
  const way: string[] = [];
  while (way.length < MAX_STEPS) {
    await press(tab, key);
    const at = await focused(tab);
    way.push(at);
    expect(await isFocusSeen(tab), `the focus on ${at} can be seen`).toBe(true);
    if (at === name) return way;
  }
  throw new Error(`Tab never came to ${name}, only to ${way.join(", ")}`);
}

/** Whether the focused element, or one around it, looks different than without the focus. */
function isFocusSeen(tab: Tab): Promise<boolean> {
  return tab.page.evaluate(() => {
    for (let at = document.activeElement; at !== null && at !== document.body; at = at.parentElement) {
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(at);
      if ((outlineStyle !== "none" && outlineWidth !== "0px") || boxShadow !== "none") return true;
    }
    // Past the last element it leaves the page.
    return document.activeElement === document.body;
  });
}

test("writing begins at once; Enter sends, Shift+Enter does not, Escape stops", async () => {
  const tab = await stage.openTab();
  await tab.sees(() => focused(tab), "composer-input");
  await tab.page.keyboard.type("Give me");
  await press(tab, "Shift+Enter");
  await tab.page.keyboard.type("a long answer");
  await soon(() => tab.at("composer-input").inputValue()).toBe("Give me\na long answer");
  await press(tab, "Enter");
  await soon(async () => (await tab.lastText()).length).toBeGreaterThan(100);
  await soon(() => tab.at("composer-input").inputValue()).toBe("");
  await soon(() => focused(tab)).toBe("composer-input");
  await press(tab, "Escape");
  await tab.settles();
  await soon(() => tab.lastText()).not.toContain("That was the whole answer");
  await press(tab, "Enter");
  await soon(() => tab.at("message").count()).toBe(2);
});

test("the order is that of the page: skip link, list, bar, conversation, composer; the skip link skips", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me reasoning");
  await tab.page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await tab.page.evaluate(() => document.getSelection()?.setPosition(document.body, 0));
  await tab.reload();
  await tab.sees(() => tab.answers().count(), 1);
  const back = await tabTo(tab, "skip-link", "Shift+Tab");
  expect(back.at(-1)).toBe("skip-link");
  const way = await tabTo(tab, "composer-input");
  const places = [
    "new-conversation",
    "rename",
    "delete",
    "clear",
    "theme",
    "scroll",
    "edit",
    "fold",
    "regenerate",
    "attach",
  ];
  // Each conversation of the list has its own buttons.
  expect([...new Set(way.filter((at) => places.includes(at)))]).toEqual(places);
  await tabTo(tab, "skip-link", "Shift+Tab");
  await press(tab, "Enter");
  await tab.sees(() => focused(tab), "composer-input");
});

test("without a mouse: a suggestion, a tool's card, an approval, the theme", async () => {
  const tab = await stage.openTab();
  await tab.at("empty").waitFor();
  await tabTo(tab, "suggestion", "Shift+Tab");
  await press(tab, "Enter");
  await tab.sees(() => tab.answers().count(), 1);
  await soon(() => tab.at("error").count()).toBe(1);
  await tab.page.keyboard.press("Tab");
  await tab.at("composer-input").focus();
  await tab.page.keyboard.type("Show me an approval");
  await press(tab, "Enter");
  await tab.at("approval").waitFor();
  await tab.settles();
  await tabTo(tab, "deny", "Shift+Tab");
  await tabTo(tab, "approve", "Shift+Tab");
  await press(tab, "Enter");
  await soon(() => tab.lastText()).toContain("You approved");
  await tab.settles();
  await tabTo(tab, "tool-head", "Shift+Tab");
  await press(tab, "Space");
  await tab.at("tool-card").getByRole("region", { name: "Output" }).waitFor();
  await tabTo(tab, "theme", "Shift+Tab");
  await press(tab, "Enter");
  await soon(() => tab.page.evaluate(() => document.documentElement.dataset.theme)).toBe("light");
});

test("without a mouse: edit, rename, delete; a dialog keeps the focus, Escape closes it and gives it back", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me reasoning");
  await tabTo(tab, "edit", "Shift+Tab");
  await press(tab, "Enter");
  await tab.sees(() => tab.at("edit-form").count(), 1);
  await press(tab, "ControlOrMeta+a");
  await tab.page.keyboard.type("Which attachments can you read?");
  await press(tab, "Enter");
  await soon(() => tab.lastText()).toContain("Send me one");
  await tab.settles();

  await tab.at("composer-input").focus();
  await tabTo(tab, "new-conversation", "Shift+Tab");
  await tabTo(tab, "rename");
  await press(tab, "Enter");
  await tab.sees(() => focused(tab), "rename-input");
  await tab.page.keyboard.type("By keys");
  await press(tab, "Enter");
  const row = tab.at("conversation-item").filter({ hasText: "By keys" });
  await soon(() => row.count()).toBe(1);

  await tab.at("composer-input").focus();
  await tabTo(tab, "new-conversation", "Shift+Tab");
  await tabTo(tab, "delete");
  await press(tab, "Enter");
  await tab.at("confirm").waitFor();
  for (let step = 0; step < 6; step++) {
    await press(tab, "Tab");
    expect(["confirm-cancel", "confirm-action", ""]).toContain(await focused(tab));
  }
  await press(tab, "Escape");
  await tab.sees(() => tab.at("confirm").count(), 0);
  await tab.sees(() => focused(tab), "delete");
  await soon(() => row.count()).toBe(1);
  await press(tab, "Enter");
  await tab.at("confirm").waitFor();
  await tabTo(tab, "confirm-action");
  await press(tab, "Enter");
  await tab.at("empty").waitFor();
  await soon(() => row.count()).toBe(0);
  await tab.sees(() => focused(tab), "composer-input");
});

test("on a phone's width: the drawer takes the focus, keeps it, and gives it back", async () => {
  const tab = await stage.openTab({ context: { viewport: { width: 375, height: 700 } } });
  await tabTo(tab, "menu", "Shift+Tab");
  await press(tab, "Enter");
  await soon(() => tab.page.evaluate(() => document.querySelector(".drawer")?.contains(document.activeElement))).toBe(
    true,
  );
  await tabTo(tab, "new-conversation");
  await press(tab, "Escape");
  await tab.sees(() => focused(tab), "menu");
});

test("screen readers are told of whole answers, of errors and of questions", async () => {
  const tab = await stage.openTab();
  await tab.ask("Show me reasoning");
  await soon(() => tab.at("announcer").textContent()).toContain("That was reasoning");
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  await soon(() => tab.at("announcer").textContent()).toContain("Your approval is needed to delete files.");
  await tab.send("Show me an error");
  await soon(() => tab.page.getByRole("alert").textContent()).toContain("on purpose");
});
