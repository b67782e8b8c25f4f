import { createMatcher, type Matcher } from "./matcher.ts";
import { parsePattern } from "./parse.ts";

const PLAIN = /^[^\\^$.*+?()[\]{}|]+$/;

/**
 * A regular expression that is safe to take from anybody: it is matched in one walk over the text, so no pattern can take
 * long. That is why there is no lookahead, no lookbehind and no `\1`.
 * @throws PerdureError `bad_input` or `limit`, in words for whoever wrote the pattern
 */
export function compilePattern(source: string, options: { readonly ignoreCase?: boolean } = {}): Matcher {
  const { ignoreCase = false } = options;
  if (!ignoreCase && PLAIN.test(source)) return { test: (text) => text.includes(source) };
  return createMatcher(parsePattern(source, ignoreCase));
}

/** Finds a text as it is. */
export function compileText(text: string, options: { readonly ignoreCase?: boolean } = {}): Matcher {
  if (options.ignoreCase !== true) return { test: (line) => line.includes(text) };
  return createMatcher(parsePattern(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"), true));
}
