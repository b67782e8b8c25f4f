import type { LanguageModel, ModelMessage } from "ai";
import { reservedTokens } from "../../context/estimate.ts";
import type { AgentEvents } from "../../base/event.ts";
import { newId } from "../../base/id.ts";
import { toolName } from "../../message/types.ts";
import type { Turn } from "../engine/turn.ts";
import type { CallResult, LedgerEntry } from "../../ledger/charge.ts";
import type { OverBudget } from "../../ledger/ledger.ts";
import type { OverBudgetAbove } from "../../ledger/ledger.ts";
import { ownerIdOf } from "../../store/session.ts";
import { digestOf } from "../../tool/digest.ts";
import type { Answerer, TurnEnd } from "../engine/engine.ts";
import { ask, explain, isAsked, isHeard, tell, watch } from "../policy.ts";
import type { ChatErrorClassification } from "../../store/usage.ts";
import { closeSteers, type Steer, takeSteers, waitingSteers } from "../intake/steer.ts";
import { stepsOf, settledParts } from "./answer.ts";
import { unrunCalls } from "./fit.ts";
import { budgetInput, budgetQuestion, budgetText, budgetTextAbove, BUDGET_TOOL } from "../../model/budget-question.ts";
import { callModel, type ModelRequest, named, nameOf, type TriedCall } from "../../model/call.ts";
import { asSent, requestOf, StepCall } from "./model-call.ts";
import { askedTurn, classify, type StepParts } from "./parts.ts";
import { prepareTurn } from "./prepare.ts";
import { stepRecord } from "./record.ts";
import { contextOf, StepRun } from "./step-run.ts";
import { openTelemetry } from "./telemetry.ts";
import { type CallStanding, runCalls, standingOf } from "./tool-calls.ts";
import type { ChatTurnOptions } from "./config.ts";

/** What a model may say in one call, where nothing else bounds it. For reservations only. */
const DEFAULT_OUTPUT_TOKENS = 8_192;

/** Answers turns step by step, but for those that the class answers itself. */
export function inSteps(parts: StepParts): Answerer {
  const { policy } = parts;
  const alwaysInSteps = () => !isAsked(parts, "onChatMessage");
  return {
    respond: async (options) =>
      parts.chat.agent.as(() => policy.onChatMessage(options), options.requestId, options.identity),
    steps: {
      run: (turn, options) => runSteps(parts, turn, options),
      ran: ({ seq }) => alwaysInSteps() || parts.ledger.attempts(seq, 0).length > 0,
      asked: (messageId, toolCallId) => alwaysInSteps() || parts.book.isOfSteps(messageId, toolCallId),
      background: parts.background,
    },
  };
}

/** Runs a turn step by step to its end, from where it was left. Undefined: it was stopped, and whoever did it knows its end. */
async function runSteps(parts: StepParts, active: Turn, options: ChatTurnOptions): Promise<TurnEnd | undefined> {
  const { chat: all } = parts;
  const fail = async (error: unknown, stage: "turn" | "stream", classification?: ChatErrorClassification) => {
    if (active.abort.signal.aborted) return undefined;
    const text = await explain(all, error, active.failure(stage, classification));
    return { status: "error", error: text } as const;
  };
  let run: StepRun | undefined;
  let cause: unknown;
  const go = async (): Promise<TurnEnd | undefined> => {
    const asked = askedTurn(parts, active.row.id, active.identity);
    const shown = () => contextOf(all, parts.window.reader, active.row.session, 0).base;
    const recovering = active.incident !== undefined;
    const turn = await asked.as(() => prepareTurn(parts, { ...options, recovering }, shown));
    active.tools = turn.tools;
    if (turn.config.chatStreamStallTimeoutMs !== undefined) {
      active.stallTimeoutMs = turn.config.chatStreamStallTimeoutMs;
      active.watchAnew();
    }
    run = new StepRun(parts, active, asked, turn, options);
    run.telemetry = await openTelemetry(turn.config.experimental_telemetry, active.row.id, all.host.clock);
    const loop = new StepLoop(run, (error, classification) => {
      cause = error;
      return fail(error, "stream", classification);
    });
    return loop.go();
  };
  const end = await go().catch((error: unknown) => {
    cause = error;
    return fail(error, "turn");
  });
  if (run?.telemetry !== undefined) await tellEnd(run, end, cause);
  return end;
}

