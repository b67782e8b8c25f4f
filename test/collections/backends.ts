import { openLocalLog } from "perdure/collections";
import type { RowLog } from "perdure/collections";

/** One place that keeps rows, while it runs. */
export interface TestPlace {
  /** A log of its own over the same rows, ready: what another process would open. Closed by `stop`. */
  open(): Promise<RowLog>;
  stop(): Promise<void>;
}

/** A kind of place. */
export interface TestBackend {
  readonly name: string;
  start(): Promise<TestPlace>;
}

/** This process's memory: all who open it have the same log. */
const local: TestBackend = {
  name: "local",
  start: async () => {
    const log = openLocalLog();
    return { open: async () => log, stop: () => log.close() };
  },
};

/** Every kind of place there is; what is promised of collections is asked of each of them. */
export const backends: readonly TestBackend[] = [local];
