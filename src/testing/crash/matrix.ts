import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorText, PerdureError } from "../../base/error.ts";
import { runLives, type CrashRun, type CrashScenario, type Death, type Life } from "./lives.ts";
import type { Fact } from "./protocol.ts";

/** What one point of the matrix came to. */
export interface CrashOutcome<Result> {
  /** The commit after which the first life was killed. */
  readonly n: number;
  /** The lives that were killed. `facts` of all of them, in order: what clients had been told. */
  readonly before: { readonly facts: readonly Fact[]; readonly lives: readonly Life[] };
  /** The life that came to the end, without help. */
  readonly after: { readonly facts: readonly Fact[]; readonly commits: number; readonly result: Result };
  /** The run that nobody disturbed. */
  readonly reference: CrashReference<Result>;
}

/** What the program does when nobody disturbs it. */
export interface CrashReference<Result> {
  readonly facts: readonly Fact[];
  readonly commits: number;
  readonly result: Result;
}

/** A scenario, what must hold after each crash, and how much to run. */
export interface CrashMatrixOptions<Result> extends CrashScenario<Result> {
  /** Throws (or rejects) if a promise was broken. Called once for every point. */
  check(outcome: CrashOutcome<Result>): void | Promise<void>;
  /** The lives after the first are killed too, after these commits of theirs: `[1, 2]` makes three deaths in a row. */
  readonly again?: readonly number[];
  /** Which commits to kill after, given their number. Default: all, or every nth with `PERDURE_CRASH_STEP=n` for quick runs. */
  points?(commits: number): readonly number[];
  /** How many runs may never reach their commit, where timing changes the number of commits; 0 by default. */
  readonly slack?: number;
  /** How many points run at a time; 2 by default. */
  readonly concurrency?: number;
  /** Where the folders of the runs are made; the system's temporary folder by default. */
  readonly dir?: string;
}

/** What a matrix that passed has covered. */
export interface CrashMatrixReport<Result> {
  readonly reference: CrashReference<Result>;
  /** The commits after which a life was killed. */
  readonly killed: readonly number[];
  /** Those that a run never came to, within `slack`. */
  readonly unreached: readonly number[];
}

/** A point of the matrix at which something was broken; the reason is the `cause`. Its folder is kept. */
export class CrashFailure extends Error {
  override readonly name = "CrashFailure";
  readonly n: number;
  readonly dir: string;

  constructor(n: number, dir: string, message: string, cause: unknown) {
    super(message, { cause });
    this.n = n;
    this.dir = dir;
  }
}

const DEFAULT_CONCURRENCY = 2;

/**
 * Runs the program once undisturbed, to learn its commits and its result; then once for every commit, each time in
 * a fresh folder: kill right after that commit, start again in the same folder, let it finish by itself, `check`.
 * @throws CrashFailure for the first broken point; PerdureError `bad_config` if no commit was counted; what the
 * undisturbed run throws. No process is left behind in any case.
 */
export async function crashMatrix<Result>(options: CrashMatrixOptions<Result>): Promise<CrashMatrixReport<Result>> {
  const { concurrency = DEFAULT_CONCURRENCY, slack = 0, again = [] } = options;
  const root = mkdtempSync(join(options.dir ?? tmpdir(), "perdure-crash-"));
  const folder = (name: string): string => {
    const path = join(root, name);
    mkdirSync(path);
    return path;
  };
  const reference = toReference(await runLives(options, folder("reference"), []));
  if (reference.commits === 0) {
    throw new PerdureError("bad_config", "The program made no commit: hand crashPoint() to the host as onCommit.");
  }
  const todo = [...(options.points?.(reference.commits) ?? everyPoint(reference.commits))];
  const killed: number[] = [];
  const unreached: number[] = [];
  let failure: CrashFailure | undefined;

  async function point(n: number): Promise<void> {
    const dir = folder(`at-${n}`);
    const died: Life[] = [];
    let run: CrashRun<Result> | undefined;
    try {
      const deaths = [n, ...again].map((commit): Death => ({ commit }));
      run = await runLives(options, dir, deaths, died);
      (died.length === 0 ? unreached : killed).push(n);
      if (unreached.length > slack) throw neverReached(n, run.last.commits);
      await options.check({
        n,
        before: { facts: died.flatMap((life) => life.facts), lives: died },
        after: { facts: run.last.facts, commits: run.last.commits, result: run.result },
        reference,
      });
      rmSync(dir, { recursive: true, force: true });
    } catch (error) {
      failure ??= new CrashFailure(n, dir, failureText(n, dir, error, died, run, reference), error);
    }
  }
  async function worker(): Promise<void> {
    for (let n = todo.shift(); n !== undefined && failure === undefined; n = todo.shift()) await point(n);
  }
  await Promise.all(Array.from({ length: Math.max(1, concurrency) }, worker));
  if (failure !== undefined) throw failure;
  rmSync(root, { recursive: true, force: true });
  return { reference, killed: killed.sort(byNumber), unreached: unreached.sort(byNumber) };
}

/**
 * One run with deaths of the test's own choice: `{ commit: 3 }`, or `{ when: (child) => child.waitFor("asked") }`
 * for a moment that the driver picks. As many lives die as there are deaths, unless one finishes before.
 * @throws what {@link CrashScenario.finish} and its like throw
 */
export async function crashRun<Result>(
  options: CrashScenario<Result> & { readonly deaths: readonly Death[]; readonly dir?: string },
): Promise<CrashRun<Result>> {
  const dir = mkdtempSync(join(options.dir ?? tmpdir(), "perdure-crash-"));
  const run = await runLives(options, dir, options.deaths);
  rmSync(dir, { recursive: true, force: true });
  return run;
}

function everyPoint(commits: number): number[] {
  const step = Math.max(1, Number(process.env.PERDURE_CRASH_STEP ?? 1) || 1);
  return Array.from({ length: Math.ceil(commits / step) }, (_, index) => index * step + 1);
}

function byNumber(a: number, b: number): number {
  return a - b;
}

function toReference<Result>({ last, result }: CrashRun<Result>): CrashReference<Result> {
  return { facts: last.facts, commits: last.commits, result };
}

function neverReached(n: number, commits: number): PerdureError {
  const advice = "Make the program repeatable, or allow some such runs with `slack`.";
  return new PerdureError("bad_state", `This run finished after ${commits} commits and never reached ${n}. ${advice}`);
}

function failureText<Result>(
  n: number,
  dir: string,
  error: unknown,
  died: readonly Life[],
  run: CrashRun<Result> | undefined,
  reference: CrashReference<Result>,
): string {
  const lines = [`Killed after commit ${n} of ${reference.commits}: ${errorText(error)}`];
  died.forEach((life, index) =>
    lines.push(`  life ${index + 1} (${life.commits} commits) reported ${list(life.facts)}`),
  );
  if (run !== undefined) {
    lines.push(`  the last life (${run.last.commits} commits) reported ${list(run.last.facts)}`);
    lines.push(`  it resulted in ${JSON.stringify(run.result)}`);
    if (run.last.output !== "") lines.push(`  it printed ${run.last.output.trimEnd()}`);
  }
  lines.push(`  undisturbed: ${JSON.stringify(reference.result)}, reported ${list(reference.facts)}`);
  lines.push(`  folder: ${dir}`);
  return lines.join("\n");
}

function list(facts: readonly Fact[]): string {
  return facts.length === 0 ? "nothing" : facts.map((fact) => JSON.stringify(fact)).join(" ");
}
