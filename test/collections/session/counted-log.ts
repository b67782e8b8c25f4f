// For programs of these tests: a log whose writes are the points at which the harness can kill the process.
import type { RowLog } from "perdure/collections";
import { crashPoint, report } from "../../../src/testing/crash/child.ts";
import { openSessionLog } from "./open-log.ts";

/** The log of the session that the driver named. Each write counts when it is durable, before its writer hears of it. */
export function openCountedLog(): RowLog {
  const { log } = openSessionLog(process.env.SESSION ?? "");
  const commit = crashPoint();
  const write = log.write.bind(log);
  log.write = async (one) => {
    const isResult = one.changes.some(({ table, value }) => table === "toolCalls" && value?.status === "completed");
    if (isResult && process.env.STOP_AT_RESULT !== undefined) return writeAfterStop(() => write(one));
    const receipt = await write(one);
    commit();
    return receipt;
  };
  return log;
}

/**
 * Stops this process, as a machine that is put to sleep does, when all is decided and nothing is sent. It finds itself
 * woken on the next line, and no timer or message of the meantime comes before the write.
 */
async function writeAfterStop(write: () => ReturnType<RowLog["write"]>): ReturnType<RowLog["write"]> {
  report({ type: "stopping" });
  process.kill(process.pid, "SIGSTOP");
  const receipt = await write();
  report({ type: "written", applied: receipt.applied });
  return receipt;
}

/** How long a worker that is gone keeps what it has claimed. Its next life does not wait for it. */
export const LEASE_MS = Number(process.env.LEASE_MS ?? 10_000);
