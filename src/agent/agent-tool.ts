import type { FlexibleSchema, InferSchema, Tool, ToolExecutionOptions } from "ai";
import { loadAiSdk } from "../base/ai-sdk.ts";
import { withOrigin } from "../context/capabilities.ts";
import { PerdureError } from "../base/error.ts";
import { namesOf, refuseUnknown } from "../base/known-options.ts";
import { newId } from "../base/id.ts";
import type { HostedAgentClass } from "../port.ts";
import { durableTool } from "../tool/define.ts";
import { digestOf } from "../tool/digest.ts";
import type { Agent } from "./agent.ts";
import { getCurrentAgent } from "./current-agent.ts";
import type {
  AgentToolDisplayMetadata,
  AgentToolFailure,
  DetachedAgentToolConfig,
  DetachedRunAgentToolResult,
  RunAgentToolResult,
} from "../parts/runs/types.ts";

/** Options of {@link agentTool}. */
export interface AgentToolOptions<INPUT extends FlexibleSchema, OUTPUT = string> {
  /** What the model reads about when to use it. */
  readonly description: string;
  readonly inputSchema: INPUT;
  /** What the child's output must be; one that is not fails the call. Default: any. */
  readonly outputSchema?: FlexibleSchema<OUTPUT>;
  /** How clients name the run. */
  readonly displayName?: string;
  readonly icon?: string;
  readonly display?: AgentToolDisplayMetadata;
  /** Do not wait: the model gets a receipt, and is told of the end in a turn of its own (`true`), or as configured. */
  readonly detached?: boolean | DetachedAgentToolConfig<Record<string, unknown>>;
  /** The run is stopped after this many milliseconds. Default: no bound. */
  readonly timeoutMs?: number;
}

const agentToolOptionsNames = namesOf<AgentToolOptions<FlexibleSchema>>()(
  "description inputSchema outputSchema displayName icon display detached timeoutMs",
);

/** What the model gets for a run that it does not wait for. */
export interface AgentToolReceipt {
  readonly runId: string;
  readonly status: "running";
  readonly note: string;
}

const RECEIPT = "The work goes on in the background. You are told when it is done.";

/**
 * A tool that has a child agent do the work: a `Think` or `AIChatAgent` with its own conversation, tools and stream, made for the
 * call. After a crash the turn joins the run that it had started. Stopping the turn stops the child and everything below it. When
 * the child brings no result the model reads an {@link AgentToolFailure}.
 */
export function agentTool<INPUT extends FlexibleSchema, OUTPUT = string>(
  cls: HostedAgentClass,
  options: AgentToolOptions<INPUT, OUTPUT>,
): Tool<InferSchema<INPUT>, OUTPUT | AgentToolFailure | AgentToolReceipt> {
  refuseUnknown(options, agentToolOptionsNames, "agentTool()");
  const { description, inputSchema, timeoutMs, detached = false } = options;
  const display = displayOf(options);
  const made = {
    description,
    inputSchema,
    async execute(input: unknown, { toolCallId, abortSignal }: ToolExecutionOptions<unknown>) {
      const { agent, turn } = getCurrentAgent();
      if (agent === undefined) {
        throw new PerdureError("bad_state", "An agent tool runs only within a turn of an agent.");
      }
      // Outside of a turn nothing comes back for the run, and providers count their calls anew each time.
      const runId = turn === undefined ? newId("run") : await runIdOf(agent, turn, toolCallId);
      const request = {
        ...{ input, runId, parentToolCallId: toolCallId },
        ...(display !== undefined && { display }),
      };
      if (detached !== false) {
        const config: object = detached === true ? { notify: true } : detached;
        return receiptOf(
          await agent.runAgentTool(cls, { ...request, detached: config as DetachedAgentToolConfig<Agent<object>> }),
        );
      }
      const given = { ...request, ...(abortSignal !== undefined && { signal: abortSignal }) };
      return outputOf(await agent.runAgentTool<OUTPUT>(cls, given), options.outputSchema);
    },
  };
  // The SDK's own types cannot follow a schema that is not known yet.
  const typed = made as unknown as Tool<InferSchema<INPUT>, OUTPUT | AgentToolFailure | AgentToolReceipt>;
  const durable = durableTool(typed, { replay: "safe", ...(timeoutMs !== undefined && { timeoutMs }) });
  return withOrigin(durable, { kind: "agent", name: options.displayName ?? cls.name });
}

const lastOf = new WeakMap<object, Promise<unknown>>();

/**
 * The same call of the same turn has the same run, in every life. Short, since it names the child too; ordered by when it was
 * asked for, since runs are shown in that order.
 */
async function runIdOf(agent: object, turn: string, toolCallId: string): Promise<string> {
  const both = Promise.all([digestOf(turn, toolCallId), lastOf.get(agent)]);
  lastOf.set(
    agent,
    both.then(
      () => {},
      () => {},
    ),
  );
  return `run_${(await both)[0].slice(0, 24)}`;
}

function displayOf(options: Pick<AgentToolOptions<FlexibleSchema>, "displayName" | "icon" | "display">) {
  const { displayName, icon, display } = options;
  if (displayName === undefined && icon === undefined) return display;
  return { ...(displayName !== undefined && { name: displayName }), ...(icon !== undefined && { icon }), ...display };
}

function receiptOf(run: DetachedRunAgentToolResult): AgentToolReceipt | AgentToolFailure {
  const { runId, status, error } = run;
  if (status !== "error") return { runId, status: "running", note: RECEIPT };
  return { ok: false, status, error: error ?? "The run could not be started.", retryable: false };
}

async function outputOf<OUTPUT>(
  run: RunAgentToolResult<OUTPUT>,
  schema: FlexibleSchema<OUTPUT> | undefined,
): Promise<OUTPUT | AgentToolFailure> {
  if (run.status === "completed") {
    if (schema === undefined) return run.output as OUTPUT;
    const { asSchema } = await loadAiSdk();
    const checked = (await asSchema(schema).validate?.(run.output)) ?? { success: true, value: run.output as OUTPUT };
    if (checked.success) return checked.value;
    const error = `The output of ${run.agentType} is not what was asked for: ${checked.error.message}`;
    return { ok: false, status: "error", error, retryable: false };
  }
  return {
    ok: false,
    status: run.status,
    error: run.error ?? `The run of ${run.agentType} ended without a result.`,
    retryable: run.status === "interrupted",
    ...(run.reason !== undefined && { reason: run.reason }),
    ...(run.childStillRunning !== undefined && { childStillRunning: run.childStillRunning }),
  };
}
