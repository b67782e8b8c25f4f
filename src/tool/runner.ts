import type { FlexibleSchema, ModelMessage, TimeoutConfiguration, Tool, ToolSet } from "ai";
import { loadAiSdk } from "../base/ai-sdk.ts";
import { unlessAborted } from "../base/abort.ts";
import { PerdureError, errorText } from "../base/error.ts";
import { type Clock, systemClock } from "../base/time.ts";
import type { Identity } from "../base/identity.ts";
import { isRecord, encodeJson } from "../base/json.ts";
import { approvalText, readNeed } from "./action-bind.ts";
import { boundOutput, boundPreview, type KeepText, MAX_ERROR_BYTES } from "./bound-output.ts";
import type { ToolCallContext, ToolCallDecision } from "./call-hooks.ts";
import { type CallApproval, type DurableExecutionOptions, toolOptionsOf, type ToolOptions } from "./define.ts";
import { oddAnswer } from "./odd-answer.ts";
import {
  type NestedCall,
  type NestedOutcome,
  type ToolTurn,
  ParkedCall,
  type ParkedQuestion,
  type ResumedCall,
} from "./park.ts";
import { hasProtoField, isDeeperThan, MAX_INPUT_DEPTH, PROTO_TEXT, toPlainJson } from "./plain-json.ts";
import { cutText } from "../message/cut-value.ts";
import { passingSteps, type ToolStep } from "./step.ts";

/** A call that is to be judged and run. */
export interface ToolCall extends ToolCallInput {
  readonly tool: Tool;
  /** Of a tool that is not declared in code. */
  readonly dynamic?: boolean;
}

/** What becomes of a call. */
export type Verdict =
  /** It may run, with this input. */
  | { readonly kind: "run"; readonly input: unknown }
  /** A person has to be asked. `summary` and `waitMs`: where the tool says what is asked, and how long it may wait. */
  | {
      readonly kind: "ask";
      readonly reason: string | undefined;
      readonly summary?: string;
      readonly waitMs?: number;
    }
  /** It has ended without its tool. */
  | { readonly kind: "answer"; readonly ended: EndedCall }
  /** `beforeToolCall` does not let it run. */
  | { readonly kind: "block"; readonly reason: string | undefined }
  /** It may not run. */
  | { readonly kind: "refuse"; readonly reason: string | undefined };

/** By whose rules calls are judged, and as whom they run: a turn's, or nobody's. */
export interface ToolRules {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly identity?: Identity | undefined;
  /** What tools and rules get as their context. */
  readonly context?: unknown;
  readonly stepNumber?: number;
  /** The turn's bounds. A tool's own comes before those for all tools. */
  readonly timeout?: TimeoutConfiguration<ToolSet> | undefined;
  /** Outputs are handed on as long as they are: somebody judges them before anything of them is kept. */
  readonly whole?: boolean;
  /** What nobody can be asked about ends with this text. Without it, people are asked. */
  unasked?(toolName: string): string;
  /** The turn's `toolApproval`. What it throws, the judge throws. */
  approval?(call: ToolCall, messages: readonly ModelMessage[]): unknown;
  /** `beforeToolCall`. What it throws is the call's error. */
  before?(called: ToolCallContext): unknown;
  /** Shows how a call inside of another one ended, to who may change it. */
  ended?(tool: Tool, called: ToolCallContext, ended: EndedCall, durationMs: number): Promise<EndedCall>;
  /** Gives a tool that another one calls its agent, where it needs one. */
  bind?(toolName: string, tool: Tool): Tool;
  /** Runs a tool as the agent. */
  as?<T>(work: () => T): T;
  /** Told of a rule that said what means nothing: then a person is asked. */
  odd?(error: PerdureError): void;
  readonly keep: KeepText;
}

/** A call that calls others. */
interface OuterCall {
  readonly toolCallId: string;
  /** Its name in sentences. */
  readonly name: string;
  readonly idempotencyKey: string;
  /** Who has said yes in the middle of it. */
  approval?(): CallApproval | undefined;
}

/** What `toolApproval` may say of a call. */
const STATUSES: ReadonlySet<unknown> = new Set(["not-applicable", "approved", "denied", "user-approval"]);