async function tellEnd(run: StepRun, end: TurnEnd | undefined, cause: unknown): Promise<void> {
  const reason: unknown = end === undefined ? run.signal.reason : cause;
  await watch(run.asked, async () => run.telemetry?.ended(end, await run.records(), reason));
}

/** An earlier try, as the policy reads it. One that is open was cut: this life has just begun it, or lost it. */
function toFact({
  modelIndex,
  status,
  errorClass,
  retryAfterMs: wait,
  settledAt,
  startedAt,
  id,
}: LedgerEntry): TriedCall {
  const outcome = status === "open" ? "cut" : status;
  return { id, model: modelIndex, outcome, errorClass, retryAfterMs: wait, settledAt: settledAt ?? startedAt };
}

type Fail = (error: unknown, classification: ChatErrorClassification) => Promise<TurnEnd | undefined>;

class StepLoop {
  readonly #run: StepRun;
  readonly #fail: Fail;
  /** The step whose model call is settled and whose tools may still run. */
  #open: boolean;
  /** What the model was sent last. */
  #sent: ModelMessage[] | undefined;
  /** The step that was begun in the stream. */
  #begun: number;

  constructor(run: StepRun, fail: Fail) {
    this.#run = run;
    this.#fail = fail;
    const { builder, stepsEnded } = run.active;
    this.#open = run.called > stepsEnded;
    this.#begun = stepsOf(builder.parts.slice(builder.inherited)).length;
  }

  async go(): Promise<TurnEnd | undefined> {
    const run = this.#run;
    if (run.telemetry !== undefined) await this.#tellStart();
    for (;;) {
      const facts = await this.#facts();
      if (run.signal.aborted) return undefined;
      const move = nextStep(facts);
      if (move.kind === "run") {
        const messages = this.#sent ?? (await run.assemble());
        using _ = run.active.working();
        await runCalls(run, messages);
        continue;
      }
      if (this.#open) await this.#finishStep();
      if (run.signal.aborted) return undefined;
      if (move.kind === "call") {
        const end = await this.#call(move.step);
        if (end !== "called") return end;
        continue;
      }
      return this.#done();
    }
  }

  async #tellStart(): Promise<void> {
    const { telemetry, turn, context } = this.#run;
    const { base, own } = await this.#run.messages();
    const [model] = turn.models;
    if (model !== undefined) await telemetry?.started(turn, named(model), [...base, ...own], context);
  }

  async #facts(): Promise<StepFacts> {
    const run = this.#run;
    const { calls } = run;
    const standings = calls.map((part) => standingOf(run, part));
    if (run.stoodIn) standings.push("settled");
    const settled = standings.every((standing) => standing === "settled");
    const budget = calls.find((part) => toolName(part) === BUDGET_TOOL);
    return {
      called: run.called,
      maxSteps: run.turn.maxSteps,
      calls: standings,
      stop: settled && run.called > 0 && (await this.#stops()),
      // A call that was cut took up what was said: it has to be made, whoever else has nothing to say.
      steered: settled && (this.#begun > run.called || waitingSteers(run.all, run.active).length > 0),
      refused: budget?.state === "output-denied",
    };
  }

  async #stops(): Promise<boolean> {
    const { stopWhen } = this.#run.turn;
    if (stopWhen.length === 0) return false;
    const steps = await this.#run.records();
    for (const condition of stopWhen) if (await condition({ steps })) return true;
    return false;
  }

