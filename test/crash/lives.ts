// Several lives in one folder, each as the test likes it: another program, an end in order, a kill.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { startProgram } from "perdure/testing";
import type { Ending, Fact, Program } from "perdure/testing";
import { env } from "./drive.ts";

/** What is left of a life. */
export interface Past {
  readonly facts: readonly Fact[];
  readonly commits: number;
  readonly ending: Ending;
}

/** A folder in which one life follows another. */
export interface Lives {
  readonly dir: string;
  /** Starts the program and lets `drive` use it, then kills it. A failure of `drive` counts, unless the process may die. */
  live(drive: (child: Program) => Promise<unknown>, options?: LifeOptions): Promise<Past>;
}

export interface LifeOptions {
  /** The commit after which the process dies, also under `drive`. */
  readonly killAt?: number;
  /** The program ends itself, also under `drive`. */
  readonly mayDie?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

/** A driver often hears of a death (a closed channel) a moment before the process is reaped. */
const DEATH_GRACE_MS = 2_000;

/** Gives `work` a folder of its own for as long as it runs. */
export async function withLives<T>(program: URL, work: (lives: Lives) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "perdure-lives-"));
  try {
    return await work({
      dir,
      async live(drive, { killAt, mayDie = killAt !== undefined, env: more } = {}) {
        await using child = startProgram(program, { dir, killAt, env: { ...env, ...more } });
        try {
          await drive(child);
        } catch (error) {
          const ending = await Promise.race([child.exited, setTimeout(DEATH_GRACE_MS)]);
          if (!mayDie || ending?.signal !== "SIGKILL") throw error;
        }
        const ending = await child.kill();
        return { facts: [...child.facts], commits: child.commits, ending };
      },
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
