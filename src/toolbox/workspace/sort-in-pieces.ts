/** As many as are sorted, or merged, before others have their turn. */
const PIECE = 5_000;

/** Stable sort of a list of any length, in pieces; `breathe` is awaited in between, so that others have their turn. */
export async function sortInPieces<T>(
  list: readonly T[],
  compare: (a: T, b: T) => number,
  breathe: () => Promise<void>,
): Promise<T[]> {
  if (list.length <= PIECE) return list.toSorted(compare);
  let from: T[] = [];
  for (let at = 0; at < list.length; at += PIECE) {
    for (const item of list.slice(at, at + PIECE).sort(compare)) from.push(item);
    await breathe();
  }
  for (let width = PIECE; width < from.length; width *= 2) {
    const to: T[] = [];
    for (let start = 0; start < from.length; start += width * 2) {
      const middle = Math.min(start + width, from.length);
      const end = Math.min(start + width * 2, from.length);
      let left = start;
      let right = middle;
      while (left < middle || right < end) {
        const isLeft = right >= end || (left < middle && compare(from[left] as T, from[right] as T) <= 0);
        to.push(from[isLeft ? left++ : right++] as T);
        if (to.length % PIECE === 0) await breathe();
      }
    }
    from = to;
  }
  return from;
}
