/** "1,234 tokens" */
export function inTokens(tokens: number): string {
  return tokens === 1 ? "1 token" : `${inNumbers(tokens)} tokens`;
}

/** "1,234" */
export function inNumbers(tokens: number): string {
  return Math.round(tokens).toLocaleString("en");
}

/** The share of a whole in percent: 0 only for nothing, 100 only for all of it. */
export function percentOf(part: number, whole: number): number {
  if (part <= 0 || whole <= 0) return 0;
  if (part >= whole) return 100;
  return Math.min(99, Math.max(1, Math.round((part / whole) * 100)));
}
