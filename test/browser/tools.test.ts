import { expect, test } from "vitest";
import { gateFrames } from "./frame-gate.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";

const stage = useStage({ delayMs: 1 });

test("a tool of the server: seen running, then done, with what went in and what came out", async () => {
  const tab = await stage.openTab();
  const gate = await gateFrames(tab.page, (frame) => frame.includes("tool-input-available"));
  await tab.reload();
  await tab.send("What is the weather in Lisbon?");
  const card = tab.at("tool-card");
  await tab.page.locator('[data-testid="tool-card"][data-state="running"]').waitFor();
  await soon(() => card.getAttribute("data-tool")).toBe("weather");
  await soon(() => card.textContent()).toContain("Lisbon");
  gate.open();
  await tab.page.locator('[data-testid="tool-card"][data-state="done"]').waitFor();
  await tab.settles();
  await card.getByRole("button").click();
  await soon(() => card.getByRole("region", { name: "Input" }).textContent()).toContain('"city": "Lisbon"');
  await soon(() => card.getByRole("region", { name: "Output" }).textContent()).toContain('"celsius"');
  await soon(() => tab.lastText()).toMatch(/Let me look that up[^]*In Lisbon it is -?\d+ °C/);
  await soon(() => tab.answers().count()).toBe(1);
});

test("a tool of the page: answered here without a click, and the answer goes on in the same message", async () => {
  const tab = await stage.openTab({ context: { timezoneId: "Asia/Tokyo" } });
  await tab.send("Which time zone am I in?");
  await soon(() => tab.lastText()).toContain("time zone Asia/Tokyo");
  await tab.settles();
  await soon(() => tab.at("tool-card").getAttribute("data-state")).toBe("done");
  await soon(() => tab.answers().count()).toBe(1);
  expect((await stage.app.stored(tab.conversation())).map(({ role }) => role)).toEqual(["user", "assistant"]);
});

test.each([
  { button: "approve", state: "done", said: "Approved.", answer: "You approved, so the tool ran" },
  { button: "deny", state: "denied", said: "Denied.", answer: "You said no, so nothing was deleted" },
])("an approval waits through a reload; $button answers it", async ({ button, state, said, answer }) => {
  const tab = await stage.openTab();
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  await tab.settles();
  await soon(() => tab.at("tool-card").getAttribute("data-state")).toBe("waiting");
  await soon(() => tab.at("approval").textContent()).toMatch(/delete files[^]*draft-1\.md[^]*old-notes\.txt/);

  await tab.reload();
  await tab.at(button).click();
  await soon(() => tab.lastText()).toContain(answer);
  await tab.settles();
  await soon(() => tab.at("approval").count()).toBe(0);
  await soon(() => tab.at("tool-card").getAttribute("data-state")).toBe(state);
  await soon(() => tab.at("tool-card").textContent()).toContain(said);
  await soon(() => tab.answers().count()).toBe(1);
});

test("an approval is answered from another tab; the first one sees it and goes on with it", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  const other = await stage.openTab({ path: `/c/${tab.conversation()}` });
  await other.at("approve").click();
  for (const one of [tab, other]) {
    await soon(() => one.lastText()).toContain("You approved, so the tool ran");
    await one.settles();
    await soon(() => one.at("approval").count()).toBe(0);
  }
  await soon(() => tab.at("tool-card").textContent()).toContain("Approved in another tab.");
  await soon(() => other.at("tool-card").textContent()).toContain("Approved.");
  await soon(() => tab.messages()).toEqual(await other.messages());
});

test("both tabs answer before either hears of the other: one answer counts, for both", async () => {
  const link = await stage.openLink();
  const tab = await stage.openTab({ through: link });
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  const other = await stage.openTab({ through: link, path: `/c/${tab.conversation()}` });
  await other.at("approval").waitFor();
  link.hold();
  await tab.at("approve").click();
  await other.at("deny").click();
  link.release();
  for (const one of [tab, other]) {
    await soon(() => one.lastText()).toMatch(/You approved, so|You said no, so/);
    await one.settles();
  }
  await tab.sees(() => tab.messages(), await other.messages());
  const [, answer, ...more] = await stage.app.stored(tab.conversation());
  expect(more).toEqual([]);
  const call = answer?.parts.find((part) => part.type === "tool-deleteFiles");
  const state = call?.state === "output-available" ? "done" : "denied";
  for (const one of [tab, other]) await one.sees(() => one.at("tool-card").getAttribute("data-state"), state);
});

test("a message instead of an answer ends the question", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  await tab.send("Hello");
  await soon(() => tab.lastText()).toContain("I am the built-in guide");
  await tab.settles();
  await soon(() => tab.at("approval").count()).toBe(0);
  await soon(async () => (await tab.messages()).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
});

test("an approval waits through the death of the host", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me an approval");
  await tab.at("approval").waitFor();
  tab.expectsLoss();
  await stage.app.kill();
  await tab.at("offline").waitFor();
  await stage.app.restart();
  await tab.at("offline").waitFor({ state: "hidden" });
  await tab.at("approve").click();
  await soon(() => tab.lastText()).toContain("You approved, so the tool ran");
  await tab.settles();
  await soon(() => tab.answers().count()).toBe(1);
});
