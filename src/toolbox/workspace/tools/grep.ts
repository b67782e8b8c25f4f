import type { Tool } from "ai";
import { isRecord } from "../../../base/json.ts";
import { compileGlob, compilePattern, compileText } from "../pattern.ts";
import { posixError, posixNameOf } from "../../sandbox/posix-error.ts";
import { fileTool, globBelow, ToolInput } from "./input.ts";
import type { GrepOperations } from "./operations.ts";
import { objectInput } from "../../../base/json-schema.ts";

const MAX_MATCHES = 200;
const MAX_GREP_BYTES = 1_000_000;
const MAX_CONTEXT = 10;
/** Of longer lines, the rest is not looked at. */
const MAX_LINE_CHARS = 10_000;
const MAX_SHOWN_CHARS = 500;
/** How many characters are looked at before others have their turn. */
const BREATH_CHARS = 250_000;
/** All of it. What comes behind is not looked at. */
const MAX_TOTAL_CHARS = 100_000_000;
/** How long patterns are tried before others have their turn. */
const BREATH_MS = 10;
/** How long in all. */
const MAX_TOTAL_MS = 10_000;
const MAX_CONTENT_CHARS = 45_000;

/** What the model says. */
export interface GrepInput {
  readonly pattern: string;
  readonly path?: string;
  readonly include?: string;
  readonly ignore_case?: boolean;
  readonly literal?: boolean;
  readonly context?: number;
}

/** What was found. */
export interface GrepOutput {
  readonly matches: number;
  /** How many files were looked through. */
  readonly files: number;
  /** `path:line: text` for matches, `path-line- text` for the lines around them. */
  readonly content: string;
  readonly note?: string;
}

/** How {@link createGrepTool} works. */
export interface GrepToolOptions {
  readonly ops: GrepOperations;
  /** Resolves after other work of the process had its turn. */
  readonly breathe?: (() => Promise<void>) | undefined;
}

const inputSchema = objectInput<GrepInput>(["pattern"], {
  pattern: { type: "string", description: "A regular expression, without lookahead, lookbehind or \\1." },
  path: { type: "string", description: "The directory or file to search. Default: /." },
  include: { type: "string", description: "Only files whose path matches this glob, such as *.ts." },
  ignore_case: { type: "boolean" },
  literal: { type: "boolean", description: "The pattern is a plain text. Default: false." },
  context: { type: "integer", minimum: 0, maximum: MAX_CONTEXT, description: "Lines to show around each match." },
});

/**
 * A tool that searches text files line by line. The engine never backtracks, so no pattern of a model is slow, and others have
 * their turn in between. It only reads, so a call that a crash cut runs again.
 */
export function createGrepTool(options: GrepToolOptions): Tool<GrepInput, GrepOutput> {
  return fileTool<GrepInput, GrepOutput>({
    description:
      "Searches the text of files of the workspace with a regular expression, line by line. " +
      `Shows up to ${MAX_MATCHES} matches; files above 1 MB and files that are no text are left out.`,
    inputSchema,
    run: (input, signal) => grep(options, input, signal),
    show({ content, note, files }) {
      const found = content === "" ? `No matches in ${files} files.` : content;
      return note === undefined ? found : `${found}\n(${note})`;
    },
    replay: "safe",
    maxOutputLines: MAX_MATCHES * (2 * MAX_CONTEXT + 2),
    maxOutputChars: 200_000,
    supersedes(given, output) {
      // A hook may have put anything else in its place.
      if (!isRecord(output)) return undefined;
      const input = new ToolInput(given);
      return JSON.stringify([
        ...[input.needText("pattern", ""), input.path("path", "/"), input.text("include") ?? ""],
        ...[input.flag("ignore_case"), input.flag("literal"), input.count("context", 0, MAX_CONTEXT) ?? 0],
      ]);
    },
  });
}

