/** What one model call used. Tokens; `input` includes both cache numbers, `output` includes `reasoning`. */
export interface Usage {
  readonly input: number;
  readonly output: number;
  readonly reasoning: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** The part of the AI SDK's `LanguageModelUsage` that is counted. */
interface ReportedUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  readonly totalTokens?: number | undefined;
  readonly inputTokenDetails?: {
    readonly cacheReadTokens?: number | undefined;
    readonly cacheWriteTokens?: number | undefined;
  };
  readonly outputTokenDetails?: { readonly reasoningTokens?: number | undefined };
}

/**
 * A provider's report as the ledger counts it. `undefined` when nothing in it can be charged: no numbers, only zeros (a call that
 * reached a model used something), or one side without the other and no total. Never throws.
 */
export function readUsage(reported: ReportedUsage | null | undefined): Usage | undefined {
  if (typeof reported !== "object" || reported === null) return undefined;
  const total = tokens(reported.totalTokens);
  const oneSide = (own: number | undefined, other: number | undefined) =>
    own ?? (total === undefined || other === undefined ? undefined : Math.max(0, total - other));
  const input = oneSide(tokens(reported.inputTokens), tokens(reported.outputTokens));
  const output = oneSide(tokens(reported.outputTokens), tokens(reported.inputTokens));
  if (input === undefined || output === undefined || input + output === 0) return undefined;
  const cacheRead = Math.min(input, tokens(reported.inputTokenDetails?.cacheReadTokens) ?? 0);
  return {
    input,
    output,
    reasoning: Math.min(output, tokens(reported.outputTokenDetails?.reasoningTokens) ?? 0),
    cacheRead,
    cacheWrite: Math.min(input - cacheRead, tokens(reported.inputTokenDetails?.cacheWriteTokens) ?? 0),
  };
}

/** A whole, countable number, or nothing. */
export function tokens(value: unknown): number | undefined {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) return undefined;
  return Math.min(Math.ceil(value), MAX_TOKENS);
}

/** Beyond this a number is a mistake; bounded so that sums and costs stay exact. */
const MAX_TOKENS = 1_000_000_000;
