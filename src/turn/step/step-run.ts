import type { LanguageModel, ModelMessage, StepResult, ToolSet } from "ai";
import { FileLoads } from "../../context/file-loads.ts";
import type { ToolPart, UIMessage } from "../../message/types.ts";
import { ToolRunner } from "../../tool/runner.ts";
import type { Payers } from "../../ledger/ledger.ts";
import type { Turn } from "../engine/turn.ts";
import { type AskedTurn, isAsked } from "../policy.ts";
import type { Engine } from "../engine/engine.ts";
import { lastCalls, openStepAt, settledParts, stepsOf } from "./answer.ts";
import { nameOf } from "../../model/call.ts";
import { assemble, classify, type PreparedTurn, type SentRequest, shownApart, type StepParts } from "./parts.ts";
import type { TurnTelemetry } from "./telemetry.ts";
import { NO_USAGE, stepRecord, type StepMeta } from "./record.ts";
import { rulesOf } from "./tool-rules.ts";
import type { CompactionJob } from "../../context/compaction-job.ts";
import type { OverflowPolicy } from "../../context/overflow.ts";
import {
  noteOtherOutputs,
  shownParts,
  project,
  type ContextReader,
  type ContextView,
  type PathNode,
} from "../../context/view.ts";
import { findSuperseded } from "../../context/superseded.ts";
import {
  BACKGROUND_SHARE,
  callTokens,
  estimateRequest,
  isOverflow,
  usable,
  WAIT_SHARE,
} from "../../context/token-budget.ts";
import { unitsOfUIMessage } from "../../context/ui-units.ts";
import { leastUnits } from "../../context/text-units.ts";
import { unitsOfMessages, unitsOfRequest } from "../../context/units.ts";
import type { LedgerEntry } from "../../ledger/charge.ts";
import type { Usage } from "../../ledger/token-usage.ts";
import { compactionsOfTurn } from "../../store/compaction.ts";
import type { CompactionTrigger } from "../../wire/session-types.ts";
import { outputRules } from "../../tool/output-rules.ts";
import { waitingSteers } from "../intake/steer.ts";
import { jobNow, measureNow, type RequestNow } from "./make-job.ts";
import type { ReadableEntry } from "../../session/path-window.ts";
import { waitingMessages } from "../engine/history.ts";
import type { ChatTurnOptions } from "./config.ts";

/** One attempt of a turn that runs step by step: what its parts share. */
export class StepRun {
  readonly all: Engine;
  readonly active: Turn;
  readonly parts: StepParts;
  readonly asked: AskedTurn;
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
  /** Of what this turn has added: where in the answer it begins. */
  readonly #ownFrom = new WeakMap<UIMessage, number>();

