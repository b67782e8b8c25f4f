import type { Page } from "playwright-core";

/** What the cards of helpers have shown. */
export interface RunNotes {
  /** In order: `Researcher working`, `Researcher: Reading: The survey 50 %`, `Researcher: lookUp running`. */
  readonly shown: string[];
  /** How far the end of what a helper says was out of sight at most, while it spoke. */
  left: number;
}

declare global {
  interface Window {
    runNotes: RunNotes;
  }
}

/** Notes what the cards show whenever the page changes: what is there for a blink too. */
export async function watchRuns(page: Page): Promise<() => Promise<RunNotes>> {
  await page.evaluate(watch);
  return () => page.evaluate(() => window.runNotes);
}

/** Runs in the page. */
function watch(): void {
  const notes: RunNotes = { shown: [], left: 0 };
  window.runNotes = notes;
  const note = () => {
    for (const run of document.querySelectorAll('[data-testid="run"]')) {
      const name = run.querySelector(".run-name")?.textContent ?? "";
      const progress = [...run.querySelectorAll(".run-progress > p > span")].map((at) => at.textContent);
      const calls = [...run.querySelectorAll('[data-testid="run-call"]')].map(
        (at) => `${name}: ${at.querySelector("code")?.textContent} ${at.getAttribute("data-state")}`,
      );
      const seen = [`${name} ${run.getAttribute("data-state")}`, `${name}: ${progress.join(" ")}`, ...calls];
      for (const line of seen) if (!notes.shown.includes(line)) notes.shown.push(line);
      const box = run.querySelector(".run-words[data-live]");
      if (box !== null) notes.left = Math.max(notes.left, box.scrollHeight - box.scrollTop - box.clientHeight);
    }
  };
  new MutationObserver(note).observe(document, { childList: true, subtree: true, attributes: true });
}
