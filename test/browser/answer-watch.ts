import type { Page } from "playwright-core";

declare global {
  interface Window {
    answerSizes: number[];
  }
}

/**
 * Notes how many words the last answer has whenever the page changes, in this page and after each reload. What was
 * there for a blink is noted too, which looking at intervals would miss.
 */
export async function watchAnswer(page: Page): Promise<() => Promise<number[]>> {
  await page.addInitScript(watch);
  await page.evaluate(watch);
  return () => page.evaluate(() => window.answerSizes);
}

/** Runs in the page. */
function watch(): void {
  window.answerSizes = [];
  const note = () => {
    const answer = [...document.querySelectorAll('[data-testid="message"][data-role="assistant"]')].at(-1);
    const texts = [...(answer?.querySelectorAll(".message-parts > .markdown") ?? [])].map((text) => text.textContent);
    const size = texts.join("\n").match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
    if (size !== (window.answerSizes.at(-1) ?? 0)) window.answerSizes.push(size);
  };
  new MutationObserver(note).observe(document, { childList: true, subtree: true, characterData: true });
}