  /** Makes the model call of a step. */
  async #call(step: number): Promise<"called" | TurnEnd | undefined> {
    const run = this.#run;
    const { parts, asked, turn, active, all, payers, signal } = run;
    const { id, seq, session } = active.row;
    const books = {
      host: all.host,
      ledger: parts.ledger,
      payers,
      signal,
      classify: (error: unknown) => asked.as(() => classify(parts, error, active.failure("stream"))),
    };
    const tries = () => parts.ledger.attempts(seq, step);
    const end = await callModel(books, {
      ...{
        purpose: "turn",
        session: ownerIdOf(all.host, session),
        turn: { id, seq },
        step,
        models: turn.models,
        maxRetries: turn.config.maxRetries,
      },
      tries: () => {
        const made = tries();
        return { count: made.length, facts: run.window.since(made).map(toFact) };
      },
      prepare: (model) => this.#prepare(step, model),
      overflowed: (model, callId) => run.window.afterOverflow(model, callId),
      commit: (work) => all.commit(work, "commit"),
      settle: (write, result) => this.#settle(write, result),
      working: () => active.working(),
    });
    if (end.kind === "stopped") return undefined;
    if (end.kind === "over") return this.#overBudget(end.over);
    if (end.kind === "failed") return this.#fail(end.error ?? tries().at(-1)?.error, end.errorClass);
    this.#open = true;
    return "called";
  }

  /** What a try of a step sends: the conversation, made shorter if need be, as `beforeStep` wants it. */
  async #prepare(step: number, model: LanguageModel): Promise<ModelRequest | undefined> {
    const run = this.#run;
    const { parts, asked, active, all, payers } = run;
    let before: Awaited<ReturnType<StepRun["messages"]>> | undefined;
    const shorter = await run.window.makeRoom(model, async () => {
      before = await run.messages(model);
      return [...before.base, ...before.own];
    });
    if (run.signal.aborted) return undefined;
    const { base, own } = shorter || before === undefined ? await run.messages(model) : before;
    const asks = isAsked(asked, "beforeStep");
    const change = (asks && (await ask(asked, "beforeStep", await this.#stepContext(step, model, base, own)))) || {};
    if (run.signal.aborted) return undefined;
    if (change.experimental_context !== undefined) run.context = change.experimental_context;
    const chosen = change.model ?? model;
    const fit = chosen === model ? { base, own } : await run.messages(chosen);
    const planned = asSent(run, change.messages ?? [...fit.base, ...fit.own]);
    const { timeout, maxOutputTokens } = run.turn.config;
    const output = maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS;
    // The step begins with its first try, which takes up what was said meanwhile.
    const steers = () => (this.#begun <= step ? waitingSteers(all, run.active) : []);
    // Only where it is limited need anybody know how large it may become.
    const sized = payers !== undefined || parts.ledger.limited;
    // Asked of the answer under way too, which may take up more until it is sent.
    const describe = (messages: ModelMessage[]) =>
      parts.requests.describe(
        { ...requestOf(run, change, chosen), messages: asSent(run, messages) },
        sized ? [null, output] : [null],
      );
    let described = await describe(change.messages ?? [...fit.base, ...fit.own]);
    if (run.signal.aborted) return undefined;
    let booked = 0;
    let taken: readonly Steer[] = [];
    return {
      ...{ model: chosen, timeout, output: sized ? output : 0 },
      input: () => (sized ? this.#input(chosen, planned, steers()) : 0),
      // What is taken up is known in words, but not yet as the model reads it.
      sent: (bounded) => (steers().length > 0 ? undefined : described.facts(bounded ? output : null)),
      reserved: (callId, seq) => {
        booked = seq;
        taken = steers();
        if (taken.length === 0) described.store(seq);
        if (this.#begun <= step) {
          const receipt = { turnId: active.row.id, step, callId };
          for (const chunk of taken.length === 0 ? [] : takeSteers(all, active, receipt)) active.take({ chunk });
          active.take({ chunk: { type: "start-step" } });
        }
        // What the call builds on is stored before it is made: the end of the step before, and what was taken up.
        active.log.flush(taken.length > 0 ? "sync" : "commit");
      },
      begin: async (callId, bounded) => {
        if (taken.length > 0)
          closeSteers(
            all,
            taken.map(({ turn }) => turn),
          );
        run.window.reserved();
        if (this.#begun <= step) this.#tellStep("step:started", { step });
        this.#begun = Math.max(this.#begun, step + 1);
        const messages = change.messages ?? [...fit.base, ...(await run.own(chosen))];
        this.#sent = messages;
        if (taken.length > 0) {
          described = await describe(messages);
          parts.requests.write(callId, booked, described, bounded ? output : null);
        }
        const most = bounded ? output : maxOutputTokens;
        return new StepCall(run, { callId, step, model: chosen, messages, change, maxOutputTokens: most });
      },
    };
  }

  /** The most that a request can be, in tokens, with what was said meanwhile. */
  #input(model: LanguageModel, messages: readonly ModelMessage[], steers: readonly Steer[]): number {
    const { turn, parts } = this.#run;
    const { instructions = "", tools } = turn;
    const said = steers.map(({ message }): ModelMessage => ({ role: "user", content: JSON.stringify(message.parts) }));
    const text = typeof instructions === "string" ? instructions : JSON.stringify(instructions);
    const name = nameOf(model);
    const { counters, learned } = parts.window;
    return counters.weigh(name, (count) => {
      return reservedTokens([...messages, ...said], text, tools, learned.of(name), count);
    });
  }

  #settle(write: () => void, { outcome, errorClass }: CallResult): void {
    const { active, all, payers } = this.#run;
    const { log, row } = active;
    if (outcome === "cut") all.commit(write);
    // In one commit with what comes next: the intent of its tools, or the end of the turn. But others hear only of what
    // is stored here: so they can be told again.
    else if (outcome === "ok" && payers === undefined) log.also(write);
    else log.flush("commit", write);
    if (errorClass !== undefined) all.host.emit("chat:call:failed", { requestId: row.id, errorClass });
  }

  async #overBudget(verdict: OverBudget | OverBudgetAbove): Promise<TurnEnd | undefined> {
    const { active, all, parts, payers, called, signal } = this.#run;
    const { over: scope, limit } = verdict;
    const above = "agent" in verdict ? verdict.agent : undefined;
    all.host.emit("chat:budget:reached", {
      ...{ requestId: active.row.id, scope, limit },
      ...(above !== undefined && { agent: above }),
    });
    if (above !== undefined) {
      // Nobody there can be asked from here: the run ends, and whoever asked for it says what comes next.
      active.log.also(() => payers?.overBudget());
      return { status: "error", error: budgetTextAbove(verdict, above) };
    }
    if (verdict.kind === "hard") return { status: "error", error: budgetText(verdict) };
    const toolCallId = newId("budget");
    const input = budgetInput(verdict);
    const digest = await digestOf(BUDGET_TOOL, input);
    if (signal.aborted) return undefined;
    const { approvalTimeoutMs } = all.policy;
    const expiresAt = approvalTimeoutMs > 0 ? all.host.clock.now() + approvalTimeoutMs : null;
    // Asked like any other question, and listed with them.
    active.log.also(() =>
      parts.book.ask({
        ...{ messageId: active.builder.id, toolCallId, turnId: active.row.id, step: called },
        ...{ tool: BUDGET_TOOL, input, digest, replay: "never", expiresAt },
      }),
    );
    for (const chunk of unrunCalls(active.builder, called)) active.take({ chunk });
    for (const chunk of budgetQuestion(toolCallId, verdict)) active.take({ chunk });
    return { status: "completed" };
  }

  async #stepContext(step: number, model: LanguageModel, base: ModelMessage[], own: ModelMessage[]) {
    const run = this.#run;
    const { instructions } = run.turn;
    return {
      steps: await run.records(),
      stepNumber: step,
      model,
      instructions,
      initialInstructions: instructions,
      messages: [...base, ...own],
      initialMessages: base,
      responseMessages: own as never,
      toolsContext: {} as never,
      runtimeContext: (run.context ?? {}) as never,
      experimental_context: run.context,
      identity: run.active.identity,
    };
  }

  /** All that the step asked for is settled, or waits for others. */
  async #finishStep(): Promise<void> {
    const run = this.#run;
    this.#open = false;
    run.active.take({ chunk: { type: "finish-step" } });
    run.active.releaseHeld();
    this.#tellStep("step:settled", { step: run.called - 1, toolCalls: run.calls.length });
    const hears = isHeard(run.asked, "onStepFinish");
    const meta = run.metas.at(-1);
    if ((!hears && run.telemetry === undefined) || meta === undefined) return;
    const parts = stepsOf(settledParts(run.active.builder, run.called)).at(-1) ?? [];
    const record = stepRecord({ ...meta, context: run.context }, parts, await run.own());
    if (hears) await tell(run.asked, "onStepFinish", record);
    await run.telemetry?.stepEnded(record);
  }

  #tellStep<T extends "step:started" | "step:settled">(type: T, more: Omit<AgentEvents[T], "requestId" | "session">) {
    const { all, active } = this.#run;
    const { id: requestId, session } = active.row;
    all.host.emit(type, { requestId, session, ...more } as AgentEvents[T]);
  }

  async #done(): Promise<TurnEnd> {
    const { active, turn, metas } = this.#run;
    const meta = metas.at(-1);
    active.take({ chunk: { type: "finish", finishReason: meta?.finishReason ?? "other" } });
    const silent = active.log.count === 0;
    if (turn.config.output === undefined || meta === undefined) return { status: "completed", silent };
    const text = stepsOf(active.builder.parts)
      .at(-1)
      ?.map((part) => (part.type === "text" ? part.text : ""))
      .join("");
    const output: unknown = await turn.config.output.parseCompleteOutput(
      { text: text ?? "" },
      { response: meta.response as never, usage: meta.usage, finishReason: meta.finishReason },
    );
    return { status: "completed", silent, output };
  }
}