/** Why a call cannot be run, whatever anybody says. */
export function unfit(input: unknown): string | undefined {
  if (isDeeperThan(input, MAX_INPUT_DEPTH))
    return `The input is nested deeper than ${MAX_INPUT_DEPTH} levels. Call the tool with a flatter one.`;
  return hasProtoField(input) ? `The input ${PROTO_TEXT}` : undefined;
}

/** Judges calls of tools and runs them: the model's own, those of other tools, and those outside of turns. */
export class ToolRunner {
  readonly #rules: ToolRules;

  constructor(rules: ToolRules) {
    this.#rules = rules;
  }

  /** A call as hooks are told of it. */
  contextOf(call: Omit<ToolCall, "tool">, messages: readonly ModelMessage[]): ToolCallContext {
    const { toolCallId, toolName, input, dynamic } = call;
    const { stepNumber = 0, identity, signal: abortSignal } = this.#rules;
    return {
      ...{ type: "tool-call", toolCallId, toolName, input, ...(dynamic === true && { dynamic }) },
      ...{ stepNumber, identity, messages, abortSignal },
    } as ToolCallContext;
  }

  /**
   * Asks `toolApproval`, the tool's `needsApproval` and `beforeToolCall`. Changes nothing. Rejects with what the first two throw:
   * a call that cannot be judged must not run.
   * @param approved a person has said yes
   */
  async judge(call: ToolCall, messages: readonly ModelMessage[], approved: boolean): Promise<Verdict> {
    const need = approved ? undefined : await this.#need(call, messages);
    const text = need?.kind === "ask" ? this.#rules.unasked?.(call.toolName) : undefined;
    if (need !== undefined) return text === undefined ? need : { kind: "refuse", reason: text };
    try {
      const decision = await this.#before(call, messages);
      if (decision.action === "block") return { kind: "block", reason: decision.reason };
      if (decision.action === "allow") return { kind: "run", input: decision.input ?? call.input };
      const output = toPlainJson(decision.output, `What stands for the output of "${call.toolName}"`);
      return { kind: "answer", ended: { kind: "output", output } };
    } catch (thrown) {
      return { kind: "answer", ended: failedCall(thrown) };
    }
  }

