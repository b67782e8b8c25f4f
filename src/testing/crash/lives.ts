import { PerdureError } from "../../base/error.ts";
import { systemClock, within } from "../../base/time.ts";
import { endingText, startProgram, type Ending, type Program } from "./program.ts";
import type { Fact } from "./protocol.ts";

/** A program, and how a test drives it from its first life to its result. */
export interface CrashScenario<Result> {
  /** A module that runs as a process of its own: a path or file URL. */
  readonly program: string | URL;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * What clients do in the first life: connect, send, wait. It may fail when the process dies under it; a failure
   * while the process lives fails the run. Note what clients were told with `child.note`.
   */
  drive?(child: Program): Promise<unknown>;
  /** What clients do in a later life, if anything: by default nothing, for accepted work must finish by itself. */
  resume?(child: Program, before: readonly Life[]): Promise<unknown>;
  /** Waits until the program has done its work and reads the result. The process is killed afterwards. */
  finish(child: Program, before: readonly Life[]): Promise<Result>;
  /** How long one life may take; 30 seconds by default. */
  readonly timeoutMs?: number;
}

/** When a life must end: right after a commit (counted from 1 in that life), or when `when` resolves. */
export type Death = { readonly commit: number } | { when(child: Program): Promise<unknown> };

/** What is left of a life. */
export interface Life {
  readonly facts: readonly Fact[];
  readonly commits: number;
  readonly ending: Ending;
  readonly output: string;
}

/** Lives that were killed, and the one that came to the end. */
export interface CrashRun<Result> {
  readonly died: readonly Life[];
  readonly last: Life;
  readonly result: Result;
}

const DEFAULT_LIFE_MS = 30_000;
/** A client often hears of the death (a closed socket) a moment before the process is reaped. */
const DEATH_GRACE_MS = 2_000;
/** Work that follows the result, such as cleaning up, may hold the commit that is waited for. */
const LATE_COMMIT_MS = 300;

/**
 * Runs the program in `dir`, killing each life as `deaths` says, and one more without a kill. A life that comes
 * to its result before its death ends the run. @throws what `drive`, `resume` or `finish` throw while the process
 * lives; PerdureError `timeout`, or `agent_gone` when the program fails by itself
 */
export async function runLives<Result>(
  scenario: CrashScenario<Result>,
  dir: string,
  deaths: readonly Death[],
  died: Life[] = [],
): Promise<CrashRun<Result>> {
  for (const death of [...deaths, undefined]) {
    const { life, result } = await live(scenario, dir, death, died);
    if (result !== undefined) return { died, last: life, result: result.value };
    died.push(life);
  }
  throw new PerdureError("bad_state", "The last life was killed from outside.");
}

type Outcome<Result> = { value: Result } | { error: unknown };

async function live<Result>(
  scenario: CrashScenario<Result>,
  dir: string,
  death: Death | undefined,
  before: readonly Life[],
): Promise<{ life: Life; result?: { value: Result } }> {
  const { program, env, timeoutMs = DEFAULT_LIFE_MS } = scenario;
  const killAt = death !== undefined && "commit" in death ? death.commit : undefined;
  await using child = startProgram(program, { dir, env, killAt });
  let chosen = false;
  const isDead = (ending: Ending): boolean =>
    ending.signal === "SIGKILL" && (chosen || (killAt !== undefined && child.commits >= killAt));

  const work = (async (): Promise<Outcome<Result>> => {
    try {
      await (before.length === 0 ? scenario.drive?.(child) : scenario.resume?.(child, before));
      return { value: await scenario.finish(child, before) };
    } catch (error) {
      return { error };
    }
  })();
  const moment = death !== undefined && "when" in death ? death.when(child) : undefined;
  // A moment that never comes is no failure of its own: the life then ends with its result, or the reason shows there.
  moment?.then(() => ((chosen = true), child.kill())).catch(() => undefined);

  const first = async (): Promise<Outcome<Result> | Ending> => {
    const ended = await Promise.race([work, child.exited]);
    // A program may end by itself when its work is done; `finish` then reads what it left.
    return "signal" in ended && ended.code === 0 && !isDead(ended) ? work : ended;
  };
  const outcome = await within(systemClock, timeoutMs, first());
  if (outcome === undefined) {
    throw new PerdureError("timeout", `The program did not finish within ${timeoutMs} ms.\n${child.output}`);
  }
  if ("signal" in outcome) {
    if (isDead(outcome)) return { life: toLife(child, outcome) };
    throw gone(child, outcome);
  }
  // A death that was on its way is not always seen first.
  const graceMs = "error" in outcome ? DEATH_GRACE_MS : killAt === undefined ? 0 : LATE_COMMIT_MS;
  const ending = graceMs === 0 ? undefined : await within(systemClock, graceMs, child.exited);
  if (ending !== undefined && isDead(ending)) return { life: toLife(child, ending) };
  if ("error" in outcome) throw outcome.error;
  // Commits that were reported together with the result are still on their way through another pipe.
  await new Promise((resolve) => void setImmediate(resolve));
  const { commits } = child;
  return { life: { ...toLife(child, await child.kill()), commits }, result: outcome };
}

function toLife(child: Program, ending: Ending): Life {
  return { facts: [...child.facts], commits: child.commits, ending, output: child.output };
}

function gone(child: Program, ending: Ending): PerdureError {
  return new PerdureError("agent_gone", `The program failed by itself (${endingText(ending)}).\n${child.output}`);
}
