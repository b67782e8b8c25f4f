import { execFile, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { openTarget } from "../../src/cli/target.ts";

const program = fileURLToPath(new URL("../../src/cli/perdure.ts", import.meta.url));
/** How Node is to be started for the command. */
export const SOURCE = ["--conditions=perdure-source", "--disable-warning=ExperimentalWarning", program];
/** Far longer than any takes: what does not end by itself is killed, and has no code. */
const ENDLESS_MS = 90_000;

/** How a run of the command ended. */
export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

/** Runs the command as a process of its own. */
export function perdure(args: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env["PATH"] ?? "", ...env }, timeout: ENDLESS_MS };
    const child = execFile(process.execPath, [...SOURCE, ...args], options, (_, out, err) =>
      resolve({ code: child.exitCode, out, err }),
    );
  });
}

/** Starts the command, which somebody may kill. */
export function startPerdure(args: readonly string[]) {
  const child = spawn(process.execPath, [...SOURCE, ...args], { env: { PATH: "" } });
  onTestFinished(() => void child.kill("SIGKILL"));
  const told = { out: "", err: "" };
  child.stdout.on("data", (piece: Buffer) => (told.out += piece.toString()));
  child.stderr.on("data", (piece: Buffer) => (told.err += piece.toString()));
  const ended = new Promise<number | null>((resolve) => child.on("close", resolve));
  return { child, told, ended };
}

/** What a directory, or the host in it, answers. */
export async function askDir(dir: string, place: string): Promise<Record<string, unknown>> {
  const target = await openTarget({ dir, who: "test" });
  try {
    return (await (await target.ask("GET", place)).json()) as Record<string, unknown>;
  } finally {
    await target.close();
  }
}
