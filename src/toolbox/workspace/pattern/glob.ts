import { PerdureError } from "../../../base/error.ts";
import { readClass } from "./char-class.ts";
import { createMatcher, type Matcher } from "./matcher.ts";
import { charNode, type Cursor, type Pattern, whole } from "./syntax.ts";

const MAX_GLOB = 1_000;
const MAX_DEPTH = 20;
const SLASH = 47;

const noSlash: Pattern = { type: "char", test: (char) => char !== SLASH };
const anything: Pattern = { type: "char", test: () => true };
const many = (part: Pattern): Pattern => ({ type: "repeat", part, min: 0, max: Number.POSITIVE_INFINITY });
/** Any directories, or none. */
const directories: Pattern = {
  type: "any",
  parts: [
    { type: "all", parts: [many(anything), charNode(SLASH)] },
    { type: "all", parts: [] },
  ],
};

/** A glob that is ready to be used. */
export interface Glob extends Matcher {
  readonly work: number;
  /** The directory that all matches are in: as far as the pattern has no wildcard. */
  readonly base: string;
}

/**
 * Reads a glob for whole absolute paths: `*` and `?` for characters of a name, `**` for any directories, `[a-z]`, `[!a-z]`,
 * `{a,b}`. Files whose names begin with a dot are meant, too. One that does not begin with `/` is meant from the root.
 * Not a library: picomatch makes a regular expression that goes back in a path, so a glob such as `*a*a*a*a*b` may take for
 * ever; this uses the engine of `grep`, which never does.
 * @throws PerdureError `bad_input`
 */
export function compileGlob(glob: string): Glob {
  if (glob === "") throw new PerdureError("bad_input", 'The pattern is empty. Give one such as "/src/**/*.ts".');
  if (glob.length > MAX_GLOB)
    throw new PerdureError("bad_input", `The pattern has ${glob.length} characters; at most ${MAX_GLOB} are allowed.`);
  const source = `/${glob}`.replaceAll(/\/(\.?\/)*/g, "/");
  const cursor = { source, at: 0 };
  const pattern = readParts(cursor, 0);
  if (cursor.at < source.length) throw refuse(glob, "there is a } without a {");
  const matcher = createMatcher(whole(pattern));
  const plain = /^[^*?[{\\]*/.exec(source)?.[0] ?? "/";
  const base = plain === source ? plain : plain.slice(0, plain.lastIndexOf("/"));
  return {
    get work() {
      return matcher.work ?? 0;
    },
    test: (path) => matcher.test(path),
    base: base === "" ? "/" : base.replace(/(?<=.)\/$/, ""),
  };
}

function readParts(cursor: Cursor, depth: number): Pattern {
  const parts: Pattern[] = [];
  while (cursor.at < cursor.source.length) {
    const rest = cursor.source.slice(cursor.at);
    const [letter = ""] = rest;
    if (depth > 0 && (letter === "," || letter === "}")) break;
    if (letter === "}") break;
    parts.push(readPart(cursor, rest, depth));
  }
  return { type: "all", parts };
}

function readPart(cursor: Cursor, rest: string, depth: number): Pattern {
  const isWhole = cursor.at === 0 || cursor.source[cursor.at - 1] === "/";
  if (isWhole && rest.startsWith("**/")) {
    cursor.at += 3;
    return directories;
  }
  if (rest.startsWith("**")) {
    cursor.at += 2;
    // At the end of a path it means all that is below; in the middle of a name it is as good as one star.
    return many(isWhole && rest.length === 2 ? anything : noSlash);
  }
  if (rest.startsWith("*")) {
    cursor.at++;
    return many(noSlash);
  }
  if (rest.startsWith("?")) {
    cursor.at++;
    return noSlash;
  }
  if (rest.startsWith("[") && rest.indexOf("]", 2) !== -1) return readBrackets(cursor);
  if (rest.startsWith("{")) return readBraces(cursor, depth);
  const escaped = rest.startsWith("\\") && rest.length > 1;
  const char = rest.codePointAt(escaped ? 1 : 0) ?? 0;
  cursor.at += (escaped ? 1 : 0) + (char > 0xffff ? 2 : 1);
  return charNode(char);
}

function readBrackets(cursor: Cursor): Pattern {
  const { source } = cursor;
  // Globs negate with an exclamation mark, where patterns have a caret.
  const as = source[cursor.at + 1] === "!" ? `${source.slice(0, cursor.at)}[^${source.slice(cursor.at + 2)}` : source;
  const inner = { source: as, at: cursor.at };
  const test = readClass(inner);
  cursor.at = inner.at;
  return { type: "char", test: (char) => char !== SLASH && test(char) };
}

function readBraces(cursor: Cursor, depth: number): Pattern {
  if (depth > MAX_DEPTH) throw refuse(cursor.source, "braces are nested too deeply");
  const parts: Pattern[] = [];
  do {
    cursor.at++;
    parts.push(readParts(cursor, depth + 1));
  } while (cursor.source[cursor.at] === ",");
  if (cursor.source[cursor.at] !== "}")
    throw refuse(cursor.source, "a { is never closed; write \\{ for the character itself");
  cursor.at++;
  return { type: "any", parts };
}

function refuse(glob: string, what: string): PerdureError {
  return new PerdureError("bad_input", `The pattern ${JSON.stringify(glob)} cannot be used: ${what}.`);
}
