import { type Cutting, cutText, cutValue } from "../../message/cut-value.ts";
import { isRecord } from "../../base/json.ts";
import type { Json } from "../sandbox/sandbox.ts";
import { toPlainJson } from "../../tool/plain-json.ts";

/* What extensions are told: JSON a hook can read in its time. Types name only what is read, so what the engine has fits. */

/** What the engine tells of a turn before it begins. */
export interface TurnFacts {
  readonly requestId: string;
  readonly sessionId: string;
  readonly system: string;
  readonly messages: readonly unknown[];
  readonly tools: object;
  readonly model: unknown;
  readonly continuation: boolean;
  readonly body?: Record<string, unknown> | undefined;
}

/** What the engine tells of a tool call. */
export interface CallFacts {
  readonly toolName: string;
  readonly toolCallId: string;
  readonly input: unknown;
  readonly stepNumber: number;
  readonly dynamic?: boolean | undefined;
}

/** What the engine tells of a tool call that has its end. */
export interface ResultFacts extends CallFacts {
  readonly durationMs: number;
  readonly success: boolean;
  readonly output?: unknown;
  readonly error?: unknown;
}

/** What the engine tells of a step that is over. */
export interface StepFacts {
  readonly stepNumber: number;
  readonly finishReason: string;
  readonly text: string;
  readonly reasoningText?: string | undefined;
  readonly toolCalls: readonly unknown[];
  readonly toolResults: readonly unknown[];
  readonly usage: unknown;
}

/** A piece of the model's stream. */
export interface ChunkFacts {
  readonly chunk: { readonly type: string };
}

type JsonFields = { readonly [key: string]: Json };

export const MAX_TEXT_BYTES = 32_000;
const MAX_VALUE_BYTES = 16_000;
const MAX_NAMES = 500;

const inBytes: Cutting = {
  size: (json) => json.length,
  text: cutText,
  moreItems: (count) => `… [${count} more items]`,
  moreFields: (count) => `… [${count} more fields]`,
};

export function turnSnapshot(facts: TurnFacts): Json {
  const { requestId, sessionId, continuation, model, body } = facts;
  return {
    ...{ requestId, sessionId, continuation },
    system: cutText(facts.system, MAX_TEXT_BYTES),
    toolNames: Object.keys(facts.tools).slice(0, MAX_NAMES),
    messageCount: facts.messages.length,
    modelId: modelIdOf(model),
    ...(body !== undefined && { body: bounded(body) }),
  };
}

export function callSnapshot({ toolName, toolCallId, input, stepNumber, dynamic }: CallFacts): JsonFields {
  return { toolName, toolCallId, stepNumber, input: bounded(input), ...(dynamic === true && { dynamic }) };
}

export function resultSnapshot(facts: ResultFacts): Json {
  const { durationMs, success, output, error } = facts;
  const call = { ...callSnapshot(facts), durationMs, success };
  return success ? { ...call, output: bounded(output) } : { ...call, error: errorOut(error) };
}

export function stepSnapshot(facts: StepFacts): Json {
  return {
    ...{ stepNumber: facts.stepNumber, finishReason: facts.finishReason },
    text: cutText(facts.text, MAX_TEXT_BYTES),
    ...(facts.reasoningText !== undefined && { reasoningText: cutText(facts.reasoningText, MAX_TEXT_BYTES) }),
    toolCallCount: facts.toolCalls.length,
    toolResultCount: facts.toolResults.length,
    usage: bounded(facts.usage),
  };
}

export function chunkSnapshot({ chunk }: ChunkFacts): JsonFields {
  const { type } = chunk;
  const { text, delta, toolName, toolCallId, id }: Record<string, unknown> = { ...chunk };
  const said = text ?? delta;
  const call = toolCallId ?? (type.startsWith("tool-") ? id : undefined);
  return {
    type,
    ...(typeof said === "string" && { text: cutText(said, MAX_TEXT_BYTES) }),
    ...(typeof toolName === "string" && { toolName }),
    ...(typeof call === "string" && { toolCallId: call }),
  };
}

function bounded(value: unknown): Json {
  try {
    return cutValue(toPlainJson(value, "A snapshot"), MAX_VALUE_BYTES, inBytes) as Json;
  } catch {
    return "[not JSON]";
  }
}

function errorOut(error: unknown): string {
  const text = error instanceof Error ? error.message : typeof error === "string" ? error : "It failed.";
  return cutText(text, MAX_VALUE_BYTES);
}

function modelIdOf(model: unknown): string | null {
  if (typeof model === "string") return model;
  return isRecord(model) && typeof model.modelId === "string" ? model.modelId : null;
}
