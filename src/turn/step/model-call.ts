import type {
  Experimental_DownloadFunction as DownloadFunction,
  LanguageModel,
  ModelMessage,
  TextStreamPart,
  ToolSet,
} from "ai";
import { aiSdk } from "../../base/ai-sdk.ts";
import { errorText } from "../../base/error.ts";
import { cutText } from "../../message/cut-value.ts";
import type { UIMessageChunk } from "../../message/types.ts";
import { MAX_ERROR_BYTES } from "../../tool/bound-output.ts";
import { CONTINUE_PROMPT } from "./continue-prompt.ts";
import type { RequestToBook } from "../../model/request-book.ts";
import { ownerIdOf } from "../../store/session.ts";
import { readUsage } from "../../ledger/token-usage.ts";
import { hasPartial, openStepAt, partialText } from "./answer.ts";
import { type ModelEnd, type ModelPart, type ModelReader, named } from "../../model/call.ts";
import { isHeard, tell } from "../policy.ts";
import type { StepConfig } from "./config.ts";
import { CallFit } from "./fit.ts";
import { StepFit } from "./fit.ts";
import type { StepMeta } from "./record.ts";
import type { StepRun } from "./step-run.ts";

/** One try of a step. */
interface Try {
  readonly callId: string;
  readonly step: number;
  readonly model: LanguageModel;
  readonly messages: ModelMessage[];
  readonly change: StepConfig;
  readonly maxOutputTokens: number | undefined;
}

/** Sends one try of a step and streams it into the answer. After a cut try, the model continues from what that left. */
export class StepCall implements ModelReader {
  readonly #run: StepRun;
  readonly #call: Try;
  readonly #maxToolCalls: number;
  readonly #calls: CallFit;
  readonly #fit: StepFit | undefined;
  /** Of a call that was tried before, or whose tool calls were renamed, what is in the answer is the truth: it has the
   * ids, and all of the text. */
  readonly #collect: boolean;
  readonly #response: { id?: string; timestamp?: Date; modelId?: string } = {};
  #request: StepMeta["request"];
  #warnings: StepMeta["warnings"];
  #content: StepMeta["content"];

  constructor(run: StepRun, call: Try) {
    const { active, asked, all } = run;
    this.#run = run;
    this.#call = call;
    this.#maxToolCalls = all.policy.maxToolCallsPerStep;
    const cut = hasPartial(active.builder, run.called);
    this.#calls = new CallFit(active.callIds, stepAt(run), this.#maxToolCalls);
    this.#fit = cut ? new StepFit(active.callIds, stepAt(run), this.#calls) : undefined;
    this.#collect = isHeard(asked, "onStepFinish") && !cut;
  }

