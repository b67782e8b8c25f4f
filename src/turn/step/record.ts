import type {
  CallWarning,
  ContentPart,
  FinishReason,
  LanguageModelRequestMetadata,
  LanguageModelUsage,
  ModelMessage,
  ProviderMetadata,
  StepResult,
  StepResultPerformance,
  ToolSet,
} from "ai";
import { isTerminal, isToolPart, type Part, type ToolPart, toolName } from "../../message/types.ts";

/** What is known of a step beside what it said. After a restart only a part of it is. */
export interface StepMeta {
  readonly stepNumber: number;
  readonly callId: string;
  readonly provider: string;
  readonly modelId: string;
  readonly finishReason: FinishReason;
  readonly rawFinishReason?: string;
  readonly usage: LanguageModelUsage;
  readonly content?: readonly ContentPart<ToolSet>[];
  readonly performance?: Partial<StepResultPerformance>;
  readonly warnings?: CallWarning[];
  readonly request?: LanguageModelRequestMetadata;
  readonly response?: { id?: string; timestamp?: Date; modelId?: string; headers?: Record<string, string> };
  readonly providerMetadata?: ProviderMetadata;
  readonly context?: unknown;
}

type Content = ContentPart<ToolSet>;

/**
 * A step as the AI SDK shows it to hooks and stop conditions. What the model said comes from its stream if known, else from
 * `parts` (of this step alone), as tool results always do.
 */
export function stepRecord(
  meta: StepMeta,
  parts: readonly Part[],
  messages: readonly ModelMessage[],
): StepResult<ToolSet> {
  const said = meta.content ?? parts.flatMap(toContent);
  const results = parts.flatMap((part) => (isToolPart(part) ? toResult(part) : []));
  const content: Content[] = [...said, ...results];
  const of = <T extends Content["type"]>(type: T) =>
    content.filter((part): part is Extract<Content, { type: T }> => part.type === type);
  const reasoning = of("reasoning");
  const toolCalls = of("tool-call");
  const toolResults = of("tool-result");
  const text = of("text")
    .map((part) => part.text)
    .join("");
  return {
    callId: meta.callId,
    stepNumber: meta.stepNumber,
    model: { provider: meta.provider, modelId: meta.modelId },
    toolsContext: {} as never,
    runtimeContext: (meta.context ?? {}) as never,
    content,
    text,
    reasoning: reasoning.map(({ text: thought, providerMetadata }) => ({
      type: "reasoning",
      text: thought,
      ...(providerMetadata !== undefined && { providerOptions: providerMetadata }),
    })),
    reasoningText: reasoning.length === 0 ? undefined : reasoning.map((part) => part.text).join(""),
    files: of("file").map((part) => part.file),
    sources: of("source"),
    toolCalls,
    staticToolCalls: toolCalls.filter((call) => call.dynamic !== true) as never,
    dynamicToolCalls: toolCalls.filter((call) => call.dynamic === true) as never,
    toolResults,
    staticToolResults: toolResults.filter((result) => result.dynamic !== true) as never,
    dynamicToolResults: toolResults.filter((result) => result.dynamic === true) as never,
    finishReason: meta.finishReason,
    rawFinishReason: meta.rawFinishReason,
    usage: meta.usage,
    performance: { ...NO_PERFORMANCE, ...meta.performance },
    warnings: meta.warnings,
    request: meta.request ?? {},
    response: {
      id: meta.response?.id ?? meta.callId,
      timestamp: meta.response?.timestamp ?? new Date(0),
      modelId: meta.response?.modelId ?? meta.modelId,
      ...(meta.response?.headers !== undefined && { headers: meta.response.headers }),
      messages: [...messages],
    } as StepResult<ToolSet>["response"],
    providerMetadata: meta.providerMetadata,
  };
}

function toContent(part: Part): Content[] {
  if (part.type === "text" || part.type === "reasoning") {
    const { type, text, providerMetadata } = part;
    return [{ type, text, ...(providerMetadata !== undefined && { providerMetadata }) }];
  }
  if (part.type === "source-url") {
    const { sourceId: id, type: _type, ...source } = part;
    return [{ type: "source", sourceType: "url", id, ...source }];
  }
  if (part.type === "source-document") {
    const { sourceId: id, type: _type, ...source } = part;
    return [{ type: "source", sourceType: "document", id, ...source }];
  }
  if (!isToolPart(part) || part.state === "input-streaming") return [];
  const call = { type: "tool-call", ...named(part) } as Content;
  // A provider's own result is something that the model call has brought.
  return part.providerExecuted === true ? [call, ...outcome(part)] : [call];
}

function toResult(part: ToolPart): Content[] {
  return part.providerExecuted === true ? [] : outcome(part);
}

function named(part: ToolPart) {
  return {
    toolCallId: part.toolCallId,
    toolName: toolName(part),
    input: part.input,
    ...(part.type === "dynamic-tool" && { dynamic: true }),
    ...(part.providerExecuted === true && { providerExecuted: true }),
  };
}

function outcome(part: ToolPart): Content[] {
  if (!isTerminal(part)) return [];
  const base = named(part);
  if (part.state === "output-available") return [{ ...base, type: "tool-result", output: part.output } as Content];
  if (part.state === "output-error") return [{ ...base, type: "tool-error", error: part.errorText } as Content];
  return [];
}

const NO_PERFORMANCE: StepResultPerformance = {
  effectiveOutputTokensPerSecond: 0,
  outputTokensPerSecond: undefined,
  inputTokensPerSecond: undefined,
  effectiveTotalTokensPerSecond: 0,
  stepTimeMs: 0,
  responseTimeMs: 0,
  toolExecutionMs: {},
  timeToFirstOutputMs: undefined,
};

/** Usage when nothing is known of it. */
export const NO_USAGE: LanguageModelUsage = {
  inputTokens: undefined,
  inputTokenDetails: { noCacheTokens: undefined, cacheReadTokens: undefined, cacheWriteTokens: undefined },
  outputTokens: undefined,
  outputTokenDetails: { textTokens: undefined, reasoningTokens: undefined },
  totalTokens: undefined,
};
