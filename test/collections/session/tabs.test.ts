import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expectAccessible } from "../../browser/accessibility.ts";
import { launchBrowser } from "../../browser/browser.ts";
import { soon } from "../../browser/soon.ts";
import { tempDir } from "../../host/open-host.ts";
import { Desk, startNewsroom } from "./newsroom.ts";

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const DONE = /^Your story about tides is done\. It is in edition \d+\.$/;

let browser: Browser;
beforeAll(async () => {
  browser = await launchBrowser();
}, 60_000);
afterAll(() => browser.close());

/** Two people, each at a window of their own. */
async function twoDesks(args: readonly string[]): Promise<[Desk, Desk]> {
  const { url } = await startNewsroom(tempDir(), args);
  return Promise.all([Desk.open(browser, url, DESKTOP), Desk.open(browser, url, PHONE)]);
}

test.each([
  ["a Perdure agent", []],
  ["Durable Streams", ["--backend=durable-streams"]],
])(
  "requirement: Multi-tab sync: on %s, what happens in one tab shows in the other, also after a reload",
  async (_, args) => {
    const [one, other] = await twoDesks(args);
    await other.input.fill("I also want");
    await one.shows("typing …");
    await one.send("A story about tides");
    await other.shows("A story about tides");

    // Pieces of the answer show in both while it is written.
    for (const desk of [one, other]) await desk.live().first().waitFor();
    await soon(() => one.live().first().textContent()).toMatch(/^First I/);
    await other.page.reload();
    await other.shows("A story about tides");
    await other.live().first().waitFor();

    // The tool waits in another process for whoever decides first; its answer shows in both.
    await one.button("Approve").waitFor();
    expect(await one.texts()).not.toContainEqual(expect.stringMatching(DONE));
    await expectAccessible(other.page);
    await other.button("Approve").click();
    for (const desk of [one, other]) {
      await desk.shows(DONE);
      await desk.live().first().waitFor({ state: "hidden" });
      expect(await desk.button("Approve").count()).toBe(0);
    }
    expect(await one.texts()).toEqual(await other.texts());
    expect((await one.texts()).filter((text) => DONE.test(text))).toHaveLength(1);
    expect([one, other].flatMap((desk) => desk.trouble.list())).toEqual([]);
  },
  60_000,
);

test("a denied tool does not run, and a message that an agent gives up is a dead letter in every tab", async () => {
  const [one, other] = await twoDesks([]);
  await one.page.getByLabel("To").selectOption("writer");
  await one.send("Nothing yet.");
  await other.button("Deny").click();
  await one.shows("It will not be printed: somebody said no.");
  await one.page.getByLabel("To").selectOption("planner");
  await one.send("How things fail");
  await other.shows("Dead letters");
  await expectAccessible(one.page);
  await other.button("Try again").click();
  // It fails as before: the letter goes, and is there again.
  await one.button("Try again").waitFor({ state: "hidden" });
  await one.button("Try again").waitFor();
  expect([one, other].flatMap((desk) => desk.trouble.list())).toEqual([]);
}, 60_000);