  constructor(parts: StepParts, active: Turn, asked: AskedTurn, turn: PreparedTurn, options: ChatTurnOptions) {
    this.all = parts.chat;
    this.active = active;
    this.parts = parts;
    this.asked = asked;
    this.turn = turn;
    this.options = options;
    this.context = turn.config.experimental_context;
    const lost = (url: string, error: unknown) => parts.fileLost(url, error);
    this.files = new FileLoads(parts.host.clock, lost, (file) => parts.loadFile(file));
    this.payers = parts.payers(active.row.seq);
    this.runner = new ToolRunner(rulesOf(this));
    this.metas = parts.ledger.settledCalls(active.row.seq).map((call) => ({
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
    const end = openStepAt(builder, this.called);
    const from = builder.parts.slice(0, end).findLastIndex((part) => part.type === "step-start");
    return [...stoodIn].some((index) => index > from && index < end);
  }

  /** What the model is sent next, before `beforeStep`. Only grows. @param model whose window bounds outputs, if given */
  async messages(model?: LanguageModel): Promise<{ base: ModelMessage[]; own: ModelMessage[] }> {
    this.#base ??= await this.assemble();
    // What the app says is the app's to keep short.
    const base = this.turn.messages === undefined ? this.#fitted(this.#base, model) : this.#base;
    return { base, own: await this.own(model) };
  }

  #fitted(messages: ModelMessage[], model: LanguageModel | undefined): ModelMessage[] {
    return model === undefined ? messages : this.parts.window.bounded(nameOf(model), messages);
  }

  /** The conversation before this turn as it is now. Calls that the turn goes on with may get their results yet. */
  async assemble(): Promise<ModelMessage[]> {
    const { parts, asked, turn } = this;
    return turn.messages ?? asked.as(() => assemble(parts, this.window.base(), turn.tools));
  }

  /** What this turn has said and done, as the model reads it. In the form in which it is stored: it is sent again. */
  async own(model?: LanguageModel): Promise<ModelMessage[]> {
    const parts = this.window.own();
    if (parts.length === 0) return [];
    const message = { id: this.active.builder.id, role: "assistant" as const, parts };
    this.#ownFrom.set(message, this.window.ownFrom);
    if (!this.window.ownIsStored) noteOtherOutputs(message);
    return this.#fitted(await this.parts.messages.once(message, this.turn.tools), model);
  }

  /** Where in the answer under way a message begins that was made from it. */
  beginsAt(source: UIMessage): number {
    return this.#ownFrom.get(source) ?? 0;
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

/** The last call of this turn, as far as the next estimate builds on it. */
interface Anchor {
  readonly model: string;
  /** How many messages were sent. */
  readonly count: number;
  readonly usage: Usage | undefined;
}

/** Keeps the requests of one turn within the model's window: before each is sent, and by what the provider says and counts. */
class StepWindow {
  readonly #run: StepRun;
  /** Whether {@link StepWindow.own} gave what is stored, and no notes in the places of outputs. */
  ownIsStored = true;
  #context: TurnContextView | undefined;
  #anchor: Anchor | undefined;
  /** Begins a summary in the background. */
  #starts: (() => void) | undefined;

  constructor(run: StepRun) {
    this.#run = run;
  }

  /** The conversation before this turn, as the model reads it now: calls in it may have got their results. */
  base(): readonly UIMessage[] {
    return (this.#run.active.builder.inherited > 0 ? this.#fresh() : this.#read()).base;
  }

  /** What this turn has added, without what a compaction covers or leaves out. */
  own(): UIMessage["parts"] {
    const { all, active, called } = this.#run;
    const { view, covered } = this.#read();
    const parts = ownParts(all, active.row.session, called).slice(covered);
    const node = view.nodes.find(({ message }) => message.id === active.builder.id);
    const shown = node === undefined ? parts : shownParts(node, parts, view);
    this.ownIsStored = shown === parts;
    return shown;
  }

  /** Where in the answer that begins which {@link StepWindow.own} shows. */
  get ownFrom(): number {
    return this.#run.active.builder.inherited + this.#read().covered;
  }

  /**
   * Shortens a request before it is sent, if need be. @param messages of the request, if their length has to be known
   * @returns whether it changed @throws PerdureError `bad_config`
   */
  async makeRoom(model: LanguageModel, messages: () => Promise<readonly ModelMessage[]>): Promise<boolean> {
    const { parts, turn, active, called, signal } = this.#run;
    const { window } = parts;
    const policy = window.policy();
    this.#starts = undefined;
    if (policy === undefined || turn.messages !== undefined) return false;
    const { session } = active.row;
    if (await this.#published(model)) return this.#shorter();
    if (called === 0 && (await this.#again(model))) return true;
    if (signal.aborted) return false;
    const tokens = this.#farTooLong(model, policy) ?? this.#estimate(model, await messages());
    if (signal.aborted) return false;
    const bound = this.#usable(model, policy);
    if (tokens > WAIT_SHARE * bound && window.background.has(session)) {
      await this.#busy(() => window.background.wait(session, signal));
      if (signal.aborted) return false;
      if (await this.#published(model)) return this.#shorter();
    }
    const trigger = this.#trigger(model, policy, tokens);
    if (trigger !== undefined) {
      if (!window.compactor.allowed(this.#turn, trigger, policy.maxCompactions)) return false;
      return this.#compact(await this.#job(model, trigger));
    }
    if (called === 0 && (await this.#between(model, policy, tokens))) return true;
    if (policy.background && tokens > BACKGROUND_SHARE * bound) await this.#ahead(model, policy);
    return false;
  }

  /** The call may be made: what is made ahead comes behind it, so that it takes no budget away from it. */
  reserved(): void {
    this.#starts?.();
    this.#starts = undefined;
  }

  /** A provider said that a call was too long: summarises, or leaves out, what it can. @returns whether it is shorter now */
  async afterOverflow(model: LanguageModel, callId: string): Promise<boolean> {
    const { parts, turn, signal } = this.#run;
    const { compactor, background } = parts.window;
    const policy = parts.window.policy();
    if (policy?.reactive !== true || policy.maxRetries === 0 || turn.messages !== undefined) return false;
    background.stop(this.#run.active.row.session);
    const job = { ...(await this.#job(model, "error")), call: callId };
    if (compactor.allowed(this.#turn, "error", policy.maxRetries) && (await this.#compact(job))) return true;
    if (signal.aborted || compactor.truncate(job) === undefined) return false;
    return this.#shorter();
  }

  /** The tries of a step since the conversation was made shorter because of one of them. */
  since(facts: readonly LedgerEntry[]): readonly LedgerEntry[] {
    if (!facts.some(({ errorClass }) => errorClass === "context_overflow")) return facts;
    const { all, active } = this.#run;
    const answered = new Set<string>();
    for (const { status, call } of compactionsOfTurn(all.host, active.row.seq)) {
      if (status === "done" && call !== null) answered.add(call);
    }
    return facts.slice(facts.findLastIndex(({ id }) => answered.has(id)) + 1);
  }

  /** A call was answered. @param messages what was sent @returns what learns from it, in the transaction that settles the call */
  settled(model: LanguageModel, messages: readonly ModelMessage[], request: Omit<SentRequest, "session" | "model">) {
    const { window } = this.#run.parts;
    const name = nameOf(model);
    const { usage } = request;
    this.#anchor = { model: name, count: messages.length, usage };
    window.sent({ ...request, session: this.#run.active.row.session, model: name });
    const counted = window.counters.counted(name, (count) => unitsOfRequest(request, count));
    return () => void window.learned.learn(name, { ...counted, usage });
  }

  #read(): TurnContextView {
    const { all, active, parts, called } = this.#run;
    this.#context ??= contextOf(all, parts.window.reader, active.row.session, called);
    return this.#context;
  }

  get #turn() {
    const { active, called } = this.#run;
    return { seq: active.row.seq, id: active.row.id, step: called };
  }

  #usable(model: LanguageModel, { maxInputTokens, threshold }: OverflowPolicy): number {
    const { parts, turn } = this.#run;
    const limits = parts.window.limits(nameOf(model));
    return Math.floor(Math.min(usable(limits, turn.config.maxOutputTokens), threshold * maxInputTokens));
  }

  /**
   * About how long the texts of the conversation are at least, where these alone are more than a request may hold: then nobody
   * need make a request of all of it first to see that.
   */
  #farTooLong(model: LanguageModel, { proactive }: OverflowPolicy): number | undefined {
    const { parts, asked, turn } = this.#run;
    const { counters, learned } = parts.window;
    const name = nameOf(model);
    if (!proactive || this.#anchor !== undefined || isAsked(asked, "assembleContext")) return undefined;
    if (counters.own(name) !== undefined) return undefined;
    let chars = 0;
    for (const message of this.base())
      for (const part of message.parts) if (part.type === "text") chars += part.text.length;
    const tokens = learned.of(name) * leastUnits(chars);
    return tokens > usable(parts.window.limits(name), turn.config.maxOutputTokens) ? Math.ceil(tokens) : undefined;
  }

  /** With what was said meanwhile, which the next call takes up. */
  #estimate(model: LanguageModel, messages: readonly ModelMessage[]): number {
    const { parts, turn, all, active } = this.#run;
    const name = nameOf(model);
    const anchor = this.#anchor?.model === name ? this.#anchor : undefined;
    // The answer of the last call is counted in what it used; results, and what was said since, are not.
    const later = anchor === undefined ? [] : messages.slice(anchor.count).filter(({ role }) => role !== "assistant");
    const { counters, learned } = parts.window;
    // First the whole, so that a counter that fails has failed before anything depends on it.
    const whole = counters.weigh(name, (count) => unitsOfRequest({ ...turn, messages }, count));
    const unitsAfter = counters.weigh(name, (count) => {
      const said = waitingSteers(all, active).reduce((sum, { message }) => sum + unitsOfUIMessage(message, count), 0);
      return unitsOfMessages(later, count) + said;
    });
    const unitsBefore = whole - counters.weigh(name, (count) => unitsOfMessages(later, count));
    return estimateRequest({ lastUsage: anchor?.usage, factor: learned.of(name), unitsBefore, unitsAfter }).tokens;
  }

  /** Why the conversation has to be made shorter before the next call, if it has. */
  #trigger(model: LanguageModel, policy: OverflowPolicy, tokens: number): CompactionTrigger | undefined {
    if (!policy.proactive) return undefined;
    const { parts, turn } = this.#run;
    const limits = parts.window.limits(nameOf(model));
    const usage = this.#anchor?.usage;
    const reservedOutput = turn.config.maxOutputTokens;
    if (usage !== undefined && isOverflow({ tokens: callTokens(usage), limits, reservedOutput })) return "usage";
    if (tokens > usable(limits, reservedOutput)) return "before";
    return tokens > policy.threshold * policy.maxInputTokens ? "proactive" : undefined;
  }

  /** A turn begins, and what an earlier one had to leave out without a summary may be summarised now. */
  async #again(model: LanguageModel): Promise<boolean> {
    const { compactor } = this.#run.parts.window;
    const shown = this.#fresh().view.compaction;
    if (shown?.kind !== "truncate" || shown.seq === this.#whole().compaction?.seq) return false;
    return compactor.allowed(this.#turn, "retry", 1) && this.#compact(await this.#job(model, "retry"));
  }

  /** What a summary is made of. */
  #whole(): ContextView {
    const { all, active, parts, called } = this.#run;
    const { session } = active.row;
    return parts.window.reader.whole(() => nodesUp(all, session, called), session);
  }

  /** What is done before the first call of a turn: the app's own bound, and outputs that nothing is cached of any more. */
  async #between(model: LanguageModel, policy: OverflowPolicy, tokens: number): Promise<boolean> {
    const { parts, turn, active, all } = this.#run;
    const { window } = parts;
    if (!window.compactor.allowed(this.#turn, "after", 1)) return false;
    const { compactAfter, tokenCounter } = await window.settings(active.row.session);
    if (compactAfter !== undefined) {
      const text = typeof turn.instructions === "string" ? turn.instructions : "";
      const counted = tokenCounter === undefined ? tokens : await tokenCounter(this.#read().base, text);
      if (counted > compactAfter) return this.#compact(await this.#job(model, "after"));
    }
    // Looked at before anything is weighed: most turns find nothing.
    const superseded = findSuperseded(this.#read().view, outputRules(turn.tools)).length > 0;
    if (superseded && window.compactor.tidy(await this.#job(model, "after")) !== undefined) return this.#shorter();
    const [last] = parts.ledger.list({ session: active.row.session, purpose: "turn", limit: 1 });
    const cold = last !== undefined && all.host.clock.now() - (last.settledAt ?? last.startedAt) > policy.coldAfterMs;
    if (!cold || window.compactor.prune(await this.#job(model, "after")) === undefined) return false;
    return this.#shorter();
  }

  async #ahead(model: LanguageModel, policy: OverflowPolicy): Promise<void> {
    const { all, parts, active } = this.#run;
    const { window } = parts;
    const { session } = active.row;
    if (!window.background.isFree(session)) return;
    if (!window.compactor.allowed(this.#turn, "background", policy.maxCompactions)) return;
    const job = await this.#job(model, "background");
    if (window.compactor.canPrune(job)) return;
    const { view } = this.#fresh();
    // What was left out is summarised first.
    if (view.compaction?.kind === "truncate") return;
    // The answer that is being written is not covered: it may be another one by then.
    const snapshot = { ...view, nodes: view.nodes.filter(({ message }) => message.id !== active.builder.id) };
    this.#starts = () =>
      window.background.start(session, async (signal) => {
        // It looks through the whole conversation: the call of the turn goes out before that.
        await all.host.breathe();
        signal.throwIfAborted();
        return window.compactor.prepare({ ...job, open: false, view: () => snapshot, whole: undefined, signal });
      });
  }

  /** Lets a summary count that was made in the background. */
  async #published(model: LanguageModel): Promise<boolean> {
    const { parts, active } = this.#run;
    const ready = parts.window.background.take(active.row.session);
    if (ready === undefined) return false;
    const measure = await measureNow(parts.window, this.#now(model));
    const job = { ...ready.job, view: () => this.#fresh().view, measure, open: true };
    return parts.window.compactor.publish({ ...ready, job }).ok;
  }

  async #compact(job: CompactionJob): Promise<boolean> {
    const { parts, signal } = this.#run;
    const before = this.#fresh().view.compaction?.seq;
    const made = await this.#busy(async () => parts.window.compactor.run(job));
    if (signal.aborted) return false;
    // Somebody else may have been first.
    return made.ok || this.#fresh().view.compaction?.seq !== before ? this.#shorter() : false;
  }

  async #shorter(): Promise<true> {
    this.#context = undefined;
    this.#anchor = undefined;
    await this.#run.renewed();
    return true;
  }

  /** It takes its time, and the turn does not stall meanwhile. */
  async #busy<T>(work: () => Promise<T>): Promise<T> {
    using _ = this.#run.active.working();
    return await work();
  }

  #fresh(): TurnContextView {
    this.#context = undefined;
    return this.#read();
  }

  #now(model: LanguageModel): RequestNow {
    const { parts, asked, turn } = this.#run;
    const { instructions, tools } = turn;
    const policy = parts.window.policy();
    return {
      ...{ model, instructions, tools },
      bound: policy === undefined ? Number.POSITIVE_INFINITY : this.#usable(model, policy),
      view: () => this.#fresh().view,
      shown: (messages) => asked.as(() => shownApart(parts, messages, tools)),
    };
  }

  #job(model: LanguageModel, trigger: CompactionTrigger): Promise<CompactionJob> {
    const { parts, asked, payers, active, called, signal } = this.#run;
    const { id, seq, session } = active.row;
    return jobNow(parts.window, {
      ...this.#now(model),
      ...{ session, trigger, turn: this.#turn, open: true, signal, focus: undefined },
      whole: () => this.#whole(),
      books: {
        ...{ host: parts.host, ledger: parts.ledger, payers, turn: { id, seq }, step: called },
        classify: (error) => asked.as(() => classify(parts, error, active.failure("stream"))),
      },
    });
  }
}

type Reading = Pick<Engine, "host" | "transcripts" | "turnIn">;

/** The conversation of a turn as the model reads it. */
interface TurnContextView {
  /** All of it, with what the running turn has said so far. */
  readonly view: ContextView;
  /** What it shows without that. */
  readonly base: readonly UIMessage[];
  /** How many parts of what the running turn has added are covered by a compaction. */
  readonly covered: number;
}

/**
 * A session's path, newest first, as the model may see it: a running answer as far as its model calls are settled, in the form it
 * will be stored in, and nothing that waits for its own turn.
 */
export function* nodesUp(all: Reading, session: string, called: number): Generator<PathNode> {
  const { host } = all;
  const running = all.turnIn(session);
  const transcript = all.transcripts.of(session);
  if (running === undefined || running.cutBy === "cleared") {
    yield* transcript.up();
    return;
  }
  const { id } = running.builder;
  const waiting = waitingMessages(host, running.row, () => transcript.unanswered(id));
  for (const entry of transcript.up()) {
    if (waiting.has(entry.id)) continue;
    if (entry.id !== id) yield entry;
    else if (!running.empty)
      yield toNode(entry, [
        ...running.builder.parts.slice(0, running.builder.inherited),
        ...ownParts(all, session, called),
      ]);
  }
}

/** What the running turn has added, as it will be stored. */
function ownParts(all: Reading, session: string, called: number): UIMessage["parts"] {
  const running = all.turnIn(session);
  if (running === undefined) return [];
  const { builder } = running;
  const parts = settledParts(builder, called);
  return all.transcripts.of(session).clean({ id: builder.id, role: "assistant", parts }).parts;
}

/** What the model is shown of a session, with what the running turn has added apart. */
export function contextOf(all: Reading, reader: ContextReader, session: string, called: number): TurnContextView {
  const view = reader.read(nodesUp(all, session, called), session);
  const running = all.turnIn(session);
  if (running === undefined) return { view, base: project(view), covered: 0 };
  const { id, inherited } = running.builder;
  const nodes = view.nodes.flatMap((node) => {
    if (node.message.id !== id) return [node];
    const parts = node.message.parts.slice(0, inherited);
    return parts.length > node.from ? [{ ...node, message: { ...node.message, parts } }] : [];
  });
  const from = view.nodes.find(({ message }) => message.id === id)?.from ?? 0;
  return { view, base: project({ ...view, nodes }), covered: Math.max(0, from - inherited) };
}

function toNode({ seq, message, pinned }: ReadableEntry, parts: UIMessage["parts"]): PathNode {
  return { seq, pinned, message: { ...message, parts } };
}
