// For programs of these tests: a log whose writes are the points at which the harness can kill the process.
import type { RowLog } from "perdure/collections";
import { crashPoint } from "../../../src/testing/crash/child.ts";
import { openSessionLog } from "./open-log.ts";

/** The log of the session that the driver named. Each write counts when it is durable, before its writer hears of it. */
export function openCountedLog(): RowLog {
  const { log } = openSessionLog(process.env.SESSION ?? "");
  const commit = crashPoint();
  const write = log.write.bind(log);
  log.write = async (one) => {
    const receipt = await write(one);
    commit();
    return receipt;
  };
  return log;
}

/** How long a worker that is gone keeps what it has claimed. Its next life does not wait for it. */
export const LEASE_MS = Number(process.env.LEASE_MS ?? 10_000);
