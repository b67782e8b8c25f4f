import type { Tool } from "ai";
import { PerdureError } from "../../../base/error.ts";
import { namesOf, refuseUnknown } from "../../../base/known-options.ts";
import { durableTool } from "../../../tool/define.ts";
import type { Egress, Limits, LogLine, RunRequest, Sandbox, SandboxFiles } from "../sandbox.ts";
import type { FilesReport } from "./files-report.ts";
import type { ProcessRunResult } from "./process-sandbox.ts";
import { objectInput } from "../../../base/json-schema.ts";

/** What {@link createSandboxTools} is given. */
export interface SandboxToolsOptions {
  /** A sandbox that runs `bash` and `argv`: `createProcessSandbox()`, or an adapter of your own. */
  readonly sandbox: Sandbox;
  /** The files that commands see, at `/workspace`. Without it they have an empty `/tmp` only. */
  readonly workspace?: SandboxFiles;
  /** Whether what commands change comes back. Default `read-write`. */
  readonly mode?: "read" | "read-write";
  /** What commands reach through `http_proxy`. Default: nothing. */
  readonly network?: Egress;
  readonly env?: Readonly<Record<string, string>>;
  readonly limits?: Partial<Limits>;
  /** The longest time that the model may ask for, in milliseconds. Default 10 minutes. */
  readonly maxTimeoutMs?: number;
  /** Characters of standard output and of standard error that the model reads, each; the middle is cut out. Default 30,000. */
  readonly maxOutputChars?: number;
}

const sandboxToolsOptionsNames = namesOf<SandboxToolsOptions>()(
  "sandbox workspace mode network env limits maxTimeoutMs maxOutputChars",
);

/** What the model says: a command of the shell, or words that are run as they are. */
export interface RunProcessInput {
  readonly command?: string;
  readonly argv?: readonly string[];
  readonly cwd?: string;
  readonly timeout_ms?: number;
  readonly stdin?: string;
}

/** What the model reads. `exitCode` is null when the run was cut; `message` then says why. */
export type RunProcessOutput =
  | {
      readonly exitCode: number | null;
      readonly stdout: string;
      readonly stderr: string;
      readonly message?: string;
      /** Files of the workspace that the run wrote or deleted. */
      readonly changed?: readonly string[];
      /** What did not come back as it was, in sentences. */
      readonly notes?: readonly string[];
    }
  | { readonly error: string };

/** The name of the tool. */
export const RUN_PROCESS_TOOL = "run_process";

const DEFAULT_TIMEOUT_MS = 60_000;
const MAX_TIMEOUT_MS = 10 * 60_000;
const OUTPUT_CHARS = 30_000;
const MAX_COMMAND = 100_000;
const MAX_LISTED = 50;

const inputSchema = objectInput<RunProcessInput>([], {
  command: { type: "string", description: "A command line or script for bash. Give this or `argv`." },
  argv: {
    type: "array",
    items: { type: "string" },
    description: "A program and its arguments, run without a shell. Give this or `command`.",
  },
  cwd: { type: "string", description: 'The directory to start in, such as "/workspace/src".' },
  timeout_ms: { type: "integer", minimum: 1, description: `Milliseconds. Default: ${DEFAULT_TIMEOUT_MS}.` },
  stdin: { type: "string", description: "What the command reads as its standard input." },
});

/**
 * The tool `run_process`: the model runs programs in a jail. A call that a crash cut is not run again. An unusable sandbox says
 * what is missing; ask `sandbox.probe()` first to leave the tool out.
 */
export function createSandboxTools(options: SandboxToolsOptions): {
  readonly run_process: Tool<RunProcessInput, RunProcessOutput>;
} {
  refuseUnknown(options, sandboxToolsOptionsNames, "createSandboxTools()");
  const made: Tool<RunProcessInput, RunProcessOutput> = {
    description: describe(options),
    inputSchema,
    async execute(input, { abortSignal }) {
      const request = requestOf(input, options);
      if (typeof request === "string") return { error: request };
      const usable = await options.sandbox.probe();
      if (!usable.ok) return { error: `Processes cannot be run here: ${usable.missing} Do it in another way.` };
      try {
        const result = await options.sandbox.run({ ...request, signal: abortSignal });
        return outputOf(result, options.maxOutputChars ?? OUTPUT_CHARS);
      } catch (thrown) {
        // What the model got wrong it can mend itself.
        if (PerdureError.is(thrown, "bad_input")) return { error: thrown.message };
        throw thrown;
      }
    },
  };
  return { run_process: durableTool(made, { replay: "never" }) };
}

