import type { LanguageModel, ModelMessage, TextStreamPart, ToolSet } from "ai";
import { filterActiveTools, streamCall, toUIMessageChunk } from "../../base/ai-sdk.ts";
import { errorText } from "../../base/error.ts";
import { cutText } from "../../message/cut-value.ts";
import type { UIMessageChunk } from "../../message/types.ts";
import { MAX_ERROR_BYTES } from "../../tool/run-call.ts";
import { CONTINUE_PROMPT } from "./continue-prompt.ts";
import { hasPartial, partialText, settledParts } from "./answer.ts";
import type { StepConfig } from "./config.ts";
import { CallFit } from "./fit-calls.ts";
import { StepFit } from "./fit.ts";
import { deadline } from "../../model/deadline.ts";
import type { StepMeta } from "./record.ts";
import type { StepRun } from "./step-run.ts";

/** One try of a step. */
export interface Try {
  readonly callId: string;
  readonly step: number;
  readonly model: LanguageModel;
  readonly messages: ModelMessage[];
  readonly change: StepConfig;
  readonly maxOutputTokens: number | undefined;
}

/** How a try ended. */
export type Tried =
  | { readonly kind: "settled"; readonly meta: StepMeta }
  | { readonly kind: "failed"; readonly error: unknown; readonly spoke: boolean }
  | { readonly kind: "aborted" };

/**
 * Makes one model call and puts what it streams into the answer. An earlier try that was cut has left something: the
 * model is told to go on from it, and what it repeats is passed over.
 */
export async function tryCall(run: StepRun, call: Try): Promise<Tried> {
  const { active, turn, plan, desk } = run;
  const { config } = turn;
  const limits = deadline(desk.host.clock, run.signal, config.timeout);
  const cut = hasPartial(active.builder, run.called);
  const { maxToolCalls } = desk.hooks.settings();
  const calls = new CallFit(active.callIds, stepAt(run), maxToolCalls);
  const fit = cut ? new StepFit(active.callIds, stepAt(run), calls) : undefined;
  const fitted = (chunk: UIMessageChunk) => {
    if (fit !== undefined) return fit.take(chunk);
    return "toolCallId" in chunk ? calls.take(chunk) : [chunk];
  };
  const put = (given: UIMessageChunk): boolean => {
    let crowded = false;
    for (const chunk of fitted(given)) crowded = active.take({ chunk }) || crowded;
    return crowded;
  };
  // Of a call that was tried before, or whose tool calls were renamed, what is in the answer is the truth: it has the
  // ids, and all of the text.
  const collect = plan.stepFinished !== undefined && !cut;
  const { telemetry } = run;
  let spoke = false;
  let meta: StepMeta | undefined;
  const response: { id?: string; timestamp?: Date; modelId?: string } = {};
  let warnings: StepMeta["warnings"];
  let content: StepMeta["content"];
  const tools = filterActiveTools({
    tools: turn.tools,
    activeTools: (call.change.activeTools ?? config.activeTools) as never,
  }) as ToolSet | undefined;
  try {
    const { stream, request } = await limits.within(
      run.files.within(asSent(run, call.messages), limits.signal, (messages, download) =>
        streamCall({
          ...callSettings(config),
          model: call.model,
          messages,
          download,
          allowSystemInMessages: true,
          ...instructionsOf(run, call.change),
          ...(tools !== undefined && Object.keys(tools).length > 0 && { tools }),
          ...optional("toolChoice", call.change.toolChoice ?? config.toolChoice),
          ...optional("output", config.output),
          ...optional("headers", config.headers),
          ...optional("providerOptions", call.change.providerOptions ?? config.providerOptions),
          ...optional("repairToolCall", config.repairToolCall),
          ...optional("maxOutputTokens", call.maxOutputTokens),
          abortSignal: limits.signal,
          // Telemetry knows all calls of a turn by one name.
          callId: telemetry === undefined ? call.callId : active.row.id,
          onStart: () => tellStepStart(run, call),
          ...optional("onLanguageModelCallStart", telemetry?.call.onLanguageModelCallStart),
          ...optional("executeLanguageModelCallInTelemetryContext", telemetry?.call.executeLanguageModelCall),
          onLanguageModelCallEnd: [
            (event) => void (content = collect ? event.content : undefined),
            ...listOf(telemetry?.call.onLanguageModelCallEnd),
          ],
          _internal: { collectContent: collect || telemetry !== undefined },
        }),
      ),
    );
    for await (const part of limits.each(stream)) {
      switch (part.type) {
        case "model-call-start":
          warnings = part.warnings;
          break;
        case "model-call-response-metadata":
          Object.assign(response, { id: part.id, timestamp: part.timestamp, modelId: part.modelId });
          break;
        case "model-call-end": {
          const { finishReason, rawFinishReason, usage, performance, providerMetadata } = part;
          const { provider, modelId } = named(call.model);
          const { callId, step: stepNumber } = call;
          meta = {
            ...{ callId, stepNumber, provider, modelId, finishReason, usage, performance, response },
            ...{ rawFinishReason, warnings, request, providerMetadata },
          } as StepMeta;
          break;
        }
        case "error":
          return failed(run, part.error, spoke);
        default: {
          const textPart = part as TextStreamPart<ToolSet>;
          if (plan.chunk !== undefined) await watch(run, () => plan.chunk?.({ chunk: textPart }));
          // Whoever watches may have stopped the turn: nothing of it is to be seen then.
          if (run.signal.aborted) return { kind: "aborted" };
          const chunk = toChunk(textPart, turn.tools, turn.sendReasoning, config.sendSources ?? true);
          if (chunk === undefined) break;
          spoke = true;
          if (put(chunk)) await desk.host.breathe();
        }
      }
      if (run.signal.aborted) return { kind: "aborted" };
    }
  } catch (error) {
    return failed(run, error, spoke);
  } finally {
    limits.end();
  }
  if (run.signal.aborted) return { kind: "aborted" };
  if (meta === undefined) return failed(run, new Error("The model's stream ended before the model did."), spoke);
  for (const chunk of fit?.finish() ?? []) active.take({ chunk });
  const { refused } = calls;
  if (refused > 0)
    desk.host.emit("chat:calls:refused", { requestId: active.row.id, step: call.step, limit: maxToolCalls, refused });
  return {
    kind: "settled",
    meta: { ...meta, ...(content !== undefined && !calls.renamed && refused === 0 && { content }) },
  };
}