  async open(signal: AbortSignal) {
    const run = this.#run;
    const call = this.#call;
    const { asked, turn, telemetry } = run;
    const { config } = turn;
    const { experimental_streamLanguageModelCall } = aiSdk();
    const tools = toolsOf(run, call.change);
    const send = (messages: ModelMessage[], download: DownloadFunction) =>
      experimental_streamLanguageModelCall({
        ...callSettings(config),
        model: call.model,
        messages,
        download,
        allowSystemInMessages: true,
        ...optional("instructions", instructionsOf(run, call.change) || undefined),
        ...(Object.keys(tools).length > 0 && { tools }),
        ...optional("toolChoice", call.change.toolChoice ?? config.toolChoice),
        ...optional("output", config.output),
        ...optional("headers", config.headers),
        ...optional("providerOptions", call.change.providerOptions ?? config.providerOptions),
        ...optional("repairToolCall", config.repairToolCall),
        ...optional("maxOutputTokens", call.maxOutputTokens),
        abortSignal: signal,
        // Telemetry knows all calls of a turn by one name.
        callId: telemetry === undefined ? call.callId : run.active.row.id,
        onStart: () => tellStepStart(run, call),
        ...optional("onLanguageModelCallStart", telemetry?.call.onLanguageModelCallStart),
        ...optional("executeLanguageModelCallInTelemetryContext", telemetry?.call.executeLanguageModelCall),
        onLanguageModelCallEnd: [
          (event) => void (this.#content = this.#collect ? event.content : undefined),
          ...listOf(telemetry?.call.onLanguageModelCallEnd),
        ],
        _internal: { collectContent: this.#collect || telemetry !== undefined },
      });
    // Of the turn, like all of its code: a provider's own `fetch` may ask for whom it is.
    const opened = await asked.as(() => run.files.within(asSent(run, call.messages), signal, send));
    this.#request = opened.request;
    return opened;
  }

  async take(part: ModelPart): Promise<void> {
    if (part.type === "model-call-start") {
      this.#warnings = part.warnings;
      return;
    }
    if (part.type === "model-call-response-metadata") {
      Object.assign(this.#response, { id: part.id, timestamp: part.timestamp, modelId: part.modelId });
      return;
    }
    const run = this.#run;
    const { asked, turn } = run;
    const textPart = part as TextStreamPart<ToolSet>;
    if (isHeard(asked, "onChunk")) await tell(asked, "onChunk", { chunk: textPart });
    // Whoever watches may have stopped the turn: nothing of it is to be seen then.
    if (run.signal.aborted) return;
    const chunk = toChunk(textPart, turn.tools, turn.sendReasoning, turn.config.sendSources ?? true);
    if (chunk !== undefined && this.#put(chunk)) await run.all.host.breathe();
  }

  #put(given: UIMessageChunk): boolean {
    let crowded = false;
    for (const chunk of this.#fitted(given)) crowded = this.#run.active.take({ chunk }) || crowded;
    return crowded;
  }

  #fitted(chunk: UIMessageChunk): readonly UIMessageChunk[] {
    if (this.#fit !== undefined) return this.#fit.take(chunk);
    return "toolCallId" in chunk ? this.#calls.take(chunk) : [chunk];
  }

  ended({ finishReason, rawFinishReason, usage, performance, providerMetadata }: ModelEnd): () => void {
    const run = this.#run;
    const { active, all, turn } = run;
    const { callId, step: stepNumber, model, change, messages } = this.#call;
    for (const chunk of this.#fit?.finish() ?? []) active.take({ chunk });
    const { refused, renamed } = this.#calls;
    const limit = this.#maxToolCalls;
    if (refused > 0)
      all.host.emit("chat:calls:refused", { requestId: active.row.id, step: stepNumber, limit, refused });
    const content = renamed || refused > 0 ? undefined : this.#content;
    run.metas.push({
      ...{ callId, stepNumber, ...named(model), finishReason, usage, performance, response: this.#response },
      ...{ rawFinishReason, warnings: this.#warnings, request: this.#request, providerMetadata },
      ...(content !== undefined && { content }),
    } as StepMeta);
    return run.window.settled(model, messages, {
      ...{ instructions: instructionsOf(run, change), tools: turn.tools, messages, usage: readUsage(usage) },
      maxOutputTokens: turn.config.maxOutputTokens,
    });
  }
}

async function tellStepStart(run: StepRun, { step, model, messages, change }: Try): Promise<void> {
  if (run.telemetry === undefined) return;
  const { turn, context } = run;
  const steps = await run.records();
  await run.telemetry.stepStarted({ number: step, model: named(model), turn, change, messages, steps, context });
}

/** The first part of the step under way. */
function stepAt(run: StepRun): number {
  const { builder } = run.active;
  const from = openStepAt(builder, run.called);
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

/** What is sent with the messages of a request, as it is written down. */
export function requestOf(run: StepRun, change: StepConfig, model: LanguageModel): Omit<RequestToBook, "messages"> {
  const { active, parts, turn } = run;
  const { config } = turn;
  const { session } = active.row;
  const settings = {
    ...callSettings(config),
    ...optional("maxOutputTokens", config.maxOutputTokens),
    ...optional("toolChoice", change.toolChoice ?? config.toolChoice),
    ...optional("providerOptions", change.providerOptions ?? config.providerOptions),
    ...optional("output", config.output === undefined ? undefined : config.output.name),
  };
  return {
    ...{ session, owner: ownerIdOf(parts.host, session), model, settings },
    instructions: instructionsOf(run, change) || undefined,
    tools: toolsOf(run, change),
    answerId: active.builder.id,
    from: (source) => run.beginsAt(source),
    original: (message) => parts.window.original(message),
  };
}

/** The tools that a step may use. */
function toolsOf({ turn }: StepRun, change: StepConfig): ToolSet {
  const activeTools = (change.activeTools ?? turn.config.activeTools) as never;
  return (aiSdk().experimental_filterActiveTools({ tools: turn.tools, activeTools }) ?? {}) as ToolSet;
}

function instructionsOf({ turn }: StepRun, change: StepConfig) {
  return change.instructions ?? change.system ?? turn.instructions;
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
  const chunk = aiSdk().toUIMessageChunk(part, { tools, sendReasoning, sendSources, onError: errorText });
  // What could not be read is quoted in the error, however long it is.
  if (chunk?.type !== "tool-input-error") return chunk;
  return { ...chunk, errorText: cutText(chunk.errorText, MAX_ERROR_BYTES) };
}
