import type { Browser, BrowserContext, BrowserContextOptions } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { type App, type AppOptions, startApp } from "./app.ts";
import { launchBrowser } from "./browser.ts";
import { type Link, openLink } from "./link.ts";
import { Tab } from "./tab.ts";
import { watchTrouble } from "./trouble.ts";

/** How a tab is opened. */
export interface TabOptions {
  /** Opens it beside this one, in the same window: they share storage. Default: a window of its own. */
  readonly beside?: Tab;
  /** Where it goes, after the app's address. Default: the front page. */
  readonly path?: string;
  /** The test id of what is there when it is loaded. Default: the composer. */
  readonly waitsFor?: string;
  /** Goes through this link instead of straight to the app. */
  readonly through?: Link;
  readonly context?: BrowserContextOptions;
}

/** One app and one browser for the tests of a file. */
export interface Stage {
  readonly app: App;
  readonly browser: Browser;
  openTab(options?: TabOptions): Promise<Tab>;
  /** A wire to the app that can be cut. Gone at the end of the test. */
  openLink(): Promise<Link>;
}

const DESKTOP = { width: 1280, height: 800 };

/**
 * Starts the app and a browser before the tests of this file. After each test all of its tabs are closed, and it fails
 * when one of them had trouble that the test did not expect.
 */
export function useStage(options: AppOptions | (() => Promise<AppOptions>) = {}): Stage {
  let app: App | undefined;
  let browser: Browser | undefined;
  const tabs: Tab[] = [];
  const contexts: BrowserContext[] = [];
  const links: Link[] = [];

  beforeAll(async () => {
    const settings = typeof options === "function" ? await options() : options;
    browser = await launchBrowser();
    app = await startApp(settings);
  }, 60_000);
  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") console.error(`The app complained:\n${app?.complaints()}`);
    const trouble = tabs.splice(0).flatMap((tab) => tab.trouble.list());
    await Promise.all(contexts.splice(0).map((context) => context.close()));
    await Promise.all(links.splice(0).map((link) => link.close()));
    expect(trouble, "trouble in a tab").toEqual([]);
  });
  afterAll(async () => {
    await browser?.close();
    await app?.close();
  });

  return {
    get app() {
      return there(app);
    },
    get browser() {
      return there(browser);
    },
    async openTab({ beside, path = "/", waitsFor, through, context: extra } = {}) {
      // Without animations: drawing them takes more of the machine than all else that a page does.
      const context =
        beside?.page.context() ??
        (await there(browser).newContext({ viewport: DESKTOP, reducedMotion: "reduce", ...extra }));
      if (!contexts.includes(context)) contexts.push(context);
      const page = await context.newPage();
      const origin = through?.url ?? beside?.origin ?? there(app).url;
      const tab = new Tab(page, origin, watchTrouble(page));
      tabs.push(tab);
      await tab.open(path, waitsFor);
      return tab;
    },
    async openLink() {
      const link = await openLink(() => there(app).port);
      links.push(link);
      return link;
    },
  };
}

function there<T>(thing: T | undefined): T {
  if (thing === undefined) throw new Error("The stage is there inside of tests only.");
  return thing;
}
