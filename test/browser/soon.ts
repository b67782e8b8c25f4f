import { expect } from "vitest";
import { PATIENCE_MS } from "../support/until.ts";
import { LOOK_EVERY_MS } from "./tab.ts";

/** `expect` on something that is looked at again until it holds. */
export function soon<T>(look: () => T | Promise<T>) {
  return expect.poll(look, { timeout: PATIENCE_MS, interval: LOOK_EVERY_MS });
}
