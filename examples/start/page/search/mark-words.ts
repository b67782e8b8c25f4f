/** The name of the marks in the style sheet. */
const NAME = "found";

/** The places of words in an element, in their order. Letters count, not their case. */
export function findWords(element: Element, words: readonly string[]): Range[] {
  const ranges: Range[] = [];
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  const wanted = words.map((word) => word.toLowerCase()).filter((word) => word !== "");
  for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
    const text = node.nodeValue?.toLowerCase() ?? "";
    for (const word of wanted) {
      for (let at = text.indexOf(word); at !== -1; at = text.indexOf(word, at + word.length)) {
        if (at + word.length > (node.nodeValue?.length ?? 0)) break;
        const range = document.createRange();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        ranges.push(range);
      }
    }
  }
  return ranges.toSorted((a, b) => a.compareBoundaryPoints(Range.START_TO_START, b));
}

/** Marks these places, and no others. Does nothing in browsers that cannot. */
export function markRanges(ranges: readonly Range[]): void {
  if (!("highlights" in CSS)) return;
  if (ranges.length === 0) CSS.highlights.delete(NAME);
  else CSS.highlights.set(NAME, new Highlight(...ranges));
}
