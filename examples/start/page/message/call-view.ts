import { brief, pretty } from "./pretty.ts";

/** One thing that a card shows when it is open. */
export interface Section {
  readonly name: string;
  readonly text: string;
}

/** What a card shows of a call. */
export interface CallView {
  /** Beside the name: what it is about. */
  readonly brief: string;
  /** What came of it, in two or three words; empty when there is nothing short to say. */
  readonly result: string;
  /** What the tool found wrong, in its own words. */
  readonly problem: string | undefined;
  readonly sections: readonly Section[];
  /** A picture that it shows: the name of the file. */
  readonly picture: { readonly hash: string; readonly path: string } | undefined;
}

/** What says most about a call, where there are several arguments. */
const TELLING = ["path", "command", "url", "pattern", "script", "name"] as const;

/** A call as a person wants to see it. What a tool takes and gives is only known as JSON here. */
export function viewOfToolCall(name: string, input: unknown, output: unknown): CallView {
  const given = recordOf(input);
  const got = recordOf(output);
  return {
    brief: briefOf(given, input),
    result: output === undefined ? "" : resultOf(name, got),
    problem: problemOf(got.error),
    sections: sectionsOf(name, given, got, input, output),
    picture: got.kind === "image" && name === "read" ? { hash: text(got.hash), path: text(got.path) } : undefined,
  };
}

function briefOf(given: Readonly<Record<string, unknown>>, input: unknown): string {
  if (typeof given.code === "string") return firstLine(given.code);
  const telling = TELLING.find((name) => typeof given[name] === "string");
  return telling === undefined ? brief(input) : firstLine(text(given[telling]));
}

function resultOf(name: string, got: Readonly<Record<string, unknown>>): string {
  if (got.error !== undefined) return "";
  if (typeof got.exitCode === "number") return got.exitCode === 0 ? "" : `exit code ${got.exitCode}`;
  switch (name) {
    case "read":
      return typeof got.totalLines === "number" ? many(got.totalLines, "line") : text(got.mediaType);
    case "write":
      return got.created === true ? "new file" : "written";
    case "edit":
      return typeof got.replacements === "number" ? many(got.replacements, "change") : "";
    case "list":
      return Array.isArray(got.entries) ? many(got.entries.length, "entry", "entries") : "";
    case "find":
      return Array.isArray(got.paths) ? `${got.paths.length} found` : "";
    case "grep":
      return typeof got.matches === "number" ? many(got.matches, "match", "matches") : "";
    case "delete":
      return got.deleted === true ? "deleted" : "";
    case "fetch_url":
      return text(got.title);
    default:
      return "";
  }
}

/** A tool that was used in a wrong way says so in its result. */
function problemOf(error: unknown): string | undefined {
  if (typeof error === "string") return error;
  const message = recordOf(error).message;
  return typeof message === "string" ? message : undefined;
}

function sectionsOf(
  name: string,
  given: Readonly<Record<string, unknown>>,
  got: Readonly<Record<string, unknown>>,
  input: unknown,
  output: unknown,
): Section[] {
  const took = inputSections(given, input);
  if (output === undefined) return took;
  if (name === "execute") return [...took, ...named({ Result: got.result, Printed: got.logs, Note: got.note })];
  if ("exitCode" in got) return [...took, ...named({ Output: got.stdout, Errors: got.stderr, Note: got.message })];
  if (name === "read" && typeof got.content === "string") return [...took, ...named({ Content: got.content })];
  if (name === "edit" && typeof got.diff === "string") return [...took, ...named({ Changes: got.diff })];
  return [...took, { name: "Output", text: pretty(output) }];
}

/** Code is shown as code; what else there is, as it was given. */
function inputSections(given: Readonly<Record<string, unknown>>, input: unknown): Section[] {
  const { code, source, command, ...others } = given;
  const written = named({ Code: code ?? source, Command: command });
  if (written.length === 0) return [{ name: "Input", text: pretty(input) }];
  return Object.keys(others).length === 0 ? written : [{ name: "Input", text: pretty(others) }, ...written];
}

function named(values: Readonly<Record<string, unknown>>): Section[] {
  return Object.entries(values)
    .filter(([, value]) => value !== undefined && value !== "")
    .map(([name, value]) => ({ name, text: pretty(value) }));
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function firstLine(value: string): string {
  return value.trim().split("\n", 1)[0] ?? "";
}

function many(count: number, one: string, more = `${one}s`): string {
  return `${count} ${count === 1 ? one : more}`;
}