  /** Undefined: nobody has to be asked. */
  async #need(call: ToolCall, messages: readonly ModelMessage[]): Promise<Verdict | undefined> {
    const { context, identity } = this.#rules;
    const odd = (error: PerdureError) => this.#rules.odd?.(error);
    const status: unknown = await this.#rules.approval?.(call, messages);
    const { type, reason } = readStatus(status);
    if (!STATUSES.has(type)) {
      odd(oddAnswer("toolApproval", status, [...STATUSES].join(", ")));
      return { kind: "ask", reason: undefined };
    }
    if (type === "approved") return undefined;
    if (type === "denied") return { kind: "refuse", reason };
    if (type === "user-approval") return { kind: "ask", reason };
    const own = (call.tool as { needsApproval?: unknown }).needsApproval;
    if (own === undefined) return undefined;
    const { toolCallId, input } = call;
    const given = { toolCallId, messages, identity, context, experimental_context: context };
    const needed: unknown =
      typeof own === "function" ? await (own as (input: unknown, options: unknown) => unknown)(input, given) : own;
    const need = readNeed(needed, odd);
    if (need.kind === "free") return undefined;
    if (need.kind === "answer") return { kind: "answer", ended: { kind: "output", output: need.output } };
    const { expiresInMs: waitMs } = need;
    const summary = approvalText(need);
    return { kind: "ask", reason: summary, summary, waitMs };
  }

  async #before(call: ToolCall, messages: readonly ModelMessage[]): Promise<ToolCallDecision> {
    const said: unknown = (await this.#rules.before?.(this.contextOf(call, messages))) ?? { action: "allow" };
    if (isDecision(said)) return said;
    throw oddAnswer("beforeToolCall", said, "nothing, or an action: allow, block or substitute");
  }

  /** Runs a call within the limits of its turn and its tool. Never rejects. */
  run(
    { tool, toolCallId, toolName, input }: ToolCall,
    messages: readonly ModelMessage[],
    given: Pick<CallContext, "abortSignal" | "idempotencyKey"> & Partial<CallContext>,
  ): Promise<CallOutcome> {
    const rules = this.#rules;
    const { clock, identity, context: runtimeContext, keep, whole = false } = rules;
    const bounds = typeof rules.timeout === "object" ? rules.timeout : {};
    const own = (bounds.tools as Record<string, number> | undefined)?.[`${toolName}Ms`];
    const timeoutMs = own ?? toolOptionsOf(tool).timeoutMs ?? bounds.toolMs;
    const context = { messages: [...messages], identity, clock, runtimeContext, keep, progress: () => {}, ...given };
    const work = () => runCall(tool, { toolCallId, toolName, input }, context, { timeoutMs, whole });
    return rules.as?.(work) ?? work();
  }

  /** What a call may ask of its runner. Calls inside are not booked: the outer one is, and it never starts twice. */
  nested(outer: OuterCall, messages: readonly ModelMessage[]): ToolTurn {
    return {
      runNested: async (call) => {
        const outcome = await this.#nested(outer, call, messages).catch(failedCall);
        // What was thrown is for hooks; whoever calls reads the text.
        return outcome.kind === "error" ? { kind: "error", errorText: outcome.errorText } : outcome;
      },
    };
  }

  async #nested(outer: OuterCall, call: NestedCall, messages: readonly ModelMessage[]): Promise<NestedOutcome> {
    const rules = this.#rules;
    const { toolName, index, signal } = call;
    const tool = rules.bind?.(toolName, call.tool) ?? call.tool;
    if (tool.execute === undefined)
      return failedCall(`The tool "${toolName}" runs on the user's device and cannot be called inside ${outer.name}.`);
    const text = unfit(call.input);
    if (text !== undefined) return failedCall(text);
    const input = await checkInput(tool, toolName, call.input);
    const asked: ToolCall = { toolCallId: `${outer.toolCallId}/${index}`, toolName, tool, input };
    const end = async (ended: EndedCall, given = input, durationMs = 0) =>
      (await rules.ended?.(tool, this.contextOf({ ...asked, input: given }, messages), ended, durationMs)) ?? ended;
    const approved = call.approved === true;
    const verdict = await this.judge(asked, messages, approved);
    switch (verdict.kind) {
      case "ask":
        return verdict;
      case "refuse":
        return failedCall(verdict.reason ?? `The call of "${toolName}" was denied.`);
      case "block":
        return end(failedCall(verdict.reason ?? `The call of "${toolName}" was blocked.`));
      case "answer":
        return end(verdict.ended);
      case "run":
        break;
    }
    const began = rules.clock.now();
    const outcome = await this.run({ ...asked, input: verdict.input }, messages, {
      abortSignal: signal === undefined ? rules.signal : AbortSignal.any([rules.signal, signal]),
      idempotencyKey: `${outer.idempotencyKey}/${index}`,
      approval: approved ? outer.approval?.() : undefined,
    });
    if (outcome.kind === "aborted") return outcome;
    const ended =
      outcome.kind === "parked"
        ? failedCall(`The tool "${toolName}" waits for a person, and cannot do so inside ${outer.name}.`)
        : outcome;
    return end(ended, verdict.input, rules.clock.now() - began);
  }
}

/** Runs tools where there is no turn: by their own rules alone, and what needs a person is refused. */
export function withoutTurn(
  unasked: (toolName: string) => string,
  {
    context,
    abortSignal = new AbortController().signal,
  }: Pick<DurableExecutionOptions, "abortSignal"> & { context?: unknown } = {},
): ToolRunner {
  return new ToolRunner({ clock: systemClock, signal: abortSignal, context, unasked, keep: async () => undefined });
}

function readStatus(status: unknown): { type: unknown; reason?: string | undefined } {
  if (status === undefined || status === null) return { type: "not-applicable" };
  if (!isRecord(status)) return { type: status };
  return { type: status.type, reason: typeof status.reason === "string" ? status.reason : undefined };
}

function isDecision(said: unknown): said is ToolCallDecision {
  return isRecord(said) && (said.action === "allow" || said.action === "block" || said.action === "substitute");
}

/** What a parked call may leave. It is stored in the agent's file until the person has answered. */
const MAX_PARKED_BYTES = 16 * 1024 * 1024;

/** As long as what is stored beside the input of a question. */
const LONGEST_DIGEST = "-".repeat(200);

/** One call that a model asked for. */
interface ToolCallInput {
  readonly toolCallId: string;
  readonly toolName: string;
  readonly input: unknown;
}

