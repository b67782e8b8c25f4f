import { maxIterations, type AnyTextAdapter, type AnyTool, type ModelMessage } from "@tanstack/ai";
import { and, eq, inArray, or } from "@tanstack/db";
import { PerdureError } from "../../base/error.ts";
import { durableChat } from "../answer/durable-chat.ts";
import { createApprovals } from "../approval/approvals.ts";
import { durableToolOf, makeDurableTool } from "../call/durable-tool.ts";
import { createToolExecutionEffect } from "../call/executor.ts";
import type { ToolLike, ToolRun } from "../call/types.ts";
import type { AgentMessage, ToolCallRecord } from "../contract.ts";
import type { StreamHeaders } from "../log/durable-streams/stream-http.ts";
import { openStreamLog } from "../log/durable-streams/stream-log.ts";
import type { RowLog } from "../log/row-log.ts";
import { rowsOf } from "../log/rows.ts";
import type { Claims } from "../worker/claim.ts";
import { createClaims } from "../worker/claims.ts";
import { agentCollections, type AgentCollections } from "./agent-collections.ts";
import { AnswerRows } from "./answer-rows.ts";
import type { AgentContext, AgentGenerate, AgentHooks, AgentReply, CollectionAgentConfig } from "./config.ts";
import { DEFAULT_WINDOW, contextOf } from "./history.ts";
import { summarizeOldMessages } from "./summary.ts";

/** When and how the older part of a conversation is summarized. */
interface AutoSummarizeOptions {
  /** From how many messages on that no summary covers. */
  readonly threshold: number;
  /** How many of the latest messages stay as they are. */
  readonly windowSize: number;
  /** Writes the summaries; a cheaper model will do. */
  readonly adapter: AnyTextAdapter;
}

/** Where the rows are. */
type DurableAgentSource =
  /** A Durable Stream; opened now, closed with the agent. */
  | {
      readonly streamUrl: string | URL;
      readonly headers?: StreamHeaders;
      readonly log?: never;
      readonly collections?: never;
    }
  /** An open log of any kind (`openStreamLog`, `openAgentLog`, `openLocalLog`). It stays open. */
  | { readonly log: RowLog; readonly streamUrl?: never; readonly headers?: never; readonly collections?: never }
  /** Collections of {@link agentCollections} that several agents of this process share. They stay open. */
  | {
      readonly collections: AgentCollections;
      readonly streamUrl?: never;
      readonly headers?: never;
      readonly log?: never;
    };

/** What is asked of an agent on collections, and has another meaning or no meaning here. */
type Own = "collections" | "tools" | "generate" | "pendingWork" | "claims" | "hooks";

/** Options of {@link durableAgent}. */
export type DurableAgentOptions<TWake = never> = Omit<CollectionAgentConfig<AgentCollections, TWake>, Own> &
  DurableAgentSource & {
    /**
     * Tools with an implementation run in the agent's process. Those without are durable: their calls are rows of `toolCalls`,
     * executed by whoever runs `createToolExecutionEffect`. Tools that need approval are durable too; if implemented, the agent
     * runs them itself once the call is allowed.
     */
    readonly tools?: readonly AnyTool[];
    /** For calls of durable tools. `hold` (default): the answer waits. `suspend`: it ends, and resumes with all results. */
    readonly toolMode?: "hold" | "suspend";
    readonly generate?: AgentGenerate<AgentMessage>;
    readonly autoSummarize?: AutoSummarizeOptions;
    /** How many of the latest messages the model is shown. 50 by default; with `autoSummarize` all that is not covered. */
    readonly windowSize?: number;
    /** How often the model may be called for one answer. 20 by default. */
    readonly maxModelCalls?: number;
    /** Whether one runner of this agent works at a time, anywhere. Default true; false with a `runtime`, whose wakes lease. */
    readonly exclusive?: boolean;
    /** How long a runner may be silent before another one takes over; 30 s by default. */
    readonly leaseMs?: number;
    /**
     * The runner's name. A process restarted under it goes on without waiting for its old lease. Never share it between two at
     * once.
     */
    readonly owner?: string;
  };

const DEFAULT_MODEL_CALLS = 20;

/** Configures an agent that keeps all it does in a log: any process can carry its work on. Pass it to `createAgent`, once. */
export function durableAgent<TWake = never>(
  options: DurableAgentOptions<TWake>,
): CollectionAgentConfig<AgentCollections, TWake> {
  const source = openSource(options);
  const { collections } = source;
  const exclusive = options.exclusive ?? options.runtime === undefined;
  const { claims: collection } = collections;
  const { leaseMs, owner } = options;
  const claims = exclusive ? createClaims({ collection, leaseMs, owner }) : undefined;
  const approvals = approvalTools(options.name, options.tools ?? [], collections, claims, options.onFailure);
  const generations = new AnswerRows(options.name, options.adapter, collections, approvals.tools);
  return {
    ...options,
    collections,
    tools: approvals.tools,
    buildMessages: options.buildMessages ?? ((pending) => buildMessages(options, collections, pending)),
    generate: options.generate ?? ((input) => generate(options, collections, generations, input)),
    claims,
    hooks: {
      ...generations.hooks(),
      ...(options.autoSummarize === undefined ? {} : { afterTurn: summarizer(options, collections) }),
      dispose: async () => {
        await approvals.dispose();
        await claims?.dispose();
        await source.close();
      },
    },
  };
}

