import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";

/** What a tool said, and whether it was content. */
export interface ToolResult {
  readonly ok: boolean;
  /** Standard output, then standard error. */
  readonly output: string;
}

const binaries = join(import.meta.dirname, "..", "node_modules", ".bin");

/**
 * Runs an installed command-line tool of this repository in `cwd`.
 * @throws Error when the tool cannot be started; a tool that ends with a failure is a result
 */
export function runTool(tool: string, args: readonly string[], cwd: string): Promise<ToolResult> {
  return new Promise((resolve, reject) => {
    const child = spawn(join(binaries, tool), args, {
      cwd,
      env: {
        ...process.env,
        PATH: `${binaries}${delimiter}${process.env["PATH"] ?? ""}`,
        NO_COLOR: "1",
        FORCE_COLOR: "0",
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const out: Buffer[] = [];
    const err: Buffer[] = [];
    child.stdout.on("data", (bytes: Buffer) => out.push(bytes));
    child.stderr.on("data", (bytes: Buffer) => err.push(bytes));
    child.on("error", reject);
    child.on("close", (code) => {
      const output = Buffer.concat([...out, ...err]).toString("utf8");
      resolve({ ok: code === 0, output });
    });
  });
}

/** The non-empty lines of a failed tool, or none; a failure without words still counts as one violation. */
export function violationsOf(tool: string, result: ToolResult): string[] {
  if (result.ok) return [];
  const lines = result.output.split("\n").filter((line) => line.trim() !== "");
  return lines.length > 0 ? lines : [`${tool} failed without saying why`];
}
