/**
 * The best that two works did in so many rounds, measured in turns: what else runs on the machine can only make a round
 * worse, so the best of each is what they cost by themselves. `lowest` for times, `highest` for rates.
 */
export async function bestInTurns(
  better: "lowest" | "highest",
  rounds: number,
  ours: () => Promise<number>,
  bare: () => Promise<number>,
): Promise<{ ours: number; bare: number }> {
  const all = { ours: [] as number[], bare: [] as number[] };
  for (let round = 0; round < rounds; round++) {
    all.bare.push(await bare());
    all.ours.push(await ours());
  }
  const pick = better === "lowest" ? Math.min : Math.max;
  return { ours: pick(...all.ours), bare: pick(...all.bare) };
}
