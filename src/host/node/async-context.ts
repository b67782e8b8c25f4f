import { AsyncLocalStorage } from "node:async_hooks";
import type { AsyncContext } from "../../port.ts";

const storage = new AsyncLocalStorage<unknown>();

/** One storage for all hosts of the process: a value is only ever read by the code that it was set for. */
export const asyncContext: AsyncContext = {
  run: (value, work) => storage.run(value, work),
  get: () => storage.getStore(),
};