function describe({ workspace, mode, network }: SandboxToolsOptions): string {
  const files =
    workspace === undefined
      ? "There are no files but an empty /tmp, which is gone afterwards."
      : `The workspace is at /workspace: the file /a.txt is /workspace/a.txt there. ${
          mode === "read"
            ? "It can only be read."
            : "What you change in it is kept; everything else is gone afterwards."
        }`;
  const reach =
    network === undefined ? "There is no network." : "Only allowed hosts can be reached, through http_proxy.";
  return (
    "Runs a program of this Linux machine in a jail, such as git, python3, node or a compiler. " +
    `Give \`command\` for bash or \`argv\` for one program. ${files} ${reach} No program keeps running after the call.`
  );
}

/** The request for what the model said, or what is wrong with it. */
function requestOf(input: RunProcessInput, options: SandboxToolsOptions): RunRequest | string {
  // Models send anything.
  const { command, argv, cwd, stdin }: { readonly [NAME in keyof RunProcessInput]?: unknown } = input;
  if ((command === undefined) === (argv === undefined))
    return "Give `command` (for bash) or `argv` (words), and not both.";
  if (command !== undefined && (typeof command !== "string" || command.trim() === ""))
    return "`command` must be a string.";
  const words = argv === undefined ? undefined : wordsOf(argv);
  if (words === null) return '`argv` must be a list of texts, the program first, such as ["ls", "-l"].';
  const code = words === undefined ? String(command) : JSON.stringify(words);
  if (code.length > MAX_COMMAND) {
    return `The command has ${code.length} characters, and at most ${MAX_COMMAND} are run. Write it to a file and run that.`;
  }
  if (cwd !== undefined && (typeof cwd !== "string" || !cwd.startsWith("/"))) {
    return '`cwd` must be an absolute path, such as "/workspace".';
  }
  if (stdin !== undefined && typeof stdin !== "string") return "`stdin` must be a string.";
  const longest = options.maxTimeoutMs ?? MAX_TIMEOUT_MS;
  const wallMs: unknown = input.timeout_ms ?? Math.min(longest, options.limits?.wallMs ?? DEFAULT_TIMEOUT_MS);
  if (typeof wallMs !== "number" || !(wallMs >= 1 && wallMs <= longest)) {
    return `\`timeout_ms\` must be a number from 1 to ${longest}.`;
  }
  const { workspace, network, env, mode = "read-write" } = options;
  return {
    language: words === undefined ? "bash" : "argv",
    code,
    limits: { ...options.limits, wallMs },
    can: { files: workspace && { fs: workspace, mode }, network, env },
    ...{ cwd, stdin },
  };
}

function wordsOf(argv: unknown): readonly string[] | null {
  return Array.isArray(argv) && argv.length > 0 && argv.every((word) => typeof word === "string") ? argv : null;
}

function outputOf(result: ProcessRunResult, most: number): RunProcessOutput {
  // The text of a crash is for the operator: it may name paths of the host.
  if (result.status === "crashed")
    return { error: "The jail failed, and the command may not have run. Do not retry it often." };
  const text = (level: LogLine["level"]) =>
    cutMiddle(
      result.logs
        .filter((line) => line.level === level)
        .map((line) => line.text)
        .join("\n"),
      most,
    );
  const streams = { stdout: text("stdout"), stderr: text("stderr") };
  const files = result.files === undefined ? {} : fileNotes(result.files);
  switch (result.status) {
    case "ok":
      return { exitCode: result.exitCode ?? 0, ...streams, ...files };
    case "limit":
      return { exitCode: null, ...streams, message: `Cut: ${result.message}`, ...files };
    case "error":
      return { exitCode: null, ...streams, message: result.error.message, ...files };
    default:
      return { exitCode: null, ...streams, message: "Stopped before it ended.", ...files };
  }
}

function fileNotes(report: FilesReport): { changed?: readonly string[]; notes?: readonly string[] } {
  const changed = [...report.written, ...report.deleted.map((path) => `${path} (deleted)`)];
  const notes = [
    ...report.conflicts.map(({ path, kept }) =>
      kept === undefined
        ? `${path} was changed elsewhere meanwhile: it stays as it is there.`
        : `${path} was changed elsewhere meanwhile: that stays, and your version is ${kept}.`,
    ),
    ...report.refused.map(({ path, reason }) => `${path} did not come back: ${reason}`),
  ];
  return {
    ...(changed.length > 0 && { changed: firstOf(changed) }),
    ...(notes.length > 0 && { notes: firstOf(notes) }),
  };
}

function firstOf(lines: readonly string[]): readonly string[] {
  if (lines.length <= MAX_LISTED) return lines;
  return [...lines.slice(0, MAX_LISTED), `… and ${lines.length - MAX_LISTED} more`];
}

function cutMiddle(text: string, most: number): string {
  if (text.length <= most) return text;
  const half = Math.floor(most / 2);
  return `${text.slice(0, half)}\n… ${text.length - 2 * half} characters cut …\n${text.slice(-half)}`;
}