async function grep(options: GrepToolOptions, input: ToolInput, signal?: AbortSignal): Promise<GrepOutput> {
  const { ops, breathe = rest } = options;
  const source = input.needText("pattern", "Give a regular expression, such as error|warning.");
  if (source === "") throw posixError("EINVAL", "The pattern is empty, which is everywhere. Give what to look for.");
  const how = { ignoreCase: input.flag("ignore_case") };
  const matcher = await (input.flag("literal") ? compileText(source, how) : compilePattern(source, how));
  const { files, left } = await filesOf(ops, input, breathe);
  const hits = new Hits(input.count("context", 0, MAX_CONTEXT) ?? 0);
  let chars = 0;
  let breath = { chars: BREATH_CHARS, ms: BREATH_MS };
  let searched = 0;
  const isOver = () => chars > MAX_TOTAL_CHARS || matcher.spentMs > MAX_TOTAL_MS;
  for (const path of files) {
    signal?.throwIfAborted();
    if (hits.isFull || isOver()) break;
    const text = await readText(ops, path);
    if (text === undefined) continue;
    searched++;
    const lines = text.split("\n");
    // Not by entries(): that makes an array of each line.
    for (let at = 0; at < lines.length; at++) {
      const line = lines[at] ?? "";
      chars += line.length + 1;
      if (matcher.test(cut(line)) && !hits.add(path, lines, at)) break;
      if (chars < breath.chars && matcher.spentMs < breath.ms) continue;
      breath = { chars: chars + BREATH_CHARS, ms: matcher.spentMs + BREATH_MS };
      await breathe();
      signal?.throwIfAborted();
      if (isOver()) break;
    }
  }
  const notes = [
    ...(hits.isFull ? [`There are more matches. Use a narrower pattern, path or include.`] : []),
    ...(isOver() ? ["Not all files were looked at. Use a simpler pattern, or a narrower path or include."] : []),
    ...(left > 0
      ? [`${left === 1 ? "1 file" : `${left} files`} above 1 MB ${left === 1 ? "was" : "were"} left out.`]
      : []),
  ];
  return {
    matches: hits.count,
    files: searched,
    content: hits.text,
    ...(notes.length > 0 && { note: notes.join(" ") }),
  };
}

async function filesOf(
  ops: GrepOperations,
  input: ToolInput,
  breathe: () => Promise<void>,
): Promise<{ files: string[]; left: number }> {
  const path = input.path("path", "/");
  const include = input.text("include");
  const stat = await ops.stat(path);
  if (stat === null) throw posixError("ENOENT", `There is no file or directory ${path}.`);
  if (stat.type === "file") return stat.size > MAX_GREP_BYTES ? { files: [], left: 1 } : { files: [path], left: 0 };
  const glob = include ? await compileGlob(globBelow(path, include)) : undefined;
  const found = (await ops.glob(globBelow(path, "**/*"))).filter((entry) => entry.type === "file");
  const meant: typeof found = [];
  let breath = BREATH_MS;
  for (const entry of found) {
    if (glob === undefined || glob.test(entry.path)) meant.push(entry);
    if (glob === undefined || glob.spentMs < breath) continue;
    breath = glob.spentMs + BREATH_MS;
    await breathe();
  }
  const files = meant.filter(({ size }) => size === undefined || size <= MAX_GREP_BYTES).map((entry) => entry.path);
  return { files, left: meant.length - files.length };
}

async function readText(ops: GrepOperations, path: string): Promise<string | undefined> {
  try {
    const text = await ops.readFile(path);
    return text === null || text.length > MAX_GREP_BYTES || text.slice(0, MAX_LINE_CHARS).includes("\0")
      ? undefined
      : text;
  } catch (thrown) {
    // No text, or gone since it was listed.
    if (posixNameOf(thrown) !== undefined) return undefined;
    throw thrown;
  }
}

/** The lines to show, in order, none twice. */
class Hits {
  readonly #context: number;
  readonly #shown: string[] = [];
  #chars = 0;
  #path = "";
  #last = -1;
  count = 0;
  isFull = false;

  constructor(context: number) {
    this.#context = context;
  }

  get text(): string {
    return this.#shown.join("\n");
  }

  /** @returns false when there is no more room */
  add(path: string, lines: readonly string[], at: number): boolean {
    if (this.count >= MAX_MATCHES || this.#chars > MAX_CONTENT_CHARS) {
      this.isFull = true;
      return false;
    }
    if (path !== this.#path) this.#last = -1;
    const first = Math.max(at - this.#context, 0);
    if (this.#context > 0 && this.#shown.length > 0 && (path !== this.#path || first > this.#last + 1))
      this.#shown.push("--");
    this.#path = path;
    const last = Math.min(at + this.#context, lines.length - 1);
    // A match in the lines around the one before is marked as one.
    if (at <= this.#last) this.#shown[this.#shown.length - 1 - (this.#last - at)] = lineOf(path, lines, at, ":");
    for (let line = Math.max(first, this.#last + 1); line <= last; line++) {
      const shown = lineOf(path, lines, line, line === at ? ":" : "-");
      this.#shown.push(shown);
      this.#chars += shown.length;
    }
    this.#last = Math.max(this.#last, last);
    this.count++;
    return true;
  }
}

function lineOf(path: string, lines: readonly string[], at: number, mark: string): string {
  const line = (lines[at] ?? "").replace(/\r$/, "");
  const text = line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS).toWellFormed()}…` : line;
  return `${path}${mark}${at + 1}${mark} ${text}`;
}

function cut(line: string): string {
  const end = line.endsWith("\r") ? line.length - 1 : line.length;
  return line.slice(0, Math.min(end, MAX_LINE_CHARS));
}

function rest(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