/** What a call runs in. */
export interface CallContext {
  /** What the model had been sent when it asked for the call. */
  readonly messages: ModelMessage[];
  /** For whom the turn is. */
  readonly identity?: Identity | undefined;
  /** Who has approved the call. */
  readonly approval?: CallApproval | undefined;
  /** The turn's. */
  readonly abortSignal: AbortSignal;
  /** The same each time this call runs. */
  readonly idempotencyKey: string;
  readonly clock: Clock;
  /** What the tool gets as its `context`. */
  readonly runtimeContext?: unknown;
  /** What the call left when it was parked. */
  readonly resumed?: ResumedCall | undefined;
  /** For tools that call others. */
  readonly turn?: ToolTurn;
  /** Makes what stores the steps of the call. Without it nothing of them is stored. */
  steps?(signal: AbortSignal): ToolStep;
  /** Takes an output that is not the last one. If it throws, that one is not shown; the call goes on. */
  progress(output: unknown): void;
  /** Stores an output that is too long to go into the conversation. */
  readonly keep: KeepText;
}

/** How a call ended. Outputs are plain JSON within the tool's limits. */
export type CallOutcome =
  | { readonly kind: "output"; readonly output: unknown }
  /** `error` is what was thrown, itself; the model reads the text. */
  | { readonly kind: "error"; readonly errorText: string; readonly error: unknown }
  /** A person has to be asked in the middle of it. */
  | { readonly kind: "parked"; readonly question: ParkedQuestion }
  /** The turn was stopped first. What the tool did until then, or does after, is not known. */
  | { readonly kind: "aborted" };

/** How a call ended, whether its tool ran or not. */
export type EndedCall = Extract<CallOutcome, { kind: "output" | "error" }>;

/** How a call is run. */
export interface RunCallOptions {
  /** Instead of the tool's own. */
  readonly timeoutMs?: number | undefined;
  /** Hands the output on as long as it is: somebody judges it before anything of it is kept, and bounds it then. */
  readonly whole?: boolean;
}

/**
 * Runs one call to its end. Never rejects: what a tool throws is an outcome. An abort or timeout ends the call at once, whether
 * or not the tool listens; what it does afterwards is ignored.
 */
export async function runCall(
  tool: Tool,
  call: ToolCallInput,
  context: CallContext,
  options: RunCallOptions = {},
): Promise<CallOutcome> {
  const { abortSignal } = context;
  if (abortSignal.aborted) return { kind: "aborted" };
  const limits = toolOptionsOf(tool);
  const timeoutMs = options.timeoutMs ?? limits.timeoutMs;
  const stop = new AbortController();
  const cut = Promise.withResolvers<CallOutcome>();
  const onAbort = () => {
    cut.resolve({ kind: "aborted" });
    stop.abort(abortSignal.reason);
  };
  abortSignal.addEventListener("abort", onAbort, { once: true });
  const cancelTimer = startTimer(timeoutMs, context.clock, () => {
    const text = `The tool "${call.toolName}" did not finish within ${timeoutMs} ms and was stopped.`;
    const error = new PerdureError("timeout", text);
    cut.resolve({ kind: "error", errorText: text, error });
    stop.abort(error);
  });
  const ended = await Promise.race([execute(tool, call, context, stop.signal, limits), cut.promise]);
  cancelTimer();
  abortSignal.removeEventListener("abort", onAbort);
  if (ended.kind !== "output" || options.whole === true) return ended;
  // What was done is done: a stop that comes now takes nothing from the output but the place where its whole is kept.
  const keep: KeepText = (text) => unlessAborted(() => context.keep(text), abortSignal);
  return { kind: "output", output: await boundOutput(ended.output, limits, keep) };
}

function startTimer(timeoutMs: number | undefined, clock: Clock, work: () => void): () => void {
  return timeoutMs === undefined ? () => {} : clock.after(timeoutMs, work);
}

