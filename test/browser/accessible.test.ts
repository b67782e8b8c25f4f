import { test } from "vitest";
import { expectAccessible } from "./accessibility.ts";
import { useStage } from "./setup.ts";
import type { Tab } from "./tab.ts";

const stage = useStage();

/** A conversation with one of everything. */
async function fill(tab: Tab): Promise<void> {
  await tab.ask("Show me some markdown");
  await tab.ask("Show me reasoning");
  await tab.at("reasoning").getByRole("button").click();
  await tab.ask("What is the weather in Lisbon?");
  await tab.at("tool-card").getByRole("button").click();
  await tab.at("attach-input").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("a") });
  await tab.at("attachment").waitFor();
  await tab.ask("This is a file");
}

test("nobody is kept out: empty", async () => {
  const tab = await stage.openTab();
  await tab.at("empty").waitFor();
  await expectAccessible(tab.page);
});

test("nobody is kept out: full, with an error, with a draft", async () => {
  const tab = await stage.openTab();
  await fill(tab);
  await tab.send("Show me an error");
  await tab.at("error").waitFor();
  await tab.at("attach-input").setInputFiles({ name: "b.txt", mimeType: "text/plain", buffer: Buffer.from("b") });
  await tab.at("attachment").waitFor();
  await expectAccessible(tab.page);
});

test("nobody is kept out: an approval, before and after it is denied, and a message being edited", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  await tab.settles();
  await expectAccessible(tab.page);
  await tab.at("deny").click();
  await tab.at("approval").waitFor({ state: "hidden" });
  await tab.settles();
  await tab.at("edit").click();
  await expectAccessible(tab.page);
});

test("nobody is kept out: a dialog, a title being changed, a closed conversation", async () => {
  const tab = await stage.openTab();
  await tab.ask("Hello");
  await tab.at("clear").click();
  await tab.at("confirm").waitFor();
  await expectAccessible(tab.page);
  await tab.at("confirm-cancel").click();
  await tab.at("conversation-item").first().hover();
  await tab.at("rename").first().click();
  await expectAccessible(tab.page);
  const lost = await stage.openTab({ path: "/c/not%20an%20id", waitsFor: "closed" });
  await expectAccessible(lost.page);
});

test("nobody is kept out: on a phone, with the list closed and open, and offline", async () => {
  const link = await stage.openLink();
  const tab = await stage.openTab({
    through: link,
    context: { viewport: { width: 375, height: 700 }, isMobile: true },
  });
  await fill(tab);
  await expectAccessible(tab.page);
  await tab.at("menu").click();
  await tab.page.locator(".drawer[data-open]").waitFor();
  await expectAccessible(tab.page);
  await tab.at("close-menu").click();
  tab.expectsLoss();
  await link.cut();
  await tab.at("offline").waitFor();
  await expectAccessible(tab.page);
});
