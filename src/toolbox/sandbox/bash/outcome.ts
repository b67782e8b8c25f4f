import type { LimitName, LogLine, Outcome } from "../sandbox.ts";

/** How a shell ended, as its worker saw it. */
export interface ShellEnd {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** It printed more than it may; this is the beginning. */
  readonly cut: boolean;
}

/** The exit codes with which the shell ends a script that went too far. */
const STOPPED = 126;
const TIMED_OUT = 124;

const limitWords: readonly [RegExp, LimitName][] = [
  [/exceeded (its )?execution deadline/, "wall"],
  [/output size/, "output"],
  [/recursion|depth|nesting/, "stack"],
  [/string length|array element|bytes\)|heredoc|database/, "memory"],
  [/limit exceeded|exceeded maximum|too many commands|too many iterations|maximum .*exceeded/, "cpu"],
];

/** What a finished shell amounts to. */
export function outcomeOf(end: ShellEnd): Outcome {
  if (end.cut) return { status: "limit", limit: "output", message: "It printed more than is allowed." };
  const last = end.stderr.trimEnd().split("\n").at(-1) ?? "";
  const limit = end.exitCode === STOPPED || end.exitCode === TIMED_OUT ? limitIn(last) : undefined;
  if (limit === undefined) return { status: "ok", value: undefined, exitCode: end.exitCode };
  // The shell's own advice is for whoever configures it.
  return { status: "limit", limit, message: last.replace(/,? increase executionLimits\.\w+/, "") };
}

function limitIn(line: string): LimitName | undefined {
  const exceeds = /exceeded|too many/.test(line);
  return exceeds ? limitWords.find(([words]) => words.test(line))?.[1] : undefined;
}

/** Standard output and standard error, each as one entry; none for what printed nothing. */
export function logsOf(end: ShellEnd): LogLine[] {
  const logs: LogLine[] = [];
  if (end.stdout !== "") logs.push({ level: "stdout", text: end.stdout });
  if (end.stderr !== "") logs.push({ level: "stderr", text: end.stderr });
  return logs;
}
