import type { Locator } from "playwright-core";
import { expect, test } from "vitest";
import { watchRuns } from "./run-watch.ts";
import { useStage } from "./setup.ts";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";
import { begins, words } from "./words.ts";

/** Slow enough for helpers to be seen at work. */
const stage = useStage({ delayMs: 14, page: "production" });

const MILESTONES = ["Planned", "Sources read"];

/** Waits for the card of a helper, in this state. */
async function card(tab: Tab, name: string, state: string): Promise<Locator> {
  const found = tab.run(name, state);
  await found.waitFor();
  return found;
}

/** What a card shows of what its helper said, as words. */
async function saidIn(run: Locator): Promise<string[]> {
  return words((await run.locator(".run-words .markdown").allTextContents()).join("\n"));
}

/** What a helper has said in all, as words. */
async function storedOf(tab: Tab, run: Locator, agent: string): Promise<string[]> {
  const runId = await run.getAttribute("data-run");
  const messages = await stage.app.stored(tab.conversation(), `${agent}/${runId}`);
  const parts = messages.filter(({ role }) => role === "assistant").flatMap((message) => message.parts);
  return words(parts.map((part) => (part.type === "text" ? part.text : "")).join("\n"));
}

test("two helpers side by side, seen at work: progress, milestones, tools and words", async () => {
  const tab = await stage.openTab();
  const notes = await watchRuns(tab.page);
  await tab.send("Show me helpers");
  const tidier = await card(tab, "Tidier", "waiting");
  const researcher = await card(tab, "Researcher", "done");
  const [left, right] = [await researcher.boundingBox(), await tidier.boundingBox()];
  expect(right?.x).toBeGreaterThan((left?.x ?? 0) + (left?.width ?? 0) - 1);
  await soon(() => researcher.textContent()).toContain("durable agents");
  const { shown, left: outOfSight } = await notes();
  const states = shown.filter((line) => /^Researcher \w+$/.test(line));
  expect(states.slice(-2)).toEqual(["Researcher working", "Researcher done"]);
  for (const source of ["The handbook", "The field notes", "The survey"]) {
    expect(shown).toContainEqual(expect.stringMatching(new RegExp(`^Researcher: Reading: ${source} \\d+ %$`)));
  }
  expect(shown).toEqual(expect.arrayContaining(["Researcher: Writing 75 %", "Researcher: lookUp running"]));
  expect(shown).toEqual(expect.arrayContaining(["Researcher: lookUp done", "Tidier: deleteFiles waiting"]));
  // Its words stay in a small box, of which the end is in sight as they come.
  const box = researcher.getByTestId("run-words");
  await soon(() => box.evaluate((at) => at.scrollHeight - at.clientHeight)).toBeGreaterThan(0);
  expect(outOfSight).toBeLessThan(3);
  await soon(() => researcher.getByTestId("milestones").getByRole("listitem").allTextContents()).toEqual(MILESTONES);
  await soon(() => researcher.getByRole("progressbar").count()).toBe(0);
  await soon(() => researcher.getByTestId("run-stop").count()).toBe(0);
  await soon(() => saidIn(researcher)).toEqual(await storedOf(tab, researcher, "researcher"));
  await soon(() => tab.at("tool-card").count()).toBe(0);
});

test.each([
  { button: "approve", said: "You approved, so the tool ran" },
  { button: "deny", said: "You said no, so nothing was deleted" },
])("a helper asks in its own conversation: open, $button, back", async ({ button, said }) => {
  const tab = await stage.openTab();
  await tab.send("Show me helpers");
  const tidier = await card(tab, "Tidier", "waiting");
  const runId = await tidier.getAttribute("data-run");
  await tidier.getByTestId("run-open").click();
  await tab.at("approval").waitFor();
  await soon(() => new URL(tab.page.url()).pathname).toBe(`/c/${tab.conversation()}/tidier/${runId}`);
  await soon(() => tab.page.getByRole("heading", { level: 1 }).textContent()).toBe("Tidier");
  await soon(() => tab.at("approval").textContent()).toContain("Tidier wants to delete files");
  await soon(() => tab.at("message").first().textContent()).toContain("Tidy up the folder: drafts");
  await soon(() => tab.at("edit").count()).toBe(0);
  await tab.at(button).click();
  await soon(() => tab.lastText()).toContain(said);
  await tab.at("back").click();
  await card(tab, "Tidier", "done");
  await card(tab, "Researcher", "done");
  await soon(() => tab.lastText()).toMatch(new RegExp(`The researcher is back.*The tidier is back. ${said}`, "s"));
  await tab.settles();
  await soon(() => tab.answers().count()).toBe(1);
  await soon(() => new URL(tab.page.url()).pathname).toBe(`/c/${tab.conversation()}`);
});

test("a helper is opened while it speaks: its words come there too; the browser's own back leads back", async () => {
  const tab = await stage.openTab();
  await tab.send("Research tea");
  const run = await card(tab, "Researcher", "working");
  await run.getByTestId("run-open").click();
  await tab.at("stop").waitFor();
  await soon(() => tab.at("composer-input").getAttribute("placeholder")).toBe("Write to Researcher");
  await soon(() => tab.lastText()).toContain("What is known about tea");
  await tab.settles();
  await soon(() => tab.at("tool-card").getAttribute("data-state")).toBe("done");
  await tab.page.goBack();
  const done = await card(tab, "Researcher", "done");
  await soon(() => saidIn(done)).toEqual(await storedOf(tab, done, "researcher"));
  await tab.page.goForward();
  await tab.at("back").waitFor();
  await tab.reload();
  await soon(() => tab.lastText()).toContain("What is known about tea");
  await tab.ask("And what else?");
  await soon(() => tab.lastText()).toContain("My work is done");
  await tab.at("back").click();
  await soon(async () => saidIn(await card(tab, "Researcher", "done"))).not.toContain("done");
});

