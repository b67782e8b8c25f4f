import type { Spot, SearchQuery } from "./search-query.ts";
import { type Word, wordsOf } from "./words.ts";

/** About how long an excerpt is, in characters, without its marks. */
const LENGTH = 200;
/** How much of it stands before the first thing that was found. */
const BEFORE = 60;
/** What stands around what was found. */
const MARK = "**";

/**
 * A piece of a text around what was looked for, which stands in `**`, cut between words. Where most of it is found
 * together is the piece. @returns undefined when nothing of it is in the text.
 */
export function excerptOf(text: string, query: SearchQuery): string | undefined {
  // So that what stands in marks is what was found, and nothing else.
  const plain = text.normalize("NFC").replaceAll(MARK, "").replace(/\s+/g, " ").trim();
  const words = [...wordsOf(plain)];
  const spots = query.spots(words).sort((a, b) => a.start - b.start || b.end - a.end);
  const best = bestSpot(spots, words);
  if (best === undefined) return undefined;
  const anchor = words[best.start]?.start ?? 0;
  const [from, to] = cutAround(plain, anchor);
  let piece = from > 0 ? "…" : "";
  let at = from;
  for (const { start, end } of spots) {
    const [first, last] = [words[start], words[end]];
    if (first === undefined || last === undefined || first.start < at || first.start >= to) continue;
    const stop = Math.min(last.end, to);
    piece += `${plain.slice(at, first.start)}${MARK}${plain.slice(first.start, stop)}${MARK}`;
    at = stop;
  }
  return `${piece}${plain.slice(at, to)}${to < plain.length ? "…" : ""}`;
}

/** The beginning of a text, cut between words. */
export function beginningOf(text: string): string {
  const plain = text.replace(/\s+/g, " ").trim();
  const [, to] = cutAround(plain, 0);
  return to < plain.length ? `${plain.slice(0, to)}…` : plain;
}

/** The spot behind which most different things follow. */
function bestSpot(spots: readonly Spot[], words: readonly Word[]): Spot | undefined {
  let [best] = spots;
  let most = 1;
  for (const [at, spot] of spots.entries()) {
    const reach = (words[spot.start]?.start ?? 0) + LENGTH - BEFORE;
    const terms = new Set<number>();
    for (let next = at; next < spots.length; next++) {
      const other = spots[next];
      if (other === undefined || (words[other.end]?.end ?? 0) > reach) break;
      terms.add(other.term);
    }
    if (terms.size <= most) continue;
    most = terms.size;
    best = spot;
  }
  return best;
}

/** Where a piece around `anchor` begins and ends. */
function cutAround(text: string, anchor: number): [from: number, to: number] {
  let from = Math.max(0, anchor - BEFORE);
  if (from > 0) {
    const space = text.indexOf(" ", from);
    from = space !== -1 && space < anchor ? space + 1 : wholeCharacter(text, from);
  }
  let to = Math.min(text.length, from + LENGTH);
  if (to < text.length) {
    const space = text.lastIndexOf(" ", to);
    to = space > from + LENGTH / 2 && space > anchor ? space : wholeCharacter(text, to);
  }
  return [from, to];
}

/** Not between the halves of a pair. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code < 0xe000 ? at - 1 : at;
}
