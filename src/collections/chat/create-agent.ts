import { createCollection, type Context } from "@tanstack/db";
import { PerdureError } from "../../base/error.ts";
import type { AgentMessage, ClaimRecord } from "../contract.ts";
import { logCollectionOptions, logUtilsOf } from "../log/collection-options.ts";
import { queryRoot, type QueryRow, type RowQuery } from "../log/query.ts";
import type { RowProducer } from "../../wire/row-frames.ts";
import { rowsOf } from "../log/rows.ts";
import { catchUp, checkpointsOf, producerOf } from "../worker/checkpoint.ts";
import type { Claims } from "../worker/claim.ts";
import { createClaims } from "../worker/claims.ts";
import { drainUntilIdle } from "../worker/drain.ts";
import { runWithLifecycle, type RunnerLifecycleAdapter } from "../worker/lifecycle.ts";
import { handleDurableStreamsWake, type DurableStreamsWebhookAdapter } from "../worker/webhook.ts";
import { CLAIMS } from "./agent-collections.ts";
import { CollectionMailbox } from "./collection-mailbox.ts";
import type {
  Agent,
  AgentCollectionsBase,
  AgentContext,
  AgentDrainOptions,
  AgentGenerateInput,
  AgentRuntime,
  CollectionAgentConfig,
  QueryAgentConfig,
} from "./config.ts";
import type { Mailbox, Turn } from "./mailbox.ts";
import { QueryMailbox } from "./query-mailbox.ts";
import { agentTools, watchCalls } from "./reference.ts";
import { watchForResponse } from "./response.ts";
import { AgentRunner } from "./runner.ts";
import type { Seat } from "./seat.ts";

const NEVER = new AbortController().signal;

/**
 * Starts an agent. It waits for its rows, answers those that are pending, then whatever arrives: one turn at a time, everything
 * that waits in one turn (requests of other agents each in their own). A failed try is repeated by `retry`; after the last one
 * the message is marked `processed` with `error`.
 *
 * On collections of a log a turn is two writes: one takes the messages, the other marks them processed and inserts the reply, and
 * is refused if another runner took the messages in between. So each message gets one reply, however many runners there are and
 * wherever one dies.
 * @throws PerdureError `bad_config` when two tools share a name, or nothing says where its messages are.
 */
export function createAgent<TCollections extends AgentCollectionsBase, TWake = never>(
  config: CollectionAgentConfig<TCollections, TWake>,
): Agent<TCollections, TWake>;
export function createAgent<TContext extends Context>(
  config: QueryAgentConfig<QueryRow<TContext>, RowQuery<TContext>>,
): Agent<undefined>;
export function createAgent<TRow extends object>(config: QueryAgentConfig<TRow>): Agent<undefined>;
export function createAgent(
  config: CollectionAgentConfig<AgentCollectionsBase, unknown> | QueryAgentConfig<object, unknown>,
): Agent<AgentCollectionsBase | undefined, unknown> {
  requireToolNames(config);
  requireRows(config);
  return config.collections === undefined ? queryAgent(config) : collectionAgent(config);
}

type AnyAgent = Agent<AgentCollectionsBase | undefined, unknown>;

function collectionAgent(config: CollectionAgentConfig<AgentCollectionsBase, unknown>): AnyAgent {
  const { collections, hooks, runtime } = config;
  const runner = new AgentRunner<AgentMessage>({
    ...runnerBase(config),
    collections,
    live: config.live ?? runtime === undefined,
    mailbox: (wake) => {
      // Alone in its process, it must not take what another process has just begun; with a lease it knows better.
      const adopts = (config.claims ?? false) !== false || runtime !== undefined ? "all" : "at-start";
      return new CollectionMailbox(config, adopts, wake);
    },
    afterTurn: hooks?.afterTurn,
    generate: (turn, mailbox, context) => generate(config, turn, mailbox, context),
  });
  return agentOf(config, collections, runner, {
    watchForResponse: (requestId, options) => watchForResponse(config.name, collections.messages, requestId, options),
    dispose: hooks?.dispose,
  });
}

/** What lets one runner of an agent with queries work at a time; undefined where no write can be conditional. */
function claimsBeside(query: RowQuery<Context>): Claims | undefined {
  const root = queryRoot(query);
  const log = root === undefined ? undefined : logUtilsOf(root.collection)?.log;
  if (log === undefined) return undefined;
  const options = logCollectionOptions<ClaimRecord>({ log, name: CLAIMS, getKey: (row) => row.id });
  return createClaims({ collection: createCollection(options) });
}

function queryAgent(config: QueryAgentConfig<object, unknown>): AnyAgent {
  const own = config.claims === undefined ? claimsBeside(config.pendingWork as RowQuery<Context>) : undefined;
  const runner = new AgentRunner<object>({
    ...runnerBase(config),
    ...(own === undefined ? {} : { claims: own }),
    collections: undefined,
    live: config.live ?? true,
    mailbox: (wake) => new QueryMailbox(config, wake),
    generate: (turn, mailbox, context) => generate(config, turn, mailbox, context),
  });
  return agentOf(config, undefined, runner, {
    watchForResponse: async (requestId, options = {}) => {
      if (config.watchForResponse !== undefined) return config.watchForResponse(requestId, options);
      throw new PerdureError(
        "bad_config",
        `The agent "${config.name}" has no collections: pass a watchForResponse to let other agents ask it.`,
      );
    },
    dispose: own === undefined ? undefined : () => own.dispose(),
  });
}

