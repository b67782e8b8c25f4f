import { PerdureError } from "../base/error.ts";
import { type Word, wordsOf } from "./words.ts";

const MAX_QUERY = 1_000;
const MAX_TERMS = 32;
/** Of a word this long, its beginning finds its other forms. */
const MIN_FORM = 5;
const FORM_SHARE = 2 / 3;

/** At most so many rows of two characters are looked for instead of a longer one. */
const MAX_PAIRS = 64;

/** One thing that is looked for: words that follow each other. */
export interface Term {
  readonly keys: readonly string[];
  /** The last of them may go on. */
  readonly open: boolean;
}

/** Terms that must all be there; or, with `isLoose`, one of them. */
export interface TermMatch {
  readonly terms: readonly Term[];
  readonly isLoose: boolean;
}

/** What somebody looks for. */
export interface SearchQuery {
  /** Ways to look for it, the strictest first. Each matches at least what the one before it does. */
  readonly matches: readonly TermMatch[];
  /** The spots of what was looked for among the words of a text: for each, which term, and the first and last word. */
  spots(words: readonly Word[]): Spot[];
}

/** A place where something was found. */
export interface Spot {
  readonly term: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Reads what somebody typed. Every word has to be there, in any order; the last one may be only begun. Nothing in it is
 * an operator. @param loose what has only some of the words will do as well, behind the rest.
 * @throws PerdureError `bad_input`
 */
export function parseQuery(query: unknown, loose: boolean): SearchQuery {
  if (typeof query !== "string")
    throw new PerdureError("bad_input", "The query must be a string: the words to look for.");
  if (query.length > MAX_QUERY)
    throw new PerdureError("bad_input", `The query must not be longer than ${MAX_QUERY} characters.`);
  const terms: Term[] = [];
  const seen = new Set<string>();
  for (const text of query.normalize("NFC").split(/\s+/u)) {
    const keys = [...wordsOf(text)].map(({ key }) => key).filter((key) => key !== "");
    // Twice the same costs twice and finds nothing more.
    if (keys.length === 0 || terms.length === MAX_TERMS || seen.has(keys.join(" "))) continue;
    seen.add(keys.join(" "));
    terms.push({ keys, open: false });
  }
  const last = terms.pop();
  if (last === undefined)
    throw new PerdureError("bad_input", "The query has no words. Give at least one letter or digit to look for.");
  const begun = [...terms, { ...last, open: true }];
  const forms = differentOf(begun.map(withForms));
  const pairs = loose ? differentOf(forms.flatMap(pairsOf)).slice(0, MAX_PAIRS) : [];
  const ways = [[...terms, last], begun, forms].map((one) => ({ terms: one, isLoose: false }));
  return {
    matches: [...ways, ...(loose ? [{ terms: pairs, isLoose: true }] : [])],
    spots(words) {
      const spots = spotsOf(forms, words);
      return spots.length > 0 ? spots : spotsOf(pairs, words);
    },
  };
}

/** The same with other endings. */
function withForms(term: Term): Term {
  const [key, ...others] = term.keys;
  if (key === undefined || others.length > 0) return term;
  const letters = Array.from(key);
  if (letters.length < MIN_FORM || !/^\p{L}+$/u.test(key)) return term;
  return { keys: [letters.slice(0, Math.ceil(letters.length * FORM_SHARE)).join("")], open: true };
}

function differentOf(terms: readonly Term[]): Term[] {
  return [...new Map(terms.map((term) => [`${term.keys.join(" ")}${term.open ? "*" : ""}`, term])).values()];
}

/** The expression for FTS5. @param endings the words that an open term stands for, instead of all that begin with it */
export function expressionOf(match: TermMatch, endings: ReadonlyMap<Term, readonly string[]>): string {
  const one = (term: Term): string => {
    const words = endings.get(term);
    if (words === undefined) return quoted(term);
    const before = term.keys.slice(0, -1);
    return `(${words.map((word) => quoted({ keys: [...before, word], open: false })).join(" OR ")})`;
  };
  return match.terms.map(one).join(match.isLoose ? " OR " : " AND ");
}

/** Of a row of characters, any two that follow each other. */
function pairsOf({ keys, open }: Term): Term[] {
  if (keys.length <= 2) return [{ keys, open }];
  return keys.slice(1).map((key, at) => ({ keys: [keys[at] ?? "", key], open: false }));
}

/** In quotes everything is a word. */
function quoted({ keys, open }: Term): string {
  return `"${keys.join(" ").replaceAll('"', '""')}"${open ? " *" : ""}`;
}

function spotsOf(terms: readonly Term[], words: readonly Word[]): Spot[] {
  const spots: Spot[] = [];
  for (const [term, { keys, open }] of terms.entries()) {
    for (let start = 0; start + keys.length <= words.length; start++) {
      const end = start + keys.length - 1;
      const fits = keys.every((key, at) => {
        const word = words[start + at]?.key ?? "";
        return open && start + at === end ? word.startsWith(key) : word === key;
      });
      if (fits) spots.push({ term, start, end });
    }
  }
  return spots;
}
