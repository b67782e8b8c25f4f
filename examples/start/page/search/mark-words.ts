/** The name of the marks in the style sheet. */
const NAME = "found";

/** Words of scripts that put blanks between them. */
const SPACED = /^[\p{Script=Latin}\p{Script=Greek}\p{Script=Cyrillic}\p{N}]+$/u;

/** The places of words in an element, in their order. Letters count, not their case. */
export function findWords(element: Element, words: readonly string[]): Range[] {
  const pattern = patternOf(words);
  if (pattern === undefined) return [];
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    for (const { index, 0: found } of (node.nodeValue ?? "").matchAll(pattern)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + found.length);
      ranges.push(range);
    }
  }
  return ranges;
}

/** What finds any of these words, if there are any. A word is not a part of another, where words can be told apart. */
export function patternOf(words: readonly string[]): RegExp | undefined {
  const patterns = words.flatMap((word) => {
    const letters = word.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
    if (letters === "") return [];
    return SPACED.test(word) ? String.raw`(?<![\p{L}\p{N}])${letters}(?![\p{L}\p{N}])` : letters;
  });
  return patterns.length === 0 ? undefined : new RegExp(patterns.join("|"), "giu");
}

/** Marks these places, and no others. Does nothing in browsers that cannot. */
export function markRanges(ranges: readonly Range[]): void {
  if (!("highlights" in CSS)) return;
  if (ranges.length === 0) CSS.highlights.delete(NAME);
  else CSS.highlights.set(NAME, new Highlight(...ranges));
}
