import type { Schema, Tool } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { isRecord } from "../../../base/json.ts";
import { type DurableToolOptions, durableTool } from "../../../tool/define.ts";
import { nameOf, normalizePath } from "../../sandbox/path.ts";

/** What a model gave to a tool. Nothing about it is sure: each reader says what is wrong, so that the model can mend it. */
export class ToolInput {
  readonly #fields: Record<string, unknown>;

  /** @throws PerdureError `bad_input` when it is no object */
  constructor(input: unknown) {
    if (!isRecord(input)) throw new PerdureError("bad_input", "Pass an object with the fields of the tool.");
    this.#fields = input;
  }

  text(name: string): string | undefined {
    const value = this.#fields[name];
    if (value === undefined || value === null) return undefined;
    if (typeof value === "string") return value;
    throw new PerdureError("bad_input", `"${name}" must be a string, not ${JSON.stringify(value)?.slice(0, 50)}.`);
  }

  /** @param hint what to give */
  needText(name: string, hint: string): string {
    const value = this.text(name);
    if (value === undefined) throw new PerdureError("bad_input", `"${name}" is missing. ${hint}`);
    return value;
  }

  /** A path, normalised. @param fallback for when none is given; without it one must be */
  path(name: string, fallback?: string): string {
    const given = this.text(name) ?? fallback;
    if (given === undefined || given === "")
      throw new PerdureError("bad_input", `"${name}" is missing. Give an absolute path, such as "/notes.md".`);
    return normalizePath(given);
  }

  /** A whole number; what lies outside is moved to the nearest that is allowed. */
  count(name: string, least: number, most: number): number | undefined {
    const value = this.#fields[name];
    if (value === undefined || value === null) return undefined;
    const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
    if (typeof number !== "number" || !Number.isFinite(number))
      throw new PerdureError("bad_input", `"${name}" must be a whole number from ${least} to ${most}.`);
    return Math.min(most, Math.max(least, Math.trunc(number)));
  }

  flag(name: string): boolean {
    const value = this.#fields[name];
    if (value === undefined || value === null) return false;
    if (typeof value === "boolean") return value;
    if (value === "true" || value === "false") return value === "true";
    throw new PerdureError("bad_input", `"${name}" must be true or false.`);
  }
}

/** What a tool on files is. */
interface FileTool<INPUT, OUTPUT> extends DurableToolOptions<INPUT, OUTPUT> {
  readonly description: string;
  readonly inputSchema: Schema<INPUT>;
  readonly run: (input: ToolInput, signal: AbortSignal | undefined) => Promise<OUTPUT>;
  /** What the model reads. */
  readonly show: (output: OUTPUT) => string;
}

/** Makes a tool on files. Where a hook has put a text in the place of its output, the model reads that. */
export function fileTool<INPUT, OUTPUT>(made: FileTool<INPUT, OUTPUT>): Tool<INPUT, OUTPUT> {
  const { description, inputSchema, run, show, ...options } = made;
  const tool: Tool = {
    description,
    inputSchema,
    execute: (input: unknown, { abortSignal }: { abortSignal?: AbortSignal }) => run(new ToolInput(input), abortSignal),
    toModelOutput: ({ output }: { output: unknown }) => ({
      type: "text",
      value: typeof output === "string" ? output : show(output as OUTPUT),
    }),
  };
  return durableTool(tool, options as DurableToolOptions) as Tool<INPUT, OUTPUT>;
}

/** A number of bytes in words. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  return bytes < 1_000_000 ? `${(bytes / 1_000).toFixed(1)} kB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** A glob as models write it: a name alone is meant at any depth below `base`, and paths are meant from there. */
export function globBelow(base: string, glob: string): string {
  const root = base === "/" ? "" : base;
  if (glob.startsWith("/")) return glob;
  return glob.includes("/") ? `${root}/${glob}` : `${root}/**/${glob}`;
}

/** "/a/b.ts" is "b.ts". */
export function shortName(path: string): string {
  return nameOf(path) || path;
}
