// Takes pictures of the page that `npm start` opens, in its main states, sizes and colours, to look at.
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { type App, startApp } from "../test/browser/app.ts";
import { launchBrowser } from "../test/browser/browser.ts";
import { Tab } from "../test/browser/tab.ts";
import { watchTrouble } from "../test/browser/trouble.ts";

const SIZES = [
  { width: 1440, height: 900 },
  { width: 820, height: 1100 },
  { width: 390, height: 760 },
] as const;
const SCHEMES = ["light", "dark"] as const;
/** Slow enough to be seen while it streams. */
const DELAY_MS = 20;
/** An answer that comes sooner is taken for one to the question before. */
const SECOND_QUESTION_MS = 500;
const folder = join(import.meta.dirname, "..", "screenshots");

interface Shot {
  readonly name: string;
  readonly play: (tab: Tab) => Promise<unknown>;
}

/** The states, in the order in which one conversation comes to them. */
const SHOTS: readonly Shot[] = [
  { name: "empty", play: async () => {} },
  { name: "markdown", play: (tab) => tab.ask("Show me some markdown") },
  {
    name: "reasoning",
    play: async (tab) => {
      await tab.ask("Show me reasoning");
      await tab.at("reasoning").getByRole("button").click();
    },
  },
  {
    name: "tool-running",
    play: async (tab) => {
      await tab.send("What is the weather in Lisbon?");
      await tab.page.locator('[data-testid="tool-card"][data-state="running"]').waitFor();
    },
  },
  {
    name: "tool-done",
    play: async (tab) => {
      await tab.settles();
      await tab.at("tool-card").last().getByRole("button").first().click();
    },
  },
  {
    name: "approval",
    play: async (tab) => {
      await tab.send("Show me an approval");
      await tab.at("approval").waitFor();
      await tab.settles();
    },
  },
  {
    name: "approved",
    play: async (tab) => {
      await tab.at("approve").click();
      await tab.at("approval").waitFor({ state: "hidden" });
      await tab.settles();
    },
  },
  {
    name: "attachments",
    play: async (tab) => {
      await tab.at("attach-input").setInputFiles([
        { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("to be read") },
        { name: "picture.svg", mimeType: "image/svg+xml", buffer: Buffer.from(PICTURE) },
      ]);
      await tab.at("attachment").nth(1).waitFor();
    },
  },
  { name: "attached", play: (tab) => tab.ask("What did I send?") },
  {
    name: "error",
    play: async (tab) => {
      await tab.send("Show me an error");
      await tab.at("error").waitFor();
    },
  },
  {
    name: "streaming",
    play: async (tab) => {
      await tab.send("Give me a long answer");
      await tab.page.waitForFunction(() => document.querySelectorAll(".message[data-last] li").length > 3);
    },
  },
  {
    name: "stopped-and-editing",
    play: async (tab) => {
      await tab.at("stop").click();
      await tab.settles();
      await tab.at("edit").last().click();
    },
  },
  {
    name: "dialog",
    play: async (tab) => {
      await tab.page.keyboard.press("Escape");
      await tab.at("clear").click();
      await tab.at("confirm").waitFor();
    },
  },
  {
    name: "list",
    play: async (tab) => {
      await tab.at("confirm-cancel").click();
      if (await tab.at("menu").isVisible()) await tab.at("menu").click();
      await tab.at("conversation-item").first().hover();
    },
  },
  { name: "gone", play: (tab) => tab.open("/c/not%20an%20id", "closed") },
];