/*
 * The life of a step
 *
 *              ┌───────────────────────────────────────────────┐
 *              ▼                                               │
 *   ──► call (one model call, tried until it is settled) ──► run (the calls it asked for) ──► …
 *              │                                               │
 *              └──► done                                       └──► wait (a client or a person has to answer)
 *
 * Nothing here is remembered in memory: how many model calls of the turn are settled is counted in the ledger, what
 * they said and what became of the tools they asked for is read from the answer, which is folded from the stream log.
 * So after a crash the same facts give the same move. A model call that was cut is not settled, and is made again; a
 * tool call that was cut has its intent on the books, and its own policy says what becomes of it.
 */

/** What is known of a turn between two moves. */
export interface StepFacts {
  /** Model calls of this turn that are settled. */
  readonly called: number;
  readonly maxSteps: number;
  /** The calls of the last step, this turn's or the one that it goes on with. */
  readonly calls: readonly CallStanding[];
  /** The app's conditions say that it is enough. Only asked for after a step of this turn. */
  readonly stop: boolean;
  /** The model is to see the results of the last step, or something that was said meanwhile. */
  readonly steered: boolean;
  /** The last step asked a person for more budget, and was refused. */
  readonly refused: boolean;
}

/** What to do next. */
export type StepMove =
  | { readonly kind: "call"; readonly step: number }
  | { readonly kind: "run" }
  | { readonly kind: "wait" }
  | { readonly kind: "done"; readonly why: "answered" | "steps" | "stopped" | "refused" };

/** Decides by the facts. Pure. */
export function nextStep(facts: StepFacts): StepMove {
  const { called, calls } = facts;
  if (calls.includes("ready")) return { kind: "run" };
  if (calls.includes("waiting")) return { kind: "wait" };
  if (facts.refused) return { kind: "done", why: "refused" };
  // A turn that has not asked its model yet has something to ask, whatever it goes on with.
  if (called === 0) return { kind: "call", step: 0 };
  if (facts.stop) return { kind: "done", why: "stopped" };
  if (calls.length === 0 && !facts.steered) return { kind: "done", why: "answered" };
  if (called >= facts.maxSteps) return { kind: "done", why: "steps" };
  return { kind: "call", step: called };
}
