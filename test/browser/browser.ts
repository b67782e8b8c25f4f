import { type Browser, chromium } from "playwright-core";
import { chromiumPath } from "./chromium-path.ts";

/**
 * Starts a real Chromium without a window. The packed browser's own arguments are not used: they put everything into
 * one process, where closing one context ends the browser, and they switch off the rules between origins.
 */
export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: await chromiumPath(),
    args: ["--disable-gpu", "--font-render-hinting=none"],
    headless: true,
  });
}
