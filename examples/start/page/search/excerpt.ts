/** A piece of an excerpt: words that were looked for, or what stands around them. */
export interface ExcerptPiece {
  readonly text: string;
  readonly isHit: boolean;
}

/** Takes an excerpt apart, in which what was found stands in `**`. */
export function excerptOf(excerpt: string): ExcerptPiece[] {
  return excerpt
    .split("**")
    .map((text, at, all) => ({ text: text.replaceAll(/\s+/g, " "), isHit: at % 2 === 1 && at < all.length - 1 }))
    .filter(({ text }) => text !== "");
}
