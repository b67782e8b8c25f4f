const SHOWN = 8;

/** Some of `names`, those most like `wanted` first: for messages that let a model correct itself. */
export function nearest(wanted: string, names: readonly string[]): readonly string[] {
  const word = wanted.toLowerCase().slice(0, 100);
  return names
    .map((name) => ({ name, far: distance(word, name.toLowerCase()) - (name.includes(word) && word !== "" ? 100 : 0) }))
    .sort((a, b) => a.far - b.far)
    .slice(0, SHOWN)
    .map(({ name }) => name);
}

/** How many letters have to be changed, added or taken away. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(same, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
