/**
 * How many seeds a test of chance plays: `quick` of them, which a run of all tests has time for, and `all` where
 * `PERDURE_SEEDS=all` asks for that.
 */
export function seedCount(all: number, quick: number): number {
  return process.env.PERDURE_SEEDS === "all" ? all : quick;
}

/** The seeds themselves, for tests that can also be asked for some of them: `PERDURE_SEEDS=1000-1999`. */
export function seedsOf(all: number, quick: number): number[] {
  const range = /^(\d+)-(\d+)$/.exec(process.env.PERDURE_SEEDS ?? "");
  const [from, to] = range === null ? [0, seedCount(all, quick) - 1] : [Number(range[1]), Number(range[2])];
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}