/** The states of helpers, in a conversation of their own. */
const HELPER_SHOTS: readonly Shot[] = [
  {
    name: "helpers-working",
    play: async (tab) => {
      await tab.send("Show me helpers");
      await tab.page.locator('[data-testid="run"][data-state="waiting"]').waitFor();
      await tab.at("run-progress").waitFor();
    },
  },
  {
    name: "helpers-writing",
    play: (tab) => tab.page.locator('[data-testid="run-words"] li').nth(1).waitFor(),
  },
  {
    name: "helper-open",
    play: async (tab) => {
      await tab.page.locator('[data-state="waiting"]').getByTestId("run-open").click();
      await tab.at("approval").waitFor();
    },
  },
  {
    name: "helper-answered",
    play: async (tab) => {
      await tab.at("approve").click();
      await tab.at("approval").waitFor({ state: "hidden" });
      await tab.settles();
    },
  },
  {
    name: "helpers-done",
    play: async (tab) => {
      await tab.at("back").click();
      await tab.page.locator('[data-testid="run"][data-state="done"]').nth(1).waitFor();
      await tab.settles();
    },
  },
  {
    name: "helper-reported",
    play: async (tab) => {
      await tab.ask("Research tea in the background");
      await tab.page.locator('.message[data-agent="true"]').waitFor();
      await tab.settles();
    },
  },
  { name: "helper-failed", play: (tab) => tab.ask("Research errors") },
  {
    name: "helper-stopped",
    play: async (tab) => {
      await tab.send("Research tea in the background");
      await tab.at("run-stop").click();
      await tab.page.locator('[data-testid="run"][data-state="stopped"]').waitFor();
      await tab.page.locator('.message[data-agent="true"]').nth(1).waitFor();
      await tab.settles();
    },
  },
];

/** Versions, search, and what the model reads, in a conversation of their own. */
const CONTEXT_SHOTS: readonly Shot[] = [
  {
    name: "versions",
    play: async (tab) => {
      await tab.ask("Show me versions");
      await tab.lastAnswer().getByTestId("regenerate").click();
      await tab.page.locator('[data-testid="branches"][data-place="2/2"]').waitFor();
      await tab.settles();
    },
  },
  {
    name: "version-before",
    play: async (tab) => {
      await tab.at("previous-branch").click();
      await tab.page.locator('[data-testid="branches"][data-place="1/2"]').waitFor();
      await tab.at("message").first().getByTestId("pin").click();
      await tab.page.locator(".message[data-pinned]").waitFor();
    },
  },
  {
    name: "window",
    play: async (tab) => {
      for (let round = 0; round < 2; round++) await tab.ask("Show me compaction");
      await tab.at("meter").click();
      await tab.at("context-used").waitFor();
    },
  },
  {
    name: "summary-asked",
    play: async (tab) => {
      await tab.at("compact").click();
      await tab.at("compact-focus").fill("What I said about versions");
    },
  },
  {
    name: "summary-shown",
    play: async (tab) => {
      await tab.at("compact-write").click();
      await tab.at("compact-text").waitFor();
    },
  },
  {
    name: "summarised",
    play: async (tab) => {
      await tab.at("compact-apply").click();
      await tab.at("summary").waitFor();
      await tab.at("summary").evaluate((at) => at.scrollIntoView({ block: "center" }));
    },
  },
  {
    name: "summary-open",
    play: async (tab) => {
      await tab.at("summary-open").click();
      await tab.page.locator(".summary-text").waitFor();
    },
  },
  {
    name: "search",
    play: async (tab) => {
      await tab.at("search").click();
      await tab.at("search-input").fill("tab");
      await tab.at("hit").first().waitFor();
    },
  },
  {
    name: "found",
    play: async (tab) => {
      await tab.at("hit").first().click();
      await tab.page.locator(".message[data-found]").waitFor();
    },
  },
  {
    name: "copy",
    play: async (tab) => {
      await tab.at("message").nth(1).getByTestId("fork").click();
      await tab.at("copies").waitFor();
      await tab.ask("Please remember this");
    },
  },
];

