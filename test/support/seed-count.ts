/**
 * How many seeds a test of chance plays: `quick` of them, which a run of all tests has time for, and `all` where
 * `PERDURE_SEEDS=all` asks for that.
 */
export function seedCount(all: number, quick: number): number {
  return process.env.PERDURE_SEEDS === "all" ? all : quick;
}
