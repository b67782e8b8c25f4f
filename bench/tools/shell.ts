import { Worker } from "node:worker_threads";
import type { SandboxFiles } from "perdure/sandbox";
import { createBashSandbox, MemoryFiles } from "perdure/tools";
import type { Figure } from "../foundation/section.ts";
import { bestInTurns } from "./best.ts";
import type { BareShellTask } from "./bare-shell.ts";
import { HITS, WANTED } from "./sample.ts";

const ROUNDS = 9;
const COMMANDS = 20;
const SEARCHES = 2;
const SCRIPT = "echo hello | tr a-z A-Z";
const SEARCH = `grep -rE '${WANTED}' /`;

/** The shell alone, asked over a message each. */
export interface BareShell {
  run(task: BareShellTask): Promise<{ ms: number; lines: number }>;
  close(): Promise<unknown>;
}

export function startBareShell(): BareShell {
  const worker = new Worker(new URL("./bare-shell.ts", import.meta.url));
  return {
    run: (task) =>
      new Promise((resolve) => {
        worker.once("message", resolve);
        worker.postMessage(task);
      }),
    close: () => worker.terminate(),
  };
}

/** A command in a warm shell beside the shell alone. */
export async function measureShell(): Promise<Figure[]> {
  const sandbox = createBashSandbox({ python: false });
  const alone = startBareShell();
  const run = (fs: SandboxFiles | undefined) => async () => {
    const begun = performance.now();
    for (let i = 0; i < COMMANDS; i++) {
      const files = fs && ({ fs, mode: "read-write" } as const);
      const result = await sandbox.run({ language: "bash", code: SCRIPT, ...(files && { can: { files } }) });
      if (result.status !== "ok") throw new Error(`The shell ended as ${result.status}.`);
    }
    return (performance.now() - begun) / COMMANDS;
  };
  const bare = async () => (await alone.run({ script: SCRIPT, count: COMMANDS, files: false })).ms;
  const against = "just-bash in its own thread, files in memory";
  try {
    await run(undefined)();
    await bare();
    return [
      {
        what: "a command in a warm shell",
        unit: "ms",
        ...(await bestInTurns("lowest", ROUNDS, run(undefined), bare)),
        against,
      },
      {
        what: "the same with files of the host as `/`",
        unit: "ms",
        ...(await bestInTurns("lowest", ROUNDS, run(new MemoryFiles()), bare)),
        against,
      },
    ];
  } finally {
    await Promise.all([sandbox.dispose(), alone.close()]);
  }
}

/** `grep -r` on mounted files, in ms, and the shell alone on the same files in memory. */
export async function searchInShell(fs: SandboxFiles): Promise<{ ours: number; bare: number }> {
  const sandbox = createBashSandbox({ python: false });
  const alone = startBareShell();
  const ours = async () => {
    const begun = performance.now();
    const result = await sandbox.run({ language: "bash", code: SEARCH, can: { files: { fs, mode: "read" } } });
    const found = result.logs.map(({ text }) => text).join("");
    if (found.split("\n").length - 1 !== HITS) throw new Error(`grep in the shell: ${result.status}, ${found}`);
    return performance.now() - begun;
  };
  const bare = async () => {
    const { ms, lines } = await alone.run({ script: SEARCH, count: SEARCHES, files: true });
    if (lines !== HITS) throw new Error(`grep in the shell alone found ${lines} lines.`);
    return ms;
  };
  try {
    await ours();
    await bare();
    return await bestInTurns("lowest", ROUNDS, ours, bare);
  } finally {
    await Promise.all([sandbox.dispose(), alone.close()]);
  }
}
