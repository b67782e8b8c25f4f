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
 * A step as the AI SDK describes it to hooks and stop conditions. What the model said comes from its stream where it
 * is known, else from the stored parts; the results of tools always come from the parts.
 * @param parts of this step alone.
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
    reasoning: reasoning.map((part) => ({ type: "reasoning", text: part.text })),
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
    performance: { responseTimeMs: 0, ...meta.performance } as StepResultPerformance,
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
  if (part.type === "text") return [{ type: "text", text: part.text } as Content];
  if (part.type === "reasoning") return [{ type: "reasoning", text: part.text } as Content];
  if (!isToolPart(part) || part.state === "input-streaming") return [];
  return [
    {
      type: "tool-call",
      toolCallId: part.toolCallId,
      toolName: toolName(part),
      input: part.input,
      ...(part.type === "dynamic-tool" && { dynamic: true }),
      ...(part.providerExecuted === true && { providerExecuted: true }),
    } as Content,
  ];
}

function toResult(part: ToolPart): Content[] {
  if (!isTerminal(part) || part.providerExecuted === true) return [];
  const base = {
    toolCallId: part.toolCallId,
    toolName: toolName(part),
    input: part.input,
    ...(part.type === "dynamic-tool" && { dynamic: true }),
  };
  if (part.state === "output-available") return [{ ...base, type: "tool-result", output: part.output } as Content];
  if (part.state === "output-error") return [{ ...base, type: "tool-error", error: part.errorText } as Content];
  return [];
}

/** Usage when nothing is known of it. */
export const NO_USAGE: LanguageModelUsage = {
  inputTokens: undefined,
  inputTokenDetails: { noCacheTokens: undefined, cacheReadTokens: undefined, cacheWriteTokens: undefined },
  outputTokens: undefined,
  outputTokenDetails: { textTokens: undefined, reasoningTokens: undefined },
  totalTokens: undefined,
};