async function tellStepStart(run: StepRun, { step, model, messages, change }: Try): Promise<void> {
  if (run.telemetry === undefined) return;
  const { turn, context } = run;
  const steps = await run.records();
  await run.telemetry.stepStarted({ number: step, model: named(model), turn, change, messages, steps, context });
}

/** Asks who only watches. What it throws is reported. */
export async function watch(
  run: { readonly desk: Pick<StepRun["desk"], "hooks">; readonly active: { readonly row: { readonly id: string } } },
  work: () => unknown,
): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    run.desk.hooks.failed(thrown, { stage: "hook", requestId: run.active.row.id });
  }
}

/** The provider and the name of a model. */
export function named(model: LanguageModel): { provider: string; modelId: string } {
  if (typeof model !== "string") return { provider: model.provider, modelId: model.modelId };
  const at = model.indexOf("/");
  return at === -1
    ? { provider: "gateway", modelId: model }
    : { provider: model.slice(0, at), modelId: model.slice(at + 1) };
}

function failed(run: StepRun, error: unknown, spoke: boolean): Tried {
  return run.signal.aborted ? { kind: "aborted" } : { kind: "failed", error, spoke };
}

/** The first part of the step under way. */
function stepAt(run: StepRun): number {
  const { builder } = run.active;
  const from = builder.inherited + settledParts(builder, run.called).length;
  return builder.parts[from]?.type === "step-start" ? from + 1 : from;
}

/** The messages of a request, with what asks the model to go on with an answer that was cut. */
export function asSent(run: StepRun, messages: ModelMessage[]): ModelMessage[] {
  const text = partialText(run.active.builder, run.called);
  // What stands for a call that was cut off has no result behind it: the model would have nothing to answer.
  const asked = text === "" && run.stoodIn && messages.at(-1)?.role === "assistant";
  if (asked) return [...messages, { role: "user", content: CONTINUE_PROMPT }];
  if (text === "") return messages;
  return [...messages, { role: "assistant", content: text }, { role: "user", content: CONTINUE_PROMPT }];
}

function instructionsOf(run: StepRun, change: StepConfig) {
  const instructions = change.instructions ?? change.system ?? run.turn.instructions;
  return instructions === undefined || instructions === "" ? {} : { instructions };
}

/** The settings of the AI SDK that go to the model as they are. */
function callSettings(config: StepRun["turn"]["config"]) {
  const { temperature, topP, topK, presencePenalty, frequencyPenalty, stopSequences, seed, reasoning } = config;
  return {
    ...optional("temperature", temperature),
    ...optional("topP", topP),
    ...optional("topK", topK),
    ...optional("presencePenalty", presencePenalty),
    ...optional("frequencyPenalty", frequencyPenalty),
    ...optional("stopSequences", stopSequences),
    ...optional("seed", seed),
    ...optional("reasoning", reasoning),
  };
}

function listOf<T>(value: T | undefined): T[] {
  return value === undefined ? [] : [value];
}

function optional<K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } {
  return (value === undefined ? {} : { [key]: value }) as { [P in K]?: V };
}

/** A part of the model's stream as clients read it. Deltas, which are nearly all of it, go the short way. */
function toChunk(
  part: TextStreamPart<ToolSet>,
  tools: ToolSet,
  sendReasoning: boolean,
  sendSources: boolean,
): UIMessageChunk | undefined {
  if (part.type === "text-delta" && part.providerMetadata === undefined) {
    return part.text === "" ? undefined : { type: "text-delta", id: part.id, delta: part.text };
  }
  const chunk = toUIMessageChunk(part, { tools, sendReasoning, sendSources, onError: errorText });
  // What could not be read is quoted in the error, however long it is.
  if (chunk?.type !== "tool-input-error") return chunk;
  return { ...chunk, errorText: cutText(chunk.errorText, MAX_ERROR_BYTES) };
}
