import { PerdureError } from "../../base/error.ts";
import { sleep, backOff } from "../../base/time.ts";
import type { AgentHost, AgentPath } from "../../port.ts";
import { isGone } from "./run-ends.ts";

/** How often an agent above that is out of reach is asked again. */
const MAX_RETRIES = 5;
const FIRST_WAIT_MS = 50;

/** Calls a method of an agent above; again while that is out of reach, as after a restart. @throws what the last call threw */
export async function askAbove(
  host: AgentHost,
  above: AgentPath,
  method: string,
  args: readonly unknown[],
  signal?: AbortSignal,
): Promise<unknown> {
  for (let tries = 0; ; tries++) {
    try {
      return await host.call(above, method, args);
    } catch (thrown) {
      // What else the framework refuses it would refuse again; code of users fails with errors of its own.
      const again = isGone(thrown) || !PerdureError.is(thrown);
      if (!again || tries === MAX_RETRIES || signal?.aborted === true) throw thrown;
      await sleep(host.clock, backOff(tries + 1, FIRST_WAIT_MS), signal);
    }
  }
}
