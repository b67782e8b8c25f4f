import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { AxeResults } from "axe-core";
import type { Page } from "playwright-core";
import { expect } from "vitest";

declare global {
  interface Window {
    axe: { run(context: Document): Promise<AxeResults> };
  }
}

const source = readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** So much of an element is told. */
const SHOWN = 160;

/** What keeps those out who cannot see, point or tell colours apart, in what is shown now: serious things only. */
export async function findBarriers(page: Page): Promise<string[]> {
  const found: string[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(finishAnimations);
    await page.evaluate(await source);
    const { violations } = await page.evaluate(() => window.axe.run(document));
    for (const { id, help, impact, nodes } of violations) {
      if (impact !== "serious" && impact !== "critical") continue;
      found.push(`${colorScheme}: ${id}: ${help}: ${nodes.map(({ html }) => html.slice(0, SHOWN)).join(" | ")}`);
    }
  }
  await page.emulateMedia({ colorScheme: null, reducedMotion: null });
  return found;
}

/** Runs in the page. A colour half way to another is nobody's choice. */
function finishAnimations(): void {
  for (const animation of document.getAnimations()) {
    if (animation.effect?.getComputedTiming().endTime !== Infinity) animation.finish();
  }
}

/** Fails when there are such barriers, in light or in dark. */
export async function expectAccessible(page: Page): Promise<void> {
  expect(await findBarriers(page)).toEqual([]);
}
