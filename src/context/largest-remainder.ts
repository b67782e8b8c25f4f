/**
 * Divides a whole number by weights into whole numbers that add up to it exactly: each gets its share rounded down, and
 * what is left goes to those who lost most by that. Without any weight, all get the same.
 */
export function shares(weights: readonly number[], whole: number): number[] {
  const sum = weights.reduce((before, weight) => before + weight, 0);
  const exact = weights.map((weight) => (sum > 0 ? (weight / sum) * whole : whole / weights.length));
  const parts = exact.map(Math.floor);
  const left = whole - parts.reduce((before, part) => before + part, 0);
  const lost = exact.map((share, index) => ({ index, by: share - Math.floor(share) }));
  lost.sort((a, b) => b.by - a.by || a.index - b.index);
  for (const { index } of lost.slice(0, left)) parts[index] = (parts[index] ?? 0) + 1;
  return parts;
}
