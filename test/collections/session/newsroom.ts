// The example as its users run it, and tabs with its page.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Browser, Locator, Page } from "playwright-core";
import { onTestFailed, onTestFinished } from "vitest";
import { type Trouble, watchTrouble } from "../../browser/trouble.ts";
import { type Run, runScript } from "../../examples/run-example.ts";
import { eventually } from "../../host/open-host.ts";
import { makeOnce } from "../../support/make-once.ts";
import { runFolder } from "../../support/run-folder.ts";
import { PATIENCE_MS } from "../../support/until.ts";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Built once in a run, as users get it: in a process of its own, because NODE_ENV of tests is another. */
async function builtPage(): Promise<string> {
  const pages = join(runFolder(), "pages-production");
  await makeOnce(join(pages, "newsroom"), (part) => {
    const work = `import("./examples/shared/page.ts").then((it) => it.buildPageTo("examples/newsroom", process.argv[1]))`;
    const env = { ...process.env, NODE_ENV: "production" };
    return run(process.execPath, ["--conditions=perdure-source", "--eval", work, part], { cwd: root, env });
  });
  return pages;
}

/** Starts the example with these arguments; killed at the end of the test. @returns what to open */
export async function startNewsroom(dir: string, args: readonly string[]): Promise<Run & { readonly url: string }> {
  const env = { PERDURE_PAGES: await builtPage(), WORD_MS: "25", WORK_MS: "50" };
  const example = runScript(dir, ["newsroom", ...args], env);
  onTestFailed(() => console.error(example.output()));
  const url = await eventually(() => {
    if (example.child.exitCode !== null) throw new Error(example.output());
    return /Open (\S+)/.exec(example.output())?.[1];
  }, "the example says where it is");
  return { ...example, url };
}

/** A tab in a window of its own, and what a person does there. */
export class Desk {
  readonly page: Page;
  readonly trouble: Trouble;

  private constructor(page: Page) {
    this.page = page;
    this.trouble = watchTrouble(page);
    page.setDefaultTimeout(PATIENCE_MS);
  }

  static async open(browser: Browser, url: string, viewport: { width: number; height: number }): Promise<Desk> {
    const context = await browser.newContext({ viewport, reducedMotion: "reduce" });
    onTestFinished(() => context.close());
    const desk = new Desk(await context.newPage());
    // A stream that nobody has written to yet is not there; the page makes it.
    desk.trouble.expect(/404/);
    await desk.page.goto(url);
    await desk.button("Send").waitFor();
    return desk;
  }

  button(name: string): Locator {
    return this.page.getByRole("button", { name, exact: true });
  }

  get input(): Locator {
    return this.page.getByRole("textbox", { name: "Message" });
  }

  async send(text: string): Promise<void> {
    await this.input.fill(text);
    await this.button("Send").click();
  }

  /** The messages, and what is being written, in order. */
  async texts(): Promise<string[]> {
    return this.page.locator(".room p").allTextContents();
  }

  /** What is being written now. */
  live(): Locator {
    return this.page.locator(".live p");
  }

  shows(text: string | RegExp): Promise<void> {
    return this.page.getByText(text).first().waitFor();
  }
}
