import type { RE2JS } from "re2js";
import { PerdureError } from "../../base/error.ts";

const MAX_PATTERN = 1_000;
const MAX_DEPTH = 100;
const MAX_BRACES = 20;
/** Patterns that come to a larger program are refused: at worst each character costs a look at all of it. */
const MAX_PROGRAM = 2_000;
const MAX_COUNT = 1_000;
const PLAIN = /^[^\\^$.*+?()[\]{}|]+$/;
/** What `\s` is in JavaScript, and RE2 leaves out of its own. */
const MORE_SPACES = "\\v\\x{a0}\\x{feff}\\p{Z}";

/** Finds a pattern in texts, in time that grows with their length alone, whatever the pattern. */
interface Matcher {
  /** Whether the pattern is anywhere in `text`. */
  readonly test: (text: string) => boolean;
  /** How long it was at work so far, in milliseconds, for whoever shares the time with others. */
  readonly spentMs: number;
}

/** A glob that is ready to be used. */
interface Glob extends Matcher {
  /** The directory that all matches are in: as far as the pattern has no wildcard. */
  readonly base: string;
}

/**
 * A regular expression that is safe from anybody: RE2 matches in one walk, so no pattern is slow; hence no lookahead, lookbehind
 * or `\1`. Written as in JavaScript; `(?i)` may stand first.
 * @throws PerdureError `bad_input` or `limit`, in words for whoever wrote the pattern
 */
export async function compilePattern(
  source: string,
  options: { readonly ignoreCase?: boolean } = {},
): Promise<Matcher> {
  if (source.length > MAX_PATTERN) throw tooLong(source);
  const isFolded = source.startsWith("(?i)");
  const ignoreCase = isFolded || options.ignoreCase === true;
  if (!ignoreCase && PLAIN.test(source)) return compileText(source);
  return compile(translate(source, isFolded ? 4 : 0), ignoreCase, source);
}

/** Finds a text as it is. */
export async function compileText(text: string, options: { readonly ignoreCase?: boolean } = {}): Promise<Matcher> {
  if (options.ignoreCase !== true) return { test: (line) => line.includes(text), spentMs: 0 };
  return compile(quote(text), true, text);
}

/**
 * Reads a glob for whole absolute paths: `*` and `?` within a name, `**` for any directories, `[a-z]`, `[!a-z]`, `{a,b}`. Matches
 * dotfiles too. A relative one starts at the root. Not picomatch: its regular expressions backtrack, so `*a*a*a*a*b` may take
 * forever; the engine of `grep` never does.
 * @throws PerdureError `bad_input`
 */
export async function compileGlob(glob: string): Promise<Glob> {
  if (glob === "") throw new PerdureError("bad_input", 'The pattern is empty. Give one such as "/src/**/*.ts".');
  if (glob.length > MAX_PATTERN) throw tooLong(glob);
  const source = `/${glob}`.replaceAll(/\/(\.?\/)*/g, "/");
  const plain = /^[^*?[{\\]*/.exec(source)?.[0] ?? "/";
  const base = plain === source ? plain : plain.slice(0, plain.lastIndexOf("/"));
  const matcher = await compile(`^(?:${globSource(source, glob)})$`, false, glob);
  return Object.assign(matcher, { base: base === "" ? "/" : base.replace(/(?<=.)\/$/, "") });
}

/** What a piece of a glob is as a regular expression: the first that fits. */
const globPieces: readonly (readonly [RegExp, (found: RegExpExecArray) => string])[] = [
  [/(?<=^|\/)\*\*\//y, () => "(?s:.*/)?"],
  // At the end of a path it means all that is below; in the middle of a name it is as good as one star.
  [/(?<=^|\/)\*\*$/y, () => "(?s:.*)"],
  [/\*\*?/y, () => "[^/]*"],
  [/\?/y, () => "[^/]"],
  [/\[([!^]?)(\]?(?:\[:\w+:\]|\\.|[^\]])+|\])\]/suy, ([, not, inner = ""]) => classSource(inner, not !== "")],
  [/\\(.)/suy, ([, letter = ""]) => quote(letter)],
  [/./suy, ([letter]) => quote(letter)],
];

/** A class of a glob. One that says what is not meant never means the slash. */
function classSource(inner: string, isNegated: boolean): string {
  return translate(`[${isNegated ? "^/" : ""}${inner.replace(/^\]/, "\\]")}]`);
}

function globSource(source: string, glob: string): string {
  const refused = (what: string) =>
    new PerdureError("bad_input", `The pattern ${JSON.stringify(glob)} cannot be used: ${what}.`);
  let result = "";
  let depth = 0;
  for (let at = 0; at < source.length;) {
    const letter = source[at] ?? "";
    if (letter === "{" || (depth > 0 && (letter === "}" || letter === ","))) {
      result += letter === "{" ? "(?:" : letter === "}" ? ")" : "|";
      depth += letter === "{" ? 1 : letter === "}" ? -1 : 0;
      if (depth > MAX_BRACES) throw refused("braces are nested too deeply");
      at++;
      continue;
    }
    if (letter === "}") throw refused("there is a } without a {");
    for (const [piece, write] of globPieces) {
      piece.lastIndex = at;
      const found = piece.exec(source);
      if (found === null) continue;
      result += write(found);
      at = piece.lastIndex;
      break;
    }
  }
  if (depth > 0) throw refused("a { is never closed; write \\{ for the character itself");
  return result;
}