function runnerBase(config: Pick<CollectionAgentConfig, "name" | "retry" | "claims" | "onFailure" | "clock">) {
  return {
    name: config.name,
    retry: config.retry ?? {},
    clock: config.clock,
    claims: config.claims === false ? undefined : config.claims,
    onFailure: config.onFailure ?? ((error: Error) => console.error(`The agent "${config.name}":`, error)),
  };
}

async function generate<TRow extends object>(
  config: Pick<QueryAgentConfig<TRow>, "adapter" | "instructions" | "tools" | "agents"> & {
    generate(input: AgentGenerateInput<TRow>): ReturnType<QueryAgentConfig<TRow>["generate"]>;
  },
  turn: Turn<TRow>,
  mailbox: Mailbox<TRow>,
  context: AgentContext,
) {
  const messages = await mailbox.build(turn, context);
  context.signal.throwIfAborted();
  const { agents = [] } = config;
  // Only who may ask several has something to gain from knowing what else is asked.
  const { adapter, calls } = agents.length > 1 ? watchCalls(config.adapter) : { adapter: config.adapter, calls: [] };
  return config.generate({
    pending: turn.rows,
    messages,
    adapter,
    tools: [...(config.tools ?? []), ...agentTools(agents, context, calls)],
    instructions: config.instructions,
    signal: context.signal,
    context,
  });
}

function agentOf<TRow extends object>(
  config: CollectionAgentConfig<AgentCollectionsBase, unknown> | QueryAgentConfig<object, unknown>,
  collections: AgentCollectionsBase | undefined,
  runner: AgentRunner<TRow>,
  rest: Pick<AnyAgent, "watchForResponse"> & { dispose?: (() => Promise<void>) | undefined },
): AnyAgent {
  const agent: AnyAgent = {
    name: config.name,
    collections,
    ready: runner.ready,
    get state() {
      return runner.state;
    },
    hasPendingWork: async () => {
      await runner.ready;
      return runner.hasPendingWork();
    },
    runGenerationCycle: ({ signal = NEVER } = {}) => runner.runCycle(signal),
    drainUntilIdle: (options: AgentDrainOptions = {}) =>
      drainUntilIdle({
        ...options,
        hasPendingWork: () => agent.hasPendingWork(),
        runCycle: () => runner.runCycle(options.signal ?? NEVER),
      }),
    watchForResponse: rest.watchForResponse,
    runWake: (wake, options) => runWake(agent, runner.seat, config, wake, options),
    handleWake: (request, options) => handleWake(agent, config, request, options),
    dispose: async () => {
      await runner.dispose();
      await rest.dispose?.();
    },
    [Symbol.asyncDispose]: () => agent.dispose(),
  };
  return agent;
}

/** Options of `durableAgent` that were given to `createAgent` itself have neither. */
function requireRows(config: {
  readonly name: string;
  readonly collections?: unknown;
  readonly pendingWork?: unknown;
}): void {
  if (config.collections !== undefined || config.pendingWork !== undefined) return;
  throw new PerdureError(
    "bad_config",
    `The agent "${config.name}" has no messages: give "collections" or "pendingWork", or wrap its options: createAgent(durableAgent({ … })).`,
  );
}

function requireToolNames(config: Pick<CollectionAgentConfig, "name" | "tools" | "agents">): void {
  const names = [
    ...(config.tools ?? []).map((tool) => tool.name),
    ...(config.agents ?? []).map((one) => one.agent.name),
  ];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  throw new PerdureError(
    "bad_config",
    `The agent "${config.name}" has two tools named "${twice}": a model cannot tell them apart. Rename one.`,
  );
}

interface WakeConfig {
  readonly name: string;
  readonly runtime?: AgentRuntime<unknown>;
}

async function runWake(
  agent: AnyAgent,
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

async function handleWake(
  agent: AnyAgent,
  config: WakeConfig,
  request: Request,
  options: { waitUntil?: (work: Promise<unknown>) => void } = {},
): Promise<Response> {
  const { wakeAdapter } = runtimeOf(config);
  if (!isWebhook(wakeAdapter)) {
    throw new PerdureError(
      "bad_config",
      `The wake adapter of the agent "${config.name}" is not a webhook adapter: call runWake with its wakes.`,
    );
  }
  return handleDurableStreamsWake({
    request,
    adapter: wakeAdapter,
    run: (wake, { signal }) => agent.runWake(wake, { signal }),
    waitUntil: options.waitUntil,
  });
}

function runtimeOf(config: WakeConfig): AgentRuntime<unknown> {
  if (config.runtime !== undefined) return config.runtime;
  throw new PerdureError("bad_config", `The agent "${config.name}" has no runtime: pass a wakeAdapter.`);
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
