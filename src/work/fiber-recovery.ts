import { errorText } from "../base/error.ts";
import type { FiberRow } from "../store/fiber.ts";
import { orphanedFibers, readFiber } from "../store/fiber.ts";
import { runCallback } from "./callback.ts";
import type { FiberRunner } from "./fiber-run.ts";
import type { FiberFact, FiberMove } from "./fiber-state.ts";
import { parseRecoveryResult, toRecoveryContext } from "./fiber-view.ts";
import { encodeJson } from "../base/json.ts";
import type { WorkContext } from "./work.ts";

/** The agent's method that is asked what to do about a closure that died with its process. */
const HOOK = "onFiberRecovered";

/** How long a recovery hook that throws is called again. */
export const DEFAULT_RECOVERY_MAX_AGE_MS = 24 * 60 * 60 * 1000;

/**
 * The first look of a new life: what an earlier one left running is made to wait again, or to wait for its
 * hook. Starts nothing. All in one transaction, so a crash in it leaves everything to the next life.
 */
export function adoptOrphans(context: WorkContext, runner: FiberRunner): void {
  const { host } = context;
  const ids = orphanedFibers(host);
  if (ids.length === 0) return;
  host.tx(() => {
    for (const id of ids) {
      const row = readFiber(host, id);
      if (row !== undefined) runner.move(row, { type: "orphaned", hasMethod: context.method(row.name) !== undefined });
    }
  });
}

/**
 * Calls the recovery hook for a row that is `recovering` and stores what follows from its answer. `ended` is
 * called when that is stored. A hook that is not there is one that has nothing to say.
 */
export function callRecoveryHook(
  context: WorkContext,
  runner: FiberRunner,
  row: FiberRow,
  maxAgeMs: number,
  ended: () => void,
): void {
  const { id, name, starts: attempt } = row;
  let move: FiberMove | undefined;
  context.host.emit("fiber:recovered", { id, name, attempt });
  runCallback(context, runner.halted, {
    cause: row.cause,
    call: () => context.method(HOOK)?.(toRecoveryContext(row)),
    store: (outcome) => {
      const threw = (error: unknown): FiberFact => {
        context.host.report(error, { stage: HOOK });
        return { type: "hook_threw", error: errorText(error), now: context.host.clock.now(), maxAgeMs };
      };
      let fact: FiberFact;
      try {
        fact = outcome.ok ? { type: "hook_returned", result: checkResult(outcome.value) } : threw(outcome.error);
      } catch (error) {
        fact = threw(error);
      }
      move = runner.move(row, fact)?.move;
    },
    stored: () => {
      runner.tell(row, move);
      ended();
    },
  });
}

/** Refuses before anything is written what could not be written. */
function checkResult(value: unknown): ReturnType<typeof parseRecoveryResult> {
  const result = parseRecoveryResult(value);
  encodeJson(result?.snapshot, "The snapshot");
  if (result?.status === "completed") encodeJson(result.metadata, "The metadata");
  return result;
}
