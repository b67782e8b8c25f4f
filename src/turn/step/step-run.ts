import type { LanguageModel, ModelMessage, StepResult, ToolSet } from "ai";
import { FileLoads } from "../../context/file-loads.ts";
import type { ToolPart } from "../../message/types.ts";
import { ToolRunner } from "../../tool/runner.ts";
import type { Payers } from "../../ledger/payers.ts";
import type { Turn } from "../engine/turn.ts";
import type { ChatTurnOptions } from "../engine/chat-types.ts";
import type { Conversations } from "../engine/conversations.ts";
import { lastCalls, settledParts, stepsOf } from "./answer.ts";
import { nameOf } from "../../model/call.ts";
import type { PreparedTurn, StepPlan } from "./plan.ts";
import type { TurnTelemetry } from "./telemetry.ts";
import { NO_USAGE, stepRecord, type StepMeta } from "./record.ts";
import { StepWindow } from "./step-window.ts";
import { rulesOf } from "./tool-rules.ts";

/** One attempt of a turn that runs step by step: what its parts share. */
export class StepRun {
  readonly desk: Conversations;
  readonly active: Turn;
  readonly plan: StepPlan;
  /** Its instructions and tools may be renewed when the conversation was made shorter. */
  turn: PreparedTurn;
  readonly options: ChatTurnOptions;
  /** Settled model calls of this turn, and what is known of each. */
  readonly metas: StepMeta[];
  /** What tools and conditions get as their context. `beforeStep` may change it. */
  context: unknown;
  telemetry: TurnTelemetry | undefined;
  /** Who pays for the turn besides the agent. */
  readonly payers: Payers | undefined;
  /** The files of its messages. */
  readonly files: FileLoads;
  /** What the model is shown of the conversation. */
  readonly window = new StepWindow(this);
  /** Judges and runs its calls. */
  readonly runner: ToolRunner;
  #base: ModelMessage[] | undefined;

  constructor(desk: Conversations, active: Turn, plan: StepPlan, turn: PreparedTurn, options: ChatTurnOptions) {
    this.desk = desk;
    this.active = active;
    this.plan = plan;
    this.turn = turn;
    this.options = options;
    this.context = turn.config.experimental_context;
    const lost = (url: string, error: unknown) => plan.fileLost(url, error);
    this.files = new FileLoads(desk.host.clock, lost, (file) => plan.loadFile(file));
    this.payers = plan.payers(active.row.seq);
    this.runner = new ToolRunner(rulesOf(this));
    this.metas = plan.ledger.settledCalls(active.row.seq).map((call) => ({
      stepNumber: call.step,
      callId: call.id,
      provider: call.model.split("/")[0] ?? "",
      modelId: call.model.slice(call.model.indexOf("/") + 1),
      finishReason: "other",
      usage: usageOf(call.input ?? 0, call.output ?? 0),
    }));
  }

  get called(): number {
    return this.metas.length;
  }

  get signal(): AbortSignal {
    return this.active.abort.signal;
  }

  /** The calls of the last step. */
  get calls(): ToolPart[] {
    return lastCalls(this.active.builder, this.called);
  }

  /** Whether a call of the last step was cut off, and another part stands for it now. */
  get stoodIn(): boolean {
    const { builder, stoodIn } = this.active;
    const end = builder.inherited + settledParts(builder, this.called).length;
    const from = builder.parts.slice(0, end).findLastIndex((part) => part.type === "step-start");
    return [...stoodIn].some((index) => index > from && index < end);
  }

  /**
   * What the model is sent next, but for what `beforeStep` changes. Only grows while the turn runs.
   * @param model of which no output is longer than it can read; without it, all is whole.
   */
  async messages(model?: LanguageModel): Promise<{ base: ModelMessage[]; own: ModelMessage[] }> {
    this.#base ??= await this.assemble();
    // What the app says is the app's to keep short.
    const base = this.turn.messages === undefined ? this.#fitted(this.#base, model) : this.#base;
    return { base, own: await this.own(model) };
  }

  #fitted(messages: ModelMessage[], model: LanguageModel | undefined): ModelMessage[] {
    return model === undefined ? messages : this.plan.context.bounded(nameOf(model), messages);
  }

  /** The conversation before this turn as it is now. Calls that the turn goes on with may get their results yet. */
  async assemble(): Promise<ModelMessage[]> {
    return this.turn.messages ?? this.plan.assemble(this.window.base(), this.turn.tools);
  }

  /** What this turn has said and done, as the model reads it. In the form in which it is stored: it is sent again. */
  async own(model?: LanguageModel): Promise<ModelMessage[]> {
    const parts = this.window.own();
    if (parts.length === 0) return [];
    const message = { id: this.active.builder.id, role: "assistant" as const, parts };
    return this.#fitted(await this.plan.convert(message, this.turn.tools), model);
  }

  /** The conversation was made shorter: all that was sent before is sent anew. */
  async renewed(): Promise<void> {
    this.#base = undefined;
    this.turn = { ...this.turn, ...(await this.turn.renew?.()) };
    this.active.tools = this.turn.tools;
  }

  /** The steps of this turn so far, for hooks and stop conditions. */
  async records(): Promise<StepResult<ToolSet>[]> {
    const own = await this.own();
    const steps = stepsOf(settledParts(this.active.builder, this.called));
    return this.metas.map((meta, i) => stepRecord({ ...meta, context: this.context }, steps[i] ?? [], own));
  }
}

function usageOf(inputTokens: number, outputTokens: number): StepMeta["usage"] {
  return { ...NO_USAGE, inputTokens, outputTokens, totalTokens: inputTokens + outputTokens };
}
