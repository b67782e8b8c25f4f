import { PerdureError } from "../../base/error.ts";
import { rowsOf } from "../rows.ts";
import type { RowProducer } from "../log/row-log.ts";
import { catchUp } from "../runner/catch-up.ts";
import { checkpointsOf, producerOf } from "../runner/checkpoint.ts";
import type { RunnerLifecycleAdapter } from "../runner/lifecycle.ts";
import { runWithLifecycle } from "../runner/run.ts";
import type { DurableStreamsWebhookAdapter } from "../runner/webhook-adapter.ts";
import { handleDurableStreamsWake } from "../runner/webhook-handler.ts";
import type { Agent, AgentCollectionsBase, AgentRuntime } from "./config.ts";
import type { Seat } from "./seat.ts";

type WokenAgent = Agent<AgentCollectionsBase | undefined, unknown>;

/** The parts of a configuration that wakes need. */
interface WakeConfig {
  readonly name: string;
  readonly runtime?: AgentRuntime<unknown>;
}

/** See `runWake` of `Agent`. */
export async function runWake(
  agent: WokenAgent,
  seat: Seat,
  config: WakeConfig,
  wake: unknown,
  options: { readonly signal?: AbortSignal } = {},
): Promise<{ completed: boolean; cycles: number }> {
  const { wakeAdapter, drain } = runtimeOf(config);
  const log = agent.collections === undefined ? undefined : rowsOf(agent.collections.messages).log;
  return runWithLifecycle(
    wake,
    wakeAdapter,
    async (session) => {
      await agent.ready;
      if (log !== undefined) await catchUp(session, [log]);
      const producer = log === undefined ? undefined : sessionProducer(config.name, session.fenceToken);
      const leave = seat.enter({ fence: producer === undefined ? {} : { producer }, signal: session.signal });
      try {
        const drained = await agent.drainUntilIdle({
          ...drain,
          signal: session.signal,
          lifecycle: {
            heartbeat: () => session.heartbeat(),
            checkpoint: (checkpoints) => session.checkpoint(checkpoints),
          },
          ...(log === undefined ? {} : { buildCheckpoint: () => checkpointsOf(log) }),
        });
        await session.complete({ done: drained.completed });
        return drained;
      } finally {
        leave();
      }
    },
    options,
  );
}

/** See `handleWake` of `Agent`. */
export async function handleWake(
  agent: WokenAgent,
  config: WakeConfig,
  request: Request,
  options: { waitUntil?: (work: Promise<unknown>) => void } = {},
): Promise<Response> {
  const { wakeAdapter } = runtimeOf(config);
  if (!isWebhook(wakeAdapter)) {
    throw new PerdureError(
      "bad_config",
      `The wake adapter of the agent "${config.name}" is not one of webhooks: call runWake with its wakes.`,
    );
  }
  return handleDurableStreamsWake({
    request,
    adapter: wakeAdapter,
    run: (wake, { signal }) => agent.runWake(wake, { signal }),
    ...(options.waitUntil === undefined ? {} : { waitUntil: options.waitUntil }),
  });
}

function runtimeOf(config: WakeConfig): AgentRuntime<unknown> {
  if (config.runtime !== undefined) return config.runtime;
  throw new PerdureError("bad_config", `The agent "${config.name}" has no runtime: give it a wakeAdapter.`);
}

/** A transport that numbers its runners fences their writes too; one that does not leaves that to claims. */
function sessionProducer(name: string, fenceToken: string | undefined): RowProducer | undefined {
  const epoch = Number(fenceToken);
  if (fenceToken === undefined || !Number.isSafeInteger(epoch) || epoch < 0) return undefined;
  return producerOf(`wake:${name}`, { fenceToken });
}

function isWebhook(
  adapter: RunnerLifecycleAdapter<unknown>,
): adapter is RunnerLifecycleAdapter<unknown> & DurableStreamsWebhookAdapter {
  return "verify" in adapter && "isKnown" in adapter;
}