/** A tour of all tools, in a conversation of its own. */
const TOOL_SHOTS: readonly Shot[] = [
  {
    name: "tools-extension-asked",
    play: async (tab) => {
      await tab.send("Show me every tool");
      await tab.at("approval").waitFor();
      await tab.settles();
    },
  },
  {
    name: "tools-files",
    play: async (tab) => {
      await tab.page.locator('[data-tool="edit"]').first().getByRole("button").click();
      await tab.page.locator('[data-tool="bash"]').getByRole("button").click();
      await tab.page
        .locator('[data-tool="edit"]')
        .first()
        .evaluate((at) => at.scrollIntoView({ block: "start" }));
    },
  },
  {
    name: "tools-code-asked",
    play: async (tab) => {
      await tab.at("approve").click();
      await tab.page.locator('[data-tool="execute"] [data-testid="approval"]').waitFor();
      await tab.settles();
      await tab.at("approval").evaluate((at) => at.scrollIntoView({ block: "center" }));
    },
  },
  {
    name: "tools-code-done",
    play: async (tab) => {
      for (let question = 1; question <= 2; question++) {
        await tab.page.getByText(`draft-${question}.md`, { exact: false }).last().waitFor();
        await tab.page.waitForTimeout(SECOND_QUESTION_MS);
        await tab.at("approve").click();
      }
      await tab.page.locator('[data-tool="book_table"] [data-testid="approval"]').waitFor();
      await tab.settles();
      await tab.page.locator('[data-tool="execute"]').last().getByRole("button").click();
      await tab.page
        .locator('[data-tool="execute"]')
        .last()
        .evaluate((at) => at.scrollIntoView({ block: "start" }));
    },
  },
  {
    name: "tools-action-asked",
    play: (tab) => tab.at("approval").evaluate((at) => at.scrollIntoView({ block: "center" })),
  },
  {
    name: "tools-end",
    play: async (tab) => {
      await tab.at("approve").click();
      await tab.page.locator('[data-tool="deleteFiles"] [data-testid="approval"]').waitFor();
      await tab.settles();
      await tab.at("approve").click();
      await tab.page.locator('[data-testid="run"][data-state="waiting"]').waitFor();
      const picture = tab.page.locator(".tool-picture");
      if ((await picture.count()) > 0) await picture.evaluate((at) => at.scrollIntoView({ block: "center" }));
    },
  },
];

const PICTURE = `<svg xmlns="http://www.w3.org/2000/svg" width="320" height="180"><rect width="320" height="180" fill="teal"/><circle cx="160" cy="90" r="60" fill="gold"/></svg>`;

async function play(
  shots: readonly Shot[],
  app: App,
  browser: Browser,
  size: (typeof SIZES)[number],
  colorScheme: "light" | "dark",
) {
  const context = await browser.newContext({
    viewport: size,
    colorScheme,
    isMobile: size.width < 500,
    hasTouch: size.width < 500,
  });
  const page = await context.newPage();
  const tab = new Tab(page, app.url, watchTrouble(page));
  await tab.open("/");
  for (const [index, shot] of shots.entries()) {
    await shot.play(tab);
    await page.evaluate(() => {
      for (const animation of document.getAnimations()) {
        if (animation.effect?.getComputedTiming().endTime !== Infinity) animation.finish();
      }
    });
    const path = join(folder, `${size.width}-${colorScheme}-${String(index + 1).padStart(2, "0")}-${shot.name}.png`);
    await page.screenshot({ path });
    console.log(path);
  }
  for (const trouble of tab.trouble.list()) console.error(`${size.width} ${colorScheme}: ${trouble}`);
  await context.close();
}

/** `npm run screenshots -- helpers` takes those of helpers only, `-- context` those of versions and the window, `-- tools`
 * those of the tour of all tools. */
const parts = { chat: SHOTS, helpers: HELPER_SHOTS, context: CONTEXT_SHOTS, tools: TOOL_SHOTS };
const named = Object.entries(parts).filter(([name]) => process.argv.includes(name));
const chosen = (named.length > 0 ? named : Object.entries(parts)).map(([, shots]) => shots);
if (named.length === 0) await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
// The app is bundled as it is for tests, into a folder that finds the packages.
const bundles = join(import.meta.dirname, "..", "node_modules", ".cache", `perdure-screenshots-${process.pid}`);
process.env.PERDURE_RUN_FOLDER = bundles;
const [app, browser] = await Promise.all([startApp({ delayMs: DELAY_MS }), launchBrowser()]);
try {
  for (const size of SIZES) {
    for (const shots of chosen) await Promise.all(SCHEMES.map((scheme) => play(shots, app, browser, size, scheme)));
  }
} finally {
  await browser.close();
  await app.close();
  await rm(bundles, { recursive: true, force: true });
}