test("stop stops that helper only, also after a reload and a restart; the answer goes on without it", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me helpers");
  const tidier = await card(tab, "Tidier", "waiting");
  await (await card(tab, "Researcher", "working")).getByTestId("run-stop").click();
  const stopped = await card(tab, "Researcher", "stopped");
  await soon(() => stopped.textContent()).toContain("You stopped it.");
  await soon(() => tidier.count()).toBe(1);
  tab.expectsLoss();
  await stage.app.restart();
  await tab.reload();
  await card(tab, "Researcher", "stopped");
  await (await card(tab, "Tidier", "waiting")).getByTestId("run-open").click();
  await tab.at("approve").click();
  await tab.at("back").click();
  await soon(() => tab.lastText()).toMatch(/The researcher brought nothing: You stopped it\.[^]*The tidier is back/);
  await tab.settles();
  await card(tab, "Researcher", "stopped");
});

test("stopping the answer stops its helpers", async () => {
  const tab = await stage.openTab();
  await tab.send("Show me helpers");
  await card(tab, "Tidier", "waiting");
  await card(tab, "Researcher", "working");
  await tab.at("stop").click();
  await card(tab, "Tidier", "stopped");
  await card(tab, "Researcher", "stopped");
  await tab.settles();
  await tab.reload();
  await soon(() => tab.page.locator('[data-testid="run"][data-state="stopped"]').count()).toBe(2);
});

test("stopped from its own conversation", async () => {
  const tab = await stage.openTab();
  await tab.send("Research tea");
  await (await card(tab, "Researcher", "working")).getByTestId("run-open").click();
  await soon(() => tab.lastText()).toContain("I look for");
  await tab.at("stop").click();
  await tab.settles();
  await tab.at("back").click();
  await card(tab, "Researcher", "stopped");
  await tab.settles();
});

const cuts = ["reload", "a second tab", "the death of the host"];
const moments = [
  { when: "while it reads", sign: ".run-milestones li" },
  { when: "in the middle of its words", sign: ".markdown li" },
];

test.each(moments.flatMap((moment) => cuts.map((cut) => ({ ...moment, cut }))))(
  "$when: $cut",
  async ({ sign, cut }) => {
    const tab = await stage.openTab();
    await tab.send("Research tea");
    const run = await card(tab, "Researcher", "working");
    await run.locator(sign).first().waitFor();
    const before = await saidIn(run);
    let seen = tab;
    if (cut === "reload") await tab.reload();
    else if (cut === "a second tab") seen = await stage.openTab({ path: `/c/${tab.conversation()}` });
    else {
      tab.expectsLoss();
      await stage.app.restart();
    }
    await seen.run("Researcher").locator(sign).first().waitFor();
    await soon(async () => (await saidIn(seen.run("Researcher"))).slice(0, before.length - 1)).toEqual(
      before.slice(0, -1),
    );
    const done = await card(seen, "Researcher", "done");
    const whole = await storedOf(seen, done, "researcher");
    await soon(() => saidIn(done)).toEqual(whole);
    expect(begins(whole, before)).toBe(true);
    await soon(() => done.getByTestId("milestones").getByRole("listitem").allTextContents()).toEqual(MILESTONES);
    await seen.settles();
    await soon(() => seen.answers().count()).toBe(1);
  },
);

test("in the background: the answer is at its end, the helper is not; its report comes by itself", async () => {
  const tab = await stage.openTab();
  await tab.send("Research tea in the background");
  await soon(() => tab.lastText()).toContain("I am free again");
  await tab.settles();
  await card(tab, "Researcher", "working");
  await tab.reload();
  const done = await card(tab, "Researcher", "done");
  await soon(() => saidIn(done)).toEqual(await storedOf(tab, done, "researcher"));
  await soon(() => tab.lastText()).toContain("Researcher has finished in the background");
  await tab.settles();
  await soon(async () => (await tab.messages()).map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
  ]);
  const report = tab.page.locator('.message[data-agent="true"]');
  await soon(() => report.getByRole("heading", { level: 2 }).textContent()).toBe("From a helper");
  await soon(() => report.getByTestId("edit").count()).toBe(0);
});

test("a helper that fails says why, and the answer goes on", async () => {
  const tab = await stage.openTab();
  await tab.ask("Research errors");
  const failed = await card(tab, "Researcher", "failed");
  await soon(() => failed.textContent()).toContain("failed on purpose");
  await soon(() => tab.lastText()).toContain("The researcher brought nothing: This helper failed on purpose");
  await tab.reload();
  await card(tab, "Researcher", "failed");
});

test("the address of a helper that never was", async () => {
  const tab = await stage.openTab();
  await tab.ask("Hello");
  tab.trouble.expect(/404|WebSocket connection/);
  await tab.open(`/c/${tab.conversation()}/researcher/run_none`, "closed");
  await tab.at("back").click();
  await soon(() => tab.answers().count()).toBe(1);
});
