import type { Usage } from "../ledger/token-usage.ts";
import type { ModelLimits } from "./model-limits.ts";

/** Above this share of what is usable, a conversation is made shorter before the next call. */
export const PROACTIVE_SHARE = 0.9;
/** Above this share it may be made shorter in the background. */
export const BACKGROUND_SHARE = 0.6;
/** Above this share a turn waits for what is made shorter in the background. */
export const WAIT_SHARE = 0.85;
/** Set aside for the answer, at least: a model that may say little may still think, and an estimate is one. */
export const RESERVED_OUTPUT_TOKENS = 16_000;
/** In a small window the answer gets no more than this. */
const MOST_FOR_OUTPUT = 0.5;
/** Usage that is so many times less or more than what was sent is no count of it. */
const ABSURD = 4;
/** What providers add to a request by themselves, for tools and for thinking. */
const MOST_ADDED_TOKENS = 4_000;

/** What one call used, cached input apart from the rest of it. */
export interface CallTokens {
  readonly input: number;
  readonly output: number;
  readonly cache: { readonly read: number; readonly write: number };
}

/** {@link CallTokens} of what the ledger counted, whose input includes what was cached. */
export function callTokens({ input, output, cacheRead, cacheWrite }: Usage): CallTokens {
  return { input: input - cacheRead - cacheWrite, output, cache: { read: cacheRead, write: cacheWrite } };
}

/**
 * How many tokens may be sent to a model: its input limit, else what the answer leaves of the window. The answer gets at least
 * {@link RESERVED_OUTPUT_TOKENS}, never more than half the window. `reservedOutput`: the longest answer asked for,
 * by default the model's limit.
 */
export function usable(limits: ModelLimits, reservedOutput?: number): number {
  const { window, input, output = 0 } = limits;
  if (input !== undefined) return Math.min(input, window);
  const answer = Math.max(counted(reservedOutput) || output, RESERVED_OUTPUT_TOKENS);
  return Math.floor(window - Math.min(answer, window * MOST_FOR_OUTPUT));
}

/** The limits of a model: as `modelLimits` has them, or as the public table of models.dev does (`context` is the window). */
export type OverflowLimits =
  | { readonly limits: ModelLimits }
  | {
      readonly model: {
        readonly limit: { readonly context: number; readonly input?: number; readonly output?: number };
      };
    };

/**
 * Whether a call filled the window so far that another on top would not fit: input (cached or not) and output, since that is sent
 * next time. What is no number counts as nothing; a window of 0 is unknown and never full.
 */
export function isOverflow(
  call: { readonly tokens: CallTokens; readonly reservedOutput?: number | undefined } & OverflowLimits,
): boolean {
  const { input, output, cache } = call.tokens;
  const limits = "limits" in call ? call.limits : { ...call.model.limit, window: call.model.limit.context };
  if (limits.window === 0) return false;
  const used = counted(input) + counted(output) + counted(cache.read) + counted(cache.write);
  return used > usable(limits, call.reservedOutput);
}

/** About how large a request is. */
interface RequestEstimate {
  readonly tokens: number;
  /** `usage`: from what the last call used, and what came after it. `units`: from the text of all of it. */
  readonly from: "usage" | "units";
}

/** About how many tokens a request has: the provider's last count, if it makes sense, plus an estimate of the rest. */
export function estimateRequest({
  lastUsage,
  factor,
  unitsBefore,
  unitsAfter,
}: {
  /** Of the last call of the same model on the same branch, with nothing cut from what it was sent since. */
  readonly lastUsage?: Usage | undefined;
  /** What is known about the model (`learned.ts`). */
  readonly factor: number;
  /** What that call was sent (instructions, tools, messages), and its answer. Without such a call, 0 or all there is. */
  readonly unitsBefore: number;
  /** What came after. */
  readonly unitsAfter: number;
}): RequestEstimate {
  const before = factor * unitsBefore;
  const after = factor * unitsAfter;
  const used = lastUsage === undefined ? 0 : counted(lastUsage.input) + counted(lastUsage.output);
  // Some report only what was not cached, some the sum of several calls. Thinking that is not sent again is no reason.
  const isPossible = used * ABSURD >= before && counted(lastUsage?.input) <= before * ABSURD + MOST_ADDED_TOKENS;
  // With less than that call was sent, something was cut from it.
  const isTrusted = used > 0 && isPossible && unitsAfter >= 0;
  return isTrusted
    ? { tokens: Math.ceil(used + after), from: "usage" }
    : { tokens: Math.ceil(before + after), from: "units" };
}

function counted(tokens: number | undefined): number {
  return tokens !== undefined && Number.isFinite(tokens) && tokens > 0 ? tokens : 0;
}
