import type { Locator } from "playwright-core";
import { expect } from "vitest";
import { soon } from "./soon.ts";
import type { Tab } from "./tab.ts";

/** A phone, for the context of a tab. */
export const PHONE = {
  viewport: { width: 375, height: 700 },
  deviceScaleFactor: 2,
  isMobile: true,
  hasTouch: true,
};
/** Smaller targets are hard to hit with a finger. */
const LEAST_TARGET_PX = 32;

/** Fails when something is wider than the screen, except where it scrolls by itself. */
export async function expectFits(tab: Tab): Promise<void> {
  const wide = await tab.page.evaluate(() =>
    [document.documentElement, ...document.querySelectorAll("body, main, .scroll, .column, .dock, .topbar, .message")]
      .filter((at) => at.scrollWidth > at.clientWidth + 1 && at.clientWidth > 0)
      .map((at) => `${at.tagName}.${at.className}: ${at.scrollWidth} in ${at.clientWidth}`),
  );
  expect(wide).toEqual([]);
  expect(await tab.page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(375);
}

/** Fails unless a finger can find and hit it: in sight without hovering, large enough, nothing in front of it. */
export async function expectReachable(target: Locator): Promise<void> {
  await target.scrollIntoViewIfNeeded();
  await soon(() =>
    target.evaluate((at) => {
      const { left, top, width, height } = at.getBoundingClientRect();
      const front = document.elementFromPoint(left + width / 2, top + height / 2);
      let opacity = 1;
      for (let up: Element | null = at; up !== null; up = up.parentElement)
        opacity *= Number(getComputedStyle(up).opacity);
      return {
        what: at.getAttribute("data-testid"),
        width: Math.round(width),
        height: Math.round(height),
        inFront: front !== null && at.contains(front),
        seen: opacity > 0.3,
      };
    }),
  ).toEqual({
    what: expect.any(String),
    width: expect.toSatisfy((px: number) => px >= LEAST_TARGET_PX),
    height: expect.toSatisfy((px: number) => px >= LEAST_TARGET_PX),
    inFront: true,
    seen: true,
  });
}
