import type { Tool } from "ai";
import { toBase64 } from "../../../base/bytes.ts";
import { sha256 } from "../../../base/hash.ts";
import type { OutputSubject } from "../../../context/superseded.ts";
import { isRecord } from "../../../base/json.ts";
import { durableTool } from "../../../tool/define.ts";
import type { KeptFiles } from "../kept-files.ts";
import { posixError, posixNameOf } from "../../sandbox/posix-error.ts";
import { decodeText } from "../text.ts";
import { shortName, sizeText, ToolInput } from "./input.ts";
import type { ReadOperations } from "./operations.ts";
import { objectInput } from "../../../base/json-schema.ts";

const MAX_LINES = 2_000;
const MAX_LINE_CHARS = 2_000;
/** A page ends here, even if it has fewer lines. */
const MAX_PAGE_CHARS = 50_000;
/** As JSON, with line breaks and quotes escaped, a page is longer. */
const MAX_OUTPUT_CHARS = 4 * MAX_PAGE_CHARS;
/** What providers take as a part of a message. */
const MAX_VIEWED_BYTES = 3_500_000;
/** Texts beyond this are not read at all. */
const MAX_TEXT_BYTES = 25_000_000;
const HASH_CHARS = 12;
const LINE_BREAK = 10;

/** What the model says. */
export interface ReadInput {
  readonly path: string;
  readonly offset?: number;
  readonly limit?: number;
}

/** What is stored of a call. The bytes of pictures and documents are kept elsewhere, by their hash. */
export type ReadOutput =
  | {
      readonly kind: "text";
      readonly path: string;
      /** With numbers in front of the lines. */
      readonly content: string;
      readonly totalLines: number;
      readonly fromLine: number;
      readonly toLine: number;
      /** Of the whole file: what `write` takes as `expected_hash`. */
      readonly hash: string;
      readonly note?: string;
    }
  | {
      readonly kind: "image" | "file";
      readonly path: string;
      readonly mediaType: string;
      readonly size: number;
      readonly hash: string;
    }
  | { readonly kind: "binary"; readonly path: string; readonly size: number; readonly note: string };

/** How {@link createReadTool} works. */
export interface ReadToolOptions {
  readonly ops: ReadOperations;
  /** Without it, a picture is looked for where it was, and is gone when the file has changed. */
  readonly keep?: KeptFiles | undefined;
}

const inputSchema = objectInput<ReadInput>(["path"], {
  path: { type: "string", description: "Absolute path of the file." },
  offset: { type: "integer", minimum: 1, description: "The first line to read. Default: 1." },
  limit: { type: "integer", minimum: 1, maximum: MAX_LINES, description: "How many lines. Default: as many as fit." },
});

