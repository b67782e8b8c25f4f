import { asSchema, type FlexibleSchema, type ModelMessage, type Tool } from "ai";
import { errorText, PerdureError } from "../base/error.ts";
import { encodeJson, isRecord } from "../base/json.ts";
import type { Clock } from "../base/time.ts";
import type { Identity } from "../base/identity.ts";
import { cutText } from "../message/cut-value.ts";
import { boundOutput, boundPreview, type KeepText } from "./bound-output.ts";
import { type CallApproval, type DurableExecutionOptions, type ToolOptions, toolOptionsOf } from "./define.ts";
import { ParkedCall, type ParkedQuestion, type ResumedCall, type ToolTurn } from "./park.ts";
import { toPlainJson } from "./plain-json.ts";
import { passingSteps, type ToolStep } from "./step.ts";

/** Errors of calls go to the model with every later request, so that more of one would cost more than it helps. */
export const MAX_ERROR_BYTES = 6_000;

/** What a parked call may leave. It is stored in the agent's file until the person has answered. */
export const MAX_PARKED_BYTES = 16 * 1024 * 1024;

/** As long as what is stored beside the input of a question. */
const LONGEST_DIGEST = "-".repeat(200);

/** One call that a model asked for. */
export interface ToolCallInput {
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
 * Runs one call to its end. Never rejects: what a tool throws is an outcome. An abort of the turn, or the tool's own
 * timeout, ends the call at once, whether the tool listens to its signal or not; what it does afterwards is ignored.
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

function unlessAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  if (signal.aborted) return Promise.resolve(undefined);
  const stopped = Promise.withResolvers<undefined>();
  const stop = () => stopped.resolve(undefined);
  signal.addEventListener("abort", stop, { once: true });
  return Promise.race([work(), stopped.promise]).finally(() => signal.removeEventListener("abort", stop));
}
