import type { LanguageModelUsage, ModelMessage, StepResult, TelemetryOptions, ToolSet } from "ai";
import type { createRestrictedTelemetryDispatcher } from "ai/internal";
import type { Clock } from "../../base/time.ts";
import type { CallOutcome } from "../../tool/runner.ts";
import type { TurnEnd } from "../engine/engine.ts";
import type { StepConfig } from "./config.ts";
import type { ToolCallContext } from "../../tool/call-hooks.ts";
import type { PreparedTurn } from "./parts.ts";

type Dispatcher = ReturnType<typeof createRestrictedTelemetryDispatcher<ToolSet, Record<string, unknown>, never>>;
type Event<K extends keyof Dispatcher> = Parameters<Extract<Dispatcher[K], (...args: never) => unknown>>[0];

/** Where `registerTelemetry` of the AI SDK keeps what it is given. */
const registry = globalThis as { readonly AI_SDK_TELEMETRY_INTEGRATIONS?: readonly unknown[] };

/** Tells AI SDK integrations about a turn: one operation per attempt, by its id. Waits for them; swallows what they throw. */
export interface TurnTelemetry {
  /** For `streamLanguageModelCall`. */
  readonly call: Pick<Dispatcher, "onLanguageModelCallStart" | "onLanguageModelCallEnd" | "executeLanguageModelCall">;
  started(turn: PreparedTurn, model: ModelName, messages: ModelMessage[], context: unknown): Promise<void>;
  /** Once per step, however often its call is tried. */
  stepStarted(step: StepStart): Promise<void>;
  /** Runs a tool inside the integrations' own context. */
  tool(call: ToolCallContext, context: unknown, work: () => Promise<CallOutcome>): Promise<CallOutcome>;
  stepEnded(step: StepResult<ToolSet>): Promise<void>;
  /** @param end undefined: it was stopped or given up. */
  ended(end: TurnEnd | undefined, steps: StepResult<ToolSet>[], reason: unknown): Promise<void>;
}

interface ModelName {
  readonly provider: string;
  readonly modelId: string;
}

/** A step that is about to ask its model. */
interface StepStart {
  readonly number: number;
  readonly model: ModelName;
  readonly turn: PreparedTurn;
  readonly change: StepConfig;
  readonly messages: ModelMessage[];
  readonly steps: StepResult<ToolSet>[];
  readonly context: unknown;
}

