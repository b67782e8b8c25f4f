import type { LanguageModelUsage } from "ai";

/** The usage of several model calls. What no call knows stays unknown. */
export function sumUsage(usages: readonly LanguageModelUsage[]): LanguageModelUsage {
  const sum = (of: (usage: LanguageModelUsage) => number | undefined) => {
    const known = usages.map(of).filter((count) => count !== undefined);
    return known.length === 0 ? undefined : known.reduce((a, b) => a + b);
  };
  return {
    inputTokens: sum((usage) => usage.inputTokens),
    inputTokenDetails: {
      noCacheTokens: sum((usage) => usage.inputTokenDetails.noCacheTokens),
      cacheReadTokens: sum((usage) => usage.inputTokenDetails.cacheReadTokens),
      cacheWriteTokens: sum((usage) => usage.inputTokenDetails.cacheWriteTokens),
    },
    outputTokens: sum((usage) => usage.outputTokens),
    outputTokenDetails: {
      textTokens: sum((usage) => usage.outputTokenDetails.textTokens),
      reasoningTokens: sum((usage) => usage.outputTokenDetails.reasoningTokens),
    },
    totalTokens: sum((usage) => usage.totalTokens),
  };
}