async function execute(
  tool: Tool,
  call: ToolCallInput,
  context: CallContext,
  signal: AbortSignal,
  limits: ToolOptions,
): Promise<CallOutcome> {
  const { toolName, toolCallId } = call;
  try {
    if (tool.execute === undefined) {
      throw new PerdureError("bad_config", `The tool "${toolName}" cannot be run here: it has no execute.`);
    }
    const { input } = call;
    const { contextSchema } = tool;
    const given =
      contextSchema === undefined
        ? context.runtimeContext
        : await checked(contextSchema, context.runtimeContext, `The context of "${toolName}"`);
    if (signal.aborted) return { kind: "aborted" };
    const handed: DurableExecutionOptions & { experimental_context: unknown } = {
      toolCallId,
      messages: context.messages,
      abortSignal: signal,
      idempotencyKey: context.idempotencyKey,
      // Tools ask whether there is one, so it is left out where there is none.
      ...(context.identity !== undefined && { identity: context.identity }),
      ...(context.approval !== undefined && { approval: context.approval }),
      ...(context.resumed !== undefined && { resumed: context.resumed }),
      ...(context.turn !== undefined && { turn: context.turn }),
      step: context.steps?.(signal) ?? passingSteps(context.idempotencyKey, signal),
      context: given,
      // Its name before version 7 of the AI SDK.
      experimental_context: given,
    };
    const result: unknown = tool.execute(input, handed);
    // The AI SDK follows only what is returned directly; a promise of a stream would be stored as {}.
    const output: unknown = isAsyncIterable(result) ? result : await result;
    const show = (item: unknown) => showProgress(item, context, limits);
    const last = isAsyncIterable(output) ? await lastOf(output, signal, show) : output;
    if (last instanceof ParkedCall) return parked(last, input);
    return { kind: "output", output: toPlainJson(last, `The output of "${toolName}"`) };
  } catch (thrown) {
    return failedCall(thrown);
  }
}

async function lastOf(items: AsyncIterable<unknown>, signal: AbortSignal, show: (item: unknown) => void) {
  let last: unknown;
  for await (const item of items) {
    // Leaving the loop lets a generator run its `finally`.
    if (signal.aborted) break;
    last = item;
    show(item);
  }
  return last;
}

function showProgress(item: unknown, context: CallContext, limits: ToolOptions): void {
  if (item instanceof ParkedCall) return;
  try {
    context.progress(boundPreview(toPlainJson(item, "A preview"), limits));
  } catch {
    // A preview is a courtesy: one that is not JSON, or that nobody can take, does not fail the call.
  }
}

/** The input as the tool reads it. @throws PerdureError `bad_input` when it does not fit the tool's schema */
export function checkInput(tool: Tool, toolName: string, input: unknown): Promise<unknown> {
  return checked(tool.inputSchema, input, `The input of "${toolName}"`);
}

async function checked(schema: FlexibleSchema<unknown>, value: unknown, what: string): Promise<unknown> {
  const { asSchema } = await loadAiSdk();
  const result = await asSchema(schema).validate?.(value);
  if (result === undefined) return value;
  if (result.success) return result.value;
  throw new PerdureError("bad_input", `${what} does not fit its schema: ${errorText(result.error)}`);
}

/** A call that ended with an error. */
export function failedCall(error: unknown): Extract<CallOutcome, { kind: "error" }> {
  return { kind: "error", errorText: cutText(messageOf(error), MAX_ERROR_BYTES), error };
}

function parked({ question }: ParkedCall, given: unknown): CallOutcome {
  const { tool, input, state } = question;
  // What no row can hold is the model's to change, and must not end the turn. The stored text is a little longer.
  encodeJson([input ?? null, tool, LONGEST_DIGEST, given ?? null], `The input of "${tool}"`);
  if (state.byteLength <= MAX_PARKED_BYTES) return { kind: "parked", question };
  const text =
    `The call needs a person's approval of "${tool}", but what it would have to keep until then is too large ` +
    `(${state.byteLength} bytes; at most ${MAX_PARKED_BYTES}). Call "${tool}" earlier, or with less data in variables.`;
  return failedCall(new PerdureError("limit", text));
}

/** The message of whatever was thrown, never its stack. */
function messageOf(thrown: unknown): string {
  try {
    // Errors of another realm, such as a sandbox, are no instances of ours.
    const own = !(thrown instanceof Error) && isRecord(thrown) ? thrown.message : undefined;
    return typeof own === "string" && own !== "" ? own : errorText(thrown);
  } catch {
    return errorText(undefined);
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  if (typeof value !== "object" || value === null || !(Symbol.asyncIterator in value)) return false;
  return typeof value[Symbol.asyncIterator] === "function";
}