/** What models can look at, by how such files begin. */
const signatures: readonly (readonly [mediaType: string, at: number, bytes: readonly number[]])[] = [
  ["image/png", 0, [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", 0, [0xff, 0xd8, 0xff]],
  ["image/gif", 0, [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", 8, [0x57, 0x45, 0x42, 0x50]],
  ["application/pdf", 0, [0x25, 0x50, 0x44, 0x46, 0x2d]],
];

/**
 * A tool that reads a file: text in pages with numbered lines; pictures and PDFs are shown to the model while the stored call
 * stays small. It only reads, so a call that a crash cut runs again.
 */
export function createReadTool(options: ReadToolOptions): Tool<ReadInput, ReadOutput> {
  const made: Tool<ReadInput, ReadOutput> = {
    description:
      "Reads a file of the workspace. A text comes with line numbers, which are not part of it, and in pages if it is long: " +
      "go on with `offset`. Pictures (PNG, JPEG, GIF, WebP) and PDFs are shown to you.",
    inputSchema,
    execute: (input) => read(options, new ToolInput(input)),
    toModelOutput: ({ output }) => show(options, output),
  };
  return durableTool(made, {
    ...{ replay: "safe", maxOutputChars: MAX_OUTPUT_CHARS, maxOutputLines: MAX_LINES + 10 },
    supersedes: subjectOf,
  });
}

/** The file, or the page of it that was asked for: to read all of it again stands for any page of before. */
function subjectOf(given: ReadInput, output: ReadOutput): OutputSubject | undefined {
  // A hook may have put anything else in its place.
  if (!isRecord(output) || typeof output.path !== "string") return undefined;
  if (output.kind !== "text" || (output.fromLine <= 1 && output.toLine === output.totalLines)) return output.path;
  const input = new ToolInput(given);
  return {
    of: output.path,
    piece: `${input.count("offset", 1, 1e9) ?? 1} ${input.count("limit", 1, MAX_LINES) ?? ""}`,
  };
}

async function read({ ops, keep }: ReadToolOptions, input: ToolInput): Promise<ReadOutput> {
  const path = input.path("path");
  const stat = await ops.stat(path);
  if (stat === null)
    throw posixError("ENOENT", `There is no file ${path}. List the directory, or find it by a pattern.`);
  if (stat.type === "directory") throw posixError("EISDIR", `${path} is a directory. List it instead.`);
  if (stat.size > MAX_TEXT_BYTES)
    throw posixError("EFBIG", `${path} has ${sizeText(stat.size)}, too much to read. Search in it with grep or bash.`);
  const bytes = await ops.readFileBytes(path);
  if (bytes === null) throw posixError("ENOENT", `There is no file ${path}.`);
  const mediaType = viewableType(bytes);
  const size = bytes.length;
  if (mediaType !== undefined && size <= MAX_VIEWED_BYTES) {
    const hash = keep === undefined ? await sha256(bytes) : await keep.put(bytes, mediaType);
    return { kind: mediaType.startsWith("image/") ? "image" : "file", path, mediaType, size, hash };
  }
  if (mediaType !== undefined) {
    const note = `It is ${mediaType} with ${sizeText(size)}; only up to ${sizeText(MAX_VIEWED_BYTES)} can be shown.`;
    return { kind: "binary", path, size, note };
  }
  const text = decodeText(bytes);
  if (text === undefined)
    return { kind: "binary", path, size, note: "It is not UTF-8 text, so its content cannot be shown." };
  const hash = (await sha256(bytes)).slice(0, HASH_CHARS);
  return {
    kind: "text",
    path,
    hash,
    ...pageOf(text, input.count("offset", 1, 1e9) ?? 1, input.count("limit", 1, MAX_LINES)),
  };
}

/** A page of a text. Lines that are not shown are only counted: a list of all of them may be longer than the text. */
function pageOf(text: string, offset: number, limit = MAX_LINES) {
  let breaks = 0;
  let next = 0;
  for (let at = 0; at < text.length; at++) {
    if (text.charCodeAt(at) === LINE_BREAK && ++breaks === offset - 1) next = at + 1;
  }
  // The end of the last line begins no other.
  const totalLines = text === "" || text.endsWith("\n") ? breaks : breaks + 1;
  if (totalLines === 0) return { content: "", totalLines, fromLine: 0, toLine: 0, note: "The file is empty." };
  if (offset > totalLines)
    throw posixError(
      "EINVAL",
      `The file has ${totalLines} lines, so there is no line ${offset}. Use a smaller offset.`,
    );
  const shown: string[] = [];
  let chars = 0;
  for (let at = offset; at <= totalLines && shown.length < limit; at++) {
    const found = text.indexOf("\n", next);
    const end = found === -1 ? text.length : found;
    const line = `${at}\t${shorten(text.slice(next, end).replace(/\r$/, ""))}`;
    if (shown.length > 0 && chars + line.length > MAX_PAGE_CHARS) break;
    chars += line.length + 1;
    shown.push(line);
    next = end + 1;
  }
  const toLine = offset - 1 + shown.length;
  const rest = toLine < totalLines ? { note: `Read on with offset ${toLine + 1}; there are ${totalLines} lines.` } : {};
  return { content: shown.join("\n"), totalLines, fromLine: offset, toLine, ...rest };
}

function shorten(line: string): string {
  if (line.length <= MAX_LINE_CHARS) return line;
  return `${line.slice(0, MAX_LINE_CHARS).toWellFormed()}… (${line.length - MAX_LINE_CHARS} more characters in this line)`;
}

type Shown = Awaited<ReturnType<NonNullable<Tool["toModelOutput"]>>>;

/** What the model reads of an output, which may be older than this code, or cut. */
async function show(options: ReadToolOptions, output: unknown): Promise<Shown> {
  if (!isRecord(output)) return { type: "text", value: String(output) };
  const { kind, path, content, note, hash } = output;
  if (kind === "text" && typeof content === "string") {
    const more = typeof note === "string" ? ` ${note}` : "";
    return { type: "text", value: `${content}\n\n(hash ${String(hash)}.${more})` };
  }
  if (kind === "binary") return { type: "text", value: `${String(path)} cannot be read. ${String(note)}` };
  if ((kind !== "image" && kind !== "file") || typeof hash !== "string" || typeof path !== "string")
    return { type: "text", value: JSON.stringify(output) };
  const mediaType = String(output.mediaType);
  const about = `${path} (${mediaType}, ${sizeText(Number(output.size))})`;
  const bytes = await bytesOf(options, path, hash);
  if (bytes === undefined) return { type: "text", value: `${about} was shown here. Its bytes are no longer stored.` };
  return {
    type: "content",
    value: [
      { type: "text", text: about },
      // As letters: whoever writes requests down as JSON would write bytes as a list of numbers.
      { type: "file", data: { type: "data", data: toBase64(bytes) }, mediaType, filename: shortName(path) },
    ],
  };
}

/** Always the same bytes for the same output: a conversation that is sent again says the same. */
async function bytesOf({ ops, keep }: ReadToolOptions, path: string, hash: string): Promise<Uint8Array | undefined> {
  if (keep !== undefined) return keep.get(hash);
  try {
    const bytes = await ops.readFileBytes(path);
    return bytes !== null && (await sha256(bytes)) === hash ? bytes : undefined;
  } catch (thrown) {
    if (posixNameOf(thrown) !== undefined) return undefined;
    throw thrown;
  }
}

/** The media type of a picture or a PDF, by its first bytes; undefined for everything else. Names can say anything. */
function viewableType(bytes: Uint8Array): string | undefined {
  return signatures.find(([, at, mark]) => mark.every((byte, index) => bytes[at + index] === byte))?.[0];
}
