import { expect, test } from "vitest";
import { sortInPieces } from "./sort-in-pieces.ts";

test.each([0, 1, 5_000, 5_001, 12_345, 20_000])(
  "%d are sorted as in one go, and others have their turn",
  async (count) => {
    let seed = 7;
    const list = Array.from({ length: count }, (_, at) => ({
      key: (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) % 999,
      at,
    }));
    let breaths = 0;
    const compare = (a: { key: number }, b: { key: number }) => a.key - b.key;
    expect(await sortInPieces(list, compare, async () => void breaths++)).toEqual(list.toSorted(compare));
    expect(breaths >= Math.floor(count / 5_001)).toBe(true);
    expect(breaths > 0).toBe(count > 5_000);
  },
);