/** Undefined when nobody listens: then nothing is spent on it. */
export async function openTelemetry(
  options: TelemetryOptions | undefined,
  callId: string,
  clock: Clock,
): Promise<TurnTelemetry | undefined> {
  const integrations = options?.integrations ?? registry.AI_SDK_TELEMETRY_INTEGRATIONS ?? [];
  if (options?.isEnabled === false || [integrations].flat().length === 0) return undefined;
  // The SDK's own: it knows what to leave out when inputs or outputs are not to be recorded.
  const { createRestrictedTelemetryDispatcher: create } = await import("ai/internal");
  const tell: Dispatcher = create({
    telemetry: options as never,
    includeRuntimeContext: options?.includeRuntimeContext as never,
    includeToolsContext: options?.includeToolsContext as never,
  });
  const shared = { callId, toolsContext: {}, toolOrder: undefined };
  let begun = -1;
  return {
    call: tell,
    async started(turn, model, messages, context) {
      const { config, tools, instructions } = turn;
      const { maxOutputTokens, temperature, topP, topK, presencePenalty, frequencyPenalty, stopSequences } = config;
      const { seed, reasoning, toolChoice, activeTools, timeout, headers, providerOptions, output } = config;
      await tell.onStart({
        ...{ ...shared, ...model, operationId: "ai.streamText", instructions, messages, tools },
        ...{ maxOutputTokens, temperature, topP, topK, presencePenalty, frequencyPenalty, stopSequences },
        ...{ seed, reasoning, toolChoice, activeTools, timeout, headers, providerOptions, output },
        ...{ maxRetries: config.maxRetries ?? 0, runtimeContext: asContext(context) },
      } as Event<"onStart">);
    },
    async stepStarted({ number, model, turn, change, messages, steps, context }) {
      if (number <= begun) return;
      begun = number;
      const { config, tools } = turn;
      await tell.onStepStart({
        ...{ ...shared, ...model, stepNumber: number, messages, tools, steps, output: config.output },
        instructions: change.instructions ?? change.system ?? turn.instructions,
        toolChoice: change.toolChoice ?? config.toolChoice,
        activeTools: change.activeTools ?? config.activeTools,
        providerOptions: change.providerOptions ?? config.providerOptions,
        runtimeContext: asContext(context),
      } as Event<"onStepStart">);
    },
    async tool(call, context, work) {
      const { toolCallId, toolName, input, messages } = call;
      const toolCall = { type: "tool-call", toolCallId, toolName, input };
      const event = { callId, toolCall, toolContext: context, messages } as Event<"onToolExecutionStart">;
      await tell.onToolExecutionStart?.(event);
      const began = clock.now();
      let ran: Promise<CallOutcome> | undefined;
      const once = () => (ran ??= work());
      // An integration that fails, or forgets to run it, must not lose the call nor run it twice.
      await Promise.resolve(tell.executeTool?.({ ...event, callId, toolCallId, execute: once })).catch(() => {});
      const outcome = await once();
      const toolExecutionMs = clock.now() - began;
      if (outcome.kind === "aborted" || outcome.kind === "parked") return outcome;
      const result =
        outcome.kind === "output"
          ? { type: "tool-result", output: outcome.output }
          : { type: "tool-error", error: outcome.errorText };
      const toolOutput = { toolCallId, toolName, input, ...result };
      await tell.onToolExecutionEnd?.({ ...event, toolExecutionMs, toolOutput } as Event<"onToolExecutionEnd">);
      return outcome;
    },
    stepEnded: async (step) => tell.onStepEnd({ ...step, callId } as Event<"onStepEnd">),
    async ended(end, steps, reason) {
      if (end === undefined) await tell.onAbort?.({ callId, steps, reason } as Event<"onAbort">);
      else if (end.status === "error") await tell.onError?.({ callId, error: reason ?? new Error(end.error) });
      else await tell.onEnd(endOf(callId, steps));
    },
  };
}

function endOf(callId: string, all: StepResult<ToolSet>[]): Event<"onEnd"> {
  const steps = all.map((step) => ({ ...step, callId }));
  const finalStep = steps.at(-1);
  const usage = sumUsage(steps.map((step) => step.usage));
  return {
    ...finalStep,
    ...{ callId, steps, finalStep, usage, totalUsage: usage },
    content: steps.flatMap(({ content }) => content),
    files: steps.flatMap(({ files }) => files),
    sources: steps.flatMap(({ sources }) => sources),
    toolCalls: steps.flatMap(({ toolCalls }) => toolCalls),
    toolResults: steps.flatMap(({ toolResults }) => toolResults),
    responseMessages: finalStep?.response.messages ?? [],
  } as unknown as Event<"onEnd">;
}

function asContext(context: unknown): Record<string, unknown> {
  return typeof context === "object" && context !== null ? (context as Record<string, unknown>) : {};
}

/** The usage of several model calls. What no call knows stays unknown. */
function sumUsage(usages: readonly LanguageModelUsage[]): LanguageModelUsage {
  const sum = (of: (usage: LanguageModelUsage) => number | undefined) => {
    const known = usages.map(of).filter((count) => count !== undefined);
    return known.length === 0 ? undefined : known.reduce((a, b) => a + b);
  };
  return {
    inputTokens: sum((usage) => usage.inputTokens),
    inputTokenDetails: {
      noCacheTokens: sum((usage) => usage.inputTokenDetails.noCacheTokens),
      cacheReadTokens: sum((usage) => usage.inputTokenDetails.cacheReadTokens),
      cacheWriteTokens: sum((usage) => usage.inputTokenDetails.cacheWriteTokens),
    },
    outputTokens: sum((usage) => usage.outputTokens),
    outputTokenDetails: {
      textTokens: sum((usage) => usage.outputTokenDetails.textTokens),
      reasoningTokens: sum((usage) => usage.outputTokenDetails.reasoningTokens),
    },
    totalTokens: sum((usage) => usage.totalTokens),
  };
}