/** What RE2 reads in another way than JavaScript, or not at all. */
const different =
  /\\(?:u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|x[0-9a-fA-F]{2}|[pP]\{(?:\w+=)?(\w+)\}|([^])|$)|\(\?(?:(<?[=!])|(:|<\w+>)|[^]?)|\[:\w+:\]|\[\^?\]?|[\]()]/gu;

/** Writes a pattern for RE2. @throws PerdureError `bad_input` for what it has not */
function translate(source: string, from = 0): string {
  let inClass = false;
  let depth = 0;
  return source.slice(from).replaceAll(different, (found, short, long, property, letter, look, group, at) => {
    const refused = (what: string) => refuse(source, `${what} (at character ${Number(at) + from + 1})`);
    const code: unknown = short ?? long;
    if (typeof code === "string") return `\\x{${code}}`;
    if (typeof property === "string") return `${found.slice(0, 2)}{${property}}`;
    if (found === "\\") throw refused("it ends with a backslash; write \\\\ for the character itself");
    if (found.startsWith("\\")) return typeof letter === "string" ? escaped(letter, inClass, refused) : found;
    if (inClass) {
      inClass = !found.endsWith("]") || found.startsWith("[:");
      return found;
    }
    if (found.startsWith("[")) {
      inClass = true;
      // JavaScript takes [] for nothing at all; everybody else for the beginning of a class with a bracket in it.
      return found.replace("]", "\\]");
    }
    if (found === ")") depth--;
    if (!found.startsWith("(")) return found;
    if (++depth > MAX_DEPTH) throw refused("groups are nested too deeply");
    if (look !== undefined)
      throw refused("lookahead and lookbehind are not supported; search for a simpler pattern and look at the lines");
    if (found !== "(" && group === undefined)
      throw refused(`${found} is not supported; (?i) may stand at the beginning`);
    return "(?:";
  });
}

/** What a backslash and a letter are to RE2. */
function escaped(letter: string, inClass: boolean, refused: (what: string) => PerdureError): string {
  if (letter === "s") return inClass ? `\\s${MORE_SPACES}` : `[\\s${MORE_SPACES}]`;
  if (letter === "S" && !inClass) return `[^\\s${MORE_SPACES}]`;
  if (letter === "b" && inClass) return "\\x08";
  if (letter === "Z") return "\\z";
  if (letter === "0") return "\\x00";
  if (/[1-9k]/.test(letter)) throw refused("references to groups are not supported");
  if (/[a-zA-Z]/.test(letter) && !"dDwWSbBAztnvfr".includes(letter))
    throw refused(`\\${letter} is not known; write ${letter} for the character itself`);
  return letter > "\x7f" ? letter : `\\${letter}`;
}

/** What RE2 says of a pattern, in words for whoever wrote it. */
const complaints: readonly (readonly [said: RegExp, what: string])[] = [
  [/missing closing \)/, "a ( is never closed; write \\( for the character itself"],
  [/unexpected \)/, "there is a ) without a (; write \\) for the character itself"],
  [/missing closing \]/, "a [ is never closed; write \\[ for the character itself"],
  [/missing argument to repetition operator: `(.)/, "there is nothing before $1 to repeat"],
  [/invalid nested repetition/, "two counts follow each other"],
  [/range: `\\[pP](\{\w+\})/, "there is no property \\p$1; try \\p{L} for letters or \\p{N} for numbers"],
  [
    /range: `(\[:\w*:\])/,
    "$1 is not known; there are alpha, digit, alnum, upper, lower, space, blank, punct, xdigit, word",
  ],
  [/invalid character class range/, "a range in […] ends before it begins"],
];

async function compile(translated: string, ignoreCase: boolean, source: string): Promise<Matcher> {
  // A quarter of a megabyte, for those who search.
  const { RE2JS } = await import("re2js");
  let engine: RE2JS;
  try {
    engine = RE2JS.compile(translated, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  } catch (thrown) {
    throw explain(source, String(thrown));
  }
  if (engine.programSize() > MAX_PROGRAM) throw tooLarge();
  let spentMs = 0;
  return {
    get spentMs() {
      return spentMs;
    },
    test(text) {
      const began = performance.now();
      const isThere = engine.test(text);
      spentMs += performance.now() - began;
      return isThere;
    },
  };
}

function explain(source: string, said: string): PerdureError {
  const [, count, low = "", high = low] = /repeat count: `(\{(\d+)(?:,(\d+))?)/.exec(said) ?? [];
  if (count !== undefined) {
    if (Number(high) < Number(low)) return refuse(source, `in ${count}} the second number is smaller than the first`);
    if (Number(high) > MAX_COUNT) return refuse(source, `counts may be at most ${MAX_COUNT}`);
    return tooLarge();
  }
  for (const [pattern, what] of complaints) {
    const found = pattern.exec(said);
    if (found !== null) return refuse(source, what.replace("$1", found[1] ?? ""));
  }
  return refuse(source, said);
}

function quote(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}

function refuse(source: string, what: string): PerdureError {
  return new PerdureError("bad_input", `The pattern ${JSON.stringify(source)} cannot be used: ${what}.`);
}

function tooLong(source: string): PerdureError {
  const words = `The pattern has ${source.length} characters; at most ${MAX_PATTERN} are allowed.`;
  return new PerdureError("bad_input", words);
}

function tooLarge(): PerdureError {
  return new PerdureError("limit", "The pattern is too large. Use smaller counts in {…}, or a simpler pattern.");
}
