import { printedText } from "../sandbox/printed.ts";
import type { Tool } from "ai";
import { PerdureError } from "../../base/error.ts";
import { namesOf, refuseUnknown } from "../../base/known-options.ts";
import { sharedBashSandbox } from "../sandbox/bash/bash-sandbox.ts";
import { cleanPath } from "../sandbox/path.ts";
import type { Egress, RunResult, Sandbox, SandboxFiles } from "../sandbox/sandbox.ts";
import { durableTool } from "../../tool/define.ts";
import { objectInput } from "../../base/json-schema.ts";

/** How {@link createBashTool} runs commands. */
export interface BashToolOptions {
  /** What runs them. Default: a `createBashSandbox()` that the whole process shares. */
  readonly sandbox?: Sandbox;
  /** How long a command may take when the model does not say. Default: 30 s. */
  readonly timeoutMs?: number;
  /** The longest that the model may ask for. Default: 2 minutes. */
  readonly maxTimeoutMs?: number;
  /** With it there is `curl`. Default: no network. */
  readonly network?: Egress;
  /** The characters of each of `stdout` and `stderr` that the model reads; more is cut in the middle. Default: 64,000. */
  readonly maxOutput?: number;
  /** Commands may not change files. Default: false. */
  readonly readOnly?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

const bashToolOptionsNames = namesOf<BashToolOptions>()(
  "sandbox timeoutMs maxTimeoutMs network maxOutput readOnly env",
);

/** What the model says. */
export interface BashToolInput {
  readonly command: string;
  readonly timeout_ms?: number;
  readonly cwd?: string;
}

/** What the model reads. `exitCode` is null for a command that was stopped; `message` says why. */
export type BashToolOutput =
  | { readonly exitCode: number | null; readonly stdout: string; readonly stderr: string; readonly message?: string }
  | { readonly error: string };

const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 120_000;
const DEFAULT_OUTPUT = 64_000;
/** What a shell may print before it is stopped: enough to cut the middle out of. */
const PRINTED_BYTES = 8 << 20;
const MAX_COMMAND = 200_000;
const MANY_LINES = 1_000_000;

const inputSchema = objectInput<BashToolInput>(["command"], {
  command: { type: "string", description: "The script. Several lines, pipes, loops and functions are fine." },
  timeout_ms: { type: "integer", minimum: 1, description: "How long it may take, in milliseconds." },
  cwd: { type: "string", description: "The directory where it starts, as an absolute path. Default: /." },
});

/**
 * A tool to run shell commands on `files`. Writes go straight to them, also those of a command that fails later. A call that a
 * crash cut is not run again. Wrong input, or a missing package, is answered with a text that says what to do.
 */
export function createBashTool(
  files: SandboxFiles,
  options: BashToolOptions = {},
): Tool<BashToolInput, BashToolOutput> {
  refuseUnknown(options, bashToolOptionsNames, "createBashTool()");
  const { timeoutMs = DEFAULT_TIMEOUT_MS, maxOutput = DEFAULT_OUTPUT, readOnly = false, network, env } = options;
  const maxTimeoutMs = Math.max(timeoutMs, options.maxTimeoutMs ?? MAX_TIMEOUT_MS);
  const sandbox = options.sandbox ?? sharedBashSandbox();
  const made: Tool<BashToolInput, BashToolOutput> = {
    description: describe(readOnly, network !== undefined, timeoutMs, sandbox),
    inputSchema,
    async execute(input, { abortSignal }) {
      const found = await sandbox.probe();
      if (!found.ok) return { error: `There is no shell here. ${found.missing}` };
      const fault = faultOf(input) ?? (await faultOfPlace(files, input.cwd ?? "/"));
      if (fault !== undefined) return { error: fault };
      const wallMs = Math.min(input.timeout_ms ?? timeoutMs, maxTimeoutMs);
      const result = await sandbox.run({
        language: "bash",
        code: input.command,
        cwd: input.cwd ?? "/",
        can: { files: { fs: files, mode: readOnly ? "read" : "read-write" }, network, env },
        limits: { wallMs, outputBytes: PRINTED_BYTES },
        signal: abortSignal,
      });
      if (result.status === "aborted") throw new PerdureError("agent_gone", "The command was stopped: the turn ended.");
      return outputOf(result, wallMs, maxOutput);
    },
  };
  // It cuts its own output, each of the two streams by itself.
  const room = { maxOutputChars: 2 * maxOutput + DEFAULT_OUTPUT, maxOutputLines: MANY_LINES };
  return durableTool(made, { replay: "never", ...room });
}

/** Why the tool cannot work here, and what to install; undefined when it can. */
export async function bashToolMissing(sandbox: Sandbox = sharedBashSandbox()): Promise<string | undefined> {
  const found = await sandbox.probe();
  return found.ok ? undefined : found.missing;
}

function describe(readOnly: boolean, network: boolean, timeoutMs: number, sandbox: Sandbox): string {
  const python = sandbox.supports.languages.includes("python") ? ", python3 (standard library only)" : "";
  return [
    "Runs a script in a sandboxed bash on the workspace: its paths are the workspace's, /tmp is scratch that goes with the call.",
    `There are the usual text tools (grep, rg, sed, awk, sort, jq, yq, tar, gzip, sqlite3${python}), no other programs and no package manager.`,
    readOnly ? "Files can be read, not changed." : "Files and directories that it writes stay in the workspace.",
    network ? "curl reaches the hosts that are allowed." : "There is no network.",
    `A command is stopped after ${Math.round(timeoutMs / 1_000)} s unless timeout_ms says otherwise. Each call is a new shell: variables do not stay.`,
  ].join(" ");
}

function faultOf(input: BashToolInput): string | undefined {
  // Models send anything.
  const { command, timeout_ms, cwd }: { command?: unknown; timeout_ms?: unknown; cwd?: unknown } = input;
  if (typeof command !== "string" || command.trim() === "") return "Give `command`: the script to run, as a text.";
  if (command.length > MAX_COMMAND) {
    return `The command has ${command.length} characters; ${MAX_COMMAND} are allowed. Write long data to a file first.`;
  }
  if (timeout_ms !== undefined && !(typeof timeout_ms === "number" && timeout_ms >= 1)) {
    return "`timeout_ms` must be a number of milliseconds, at least 1.";
  }
  return cwd === undefined || typeof cwd === "string" ? undefined : "`cwd` must be an absolute path, such as /src.";
}

async function faultOfPlace(files: SandboxFiles, cwd: string): Promise<string | undefined> {
  try {
    const path = cleanPath(cwd);
    if (path === "/" || path === "/tmp") return undefined;
    const stat = await files.stat(path);
    if (stat?.type === "directory") return undefined;
    return stat === null ? `There is no directory ${path}. Make it first, or leave \`cwd\` out.` : `${path} is a file.`;
  } catch {
    return "`cwd` must be an absolute path, such as /src.";
  }
}

function outputOf(result: RunResult, wallMs: number, maxOutput: number): BashToolOutput {
  const stdout = printedText(result, "stdout", maxOutput);
  const stderr = printedText(result, "stderr", maxOutput);
  switch (result.status) {
    case "ok":
      return { exitCode: result.exitCode ?? 0, stdout, stderr };
    case "error":
      return { exitCode: 1, stdout, stderr: joined(stderr, result.error.message) };
    case "limit": {
      const message =
        result.limit === "wall"
          ? `Stopped after ${wallMs} ms. What it wrote to files stays; what it printed may be lost. Do less at a time, or give a larger timeout_ms.`
          : `Stopped by a limit (${result.limit}): ${result.message} Do less at a time, for example on a part of the data.`;
      return { exitCode: null, stdout, stderr, message };
    }
    default:
      return { error: "message" in result ? `The shell failed: ${result.message}` : "The shell failed." };
  }
}

function joined(text: string, more: string): string {
  return text === "" ? more : `${text.trimEnd()}\n${more}`;
}