function openSource(options: DurableAgentSource): { collections: AgentCollections; close: () => Promise<void> } {
  if (options.collections !== undefined) return { collections: options.collections, close: async () => {} };
  const { streamUrl, headers } = options;
  const own = streamUrl === undefined ? undefined : openStreamLog({ url: streamUrl, headers });
  const log = options.log ?? own;
  if (log === undefined) {
    throw new PerdureError("bad_config", 'A durable agent needs "streamUrl", "log" or "collections".');
  }
  const collections = agentCollections(log);
  const close = async () => {
    await Promise.all(Object.values(collections).map((one) => (one as { cleanup(): Promise<void> }).cleanup()));
    await own?.close();
  };
  return { collections, close };
}

async function buildMessages(
  options: Pick<DurableAgentOptions, "name" | "windowSize" | "autoSummarize">,
  { messages, summaries }: AgentCollections,
  pending: readonly AgentMessage[],
): Promise<ModelMessage[]> {
  // What is not covered yet must not fall out of the window before it is.
  const fallback = options.autoSummarize === undefined ? DEFAULT_WINDOW : Number.MAX_SAFE_INTEGER;
  const windowSize = options.windowSize ?? fallback;
  return contextOf(options.name, rowsOf(messages).all(), rowsOf(summaries).all(), { windowSize, pending });
}

/** One run of an answer, from wherever the run before it has ended. */
async function generate(
  options: Pick<DurableAgentOptions, "toolMode" | "maxModelCalls">,
  collections: AgentCollections,
  generations: AnswerRows,
  input: Parameters<AgentGenerate<AgentMessage>>[0],
): Promise<AgentReply> {
  const { adapter, messages, tools, instructions, signal, context } = input;
  const { when, producer } = context.fence;
  const seen = generations.beforeRun();
  const result = await durableChat({
    adapter,
    systemPrompts: [instructions],
    messages,
    tools,
    toolCalls: { collection: collections.toolCalls },
    chunks: { collection: collections.chunks },
    turns: collections.turns,
    generationId: context.generationId,
    mode: options.toolMode ?? "hold",
    signal,
    when,
    producer,
    agentLoopStrategy: maxIterations(options.maxModelCalls ?? DEFAULT_MODEL_CALLS),
    context: { agentName: context.agentName, callers: context.callers },
  });
  if (result.outcome === "completed") {
    return { content: result.lastText === "" ? result.content : result.lastText, messages: result.messages };
  }
  if (result.pending.length === 0) {
    const what = result.interrupts.map(({ reason }) => reason).join(", ");
    throw new PerdureError("call_failed", `The answer waits for something that this agent cannot provide: ${what}.`);
  }
  generations.afterSuspension(context.generationId, result.pending, seen);
  return { content: "", outcome: "suspended" };
}

function summarizer(
  options: Pick<DurableAgentOptions, "name" | "autoSummarize">,
  collections: AgentCollections,
): NonNullable<AgentHooks["afterTurn"]> {
  return async ({ signal, fence }: AgentContext) => {
    if (options.autoSummarize === undefined) return;
    await summarizeOldMessages(options.name, collections, { ...options.autoSummarize, signal, fence });
  };
}

/** Makes tools that need approval durable: nothing waits in memory for a person. Implemented ones run here once allowed. */
function approvalTools(
  agentName: string,
  tools: readonly AnyTool[],
  collections: AgentCollections,
  claims: Claims | undefined,
  onFailure: ((error: Error) => void) | undefined,
): { readonly tools: readonly AnyTool[]; dispose(): Promise<void> } {
  const asking = tools.filter((tool) => tool.needsApproval === true && durableToolOf(tool) === undefined);
  const mine = asking.filter((tool) => tool.execute !== undefined);
  const made = tools.map((tool) =>
    asking.includes(tool)
      ? (makeDurableTool(tool as ToolLike, collections.toolCalls, { mode: "suspend" }) as AnyTool)
      : tool,
  );
  if (mine.length === 0) return { tools: made, dispose: async () => {} };
  const approvals = createApprovals({ events: collections.approvals });
  const { toolCalls, generations } = collections;
  const names = mine.map((tool) => tool.name);
  const effect = createToolExecutionEffect({
    query: (q) =>
      q
        .from({ call: toolCalls })
        .where(({ call }) =>
          and(inArray(call.name, names), or(eq(call.status, "pending"), eq(call.status, "executing"))),
        ),
    tools: mine as readonly ToolLike[],
    implementations: Object.fromEntries(mine.map((tool) => [tool.name, implementation(agentName, tool)])),
    collection: toolCalls,
    generations,
    approvals,
    claims,
    onProblem: onFailure,
  });
  return {
    tools: made,
    dispose: async () => {
      await effect.dispose();
      approvals.dispose();
    },
  };
}

/** A tool's own implementation, called as `chat()` calls it. */
function implementation(agentName: string, tool: AnyTool) {
  return async (args: unknown, run: ToolRun<ToolCallRecord>): Promise<unknown> =>
    tool.execute?.(args, {
      toolCallId: run.row.toolCallId,
      abortSignal: run.signal,
      context: { agentName, generationId: run.row.generationId, idempotencyKey: run.idempotencyKey },
      emitCustomEvent: () => {},
    }) as unknown;
}
