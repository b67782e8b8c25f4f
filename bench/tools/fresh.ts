// Runs in a process of its own: what only a fresh one can tell. Prints figures as JSON.
import type { ParkingSandbox } from "perdure/sandbox";
import type * as Perdure from "perdure/tools";
import { CODE, compileEngine, evaluateBare } from "./guest.ts";

const LANES = 8;
const WARM_UP = 100;
const SETTLED = 1_500;
const RUNS = 200;
const SHELL_RUNS = 60;

const COMMAND = "echo hello | tr a-z A-Z";

/** What can be asked for. */
export type FreshTask = keyof typeof tasks;

const tasks = {
  /** The first run of all, in ms. */
  async sandbox(perdure: typeof Perdure): Promise<number[]> {
    const sandbox = perdure.createQuickJsSandbox();
    return [await timed(() => sandbox.run({ language: "ts", code: CODE }))];
  },
  async engine(): Promise<number[]> {
    return [await timed(async () => evaluateBare(await compileEngine()))];
  },
  async shell(perdure: typeof Perdure): Promise<number[]> {
    const sandbox = perdure.createBashSandbox({ python: false });
    return [await timed(() => sandbox.run({ language: "bash", code: COMMAND }))];
  },
  async bareShell(): Promise<number[]> {
    return [
      await timed(async () => {
        const { Bash, InMemoryFs } = await import("just-bash");
        await new Bash({ fs: new InMemoryFs({}), executionLimitProfile: "hardened" }).exec(COMMAND);
      }),
    ];
  },
  /** Bytes of a lane that rests, and of a shell that rests. */
  async memory(perdure: typeof Perdure): Promise<number[]> {
    const sandbox = perdure.createQuickJsSandbox({ lanes: { warm: LANES, max: LANES } });
    await runTogether(sandbox, 1);
    const one = await resident();
    await runTogether(sandbox, LANES);
    const all = await resident();
    await sandbox.dispose();
    const shells = perdure.createBashSandbox({ python: false, workers: 4 });
    const command = { language: "bash", code: COMMAND } as const;
    await shells.run(command);
    const oneShell = await resident();
    await Promise.all(Array.from({ length: 4 }, () => shells.run(command)));
    const allShells = await resident();
    await shells.dispose();
    return [(all - one) / (LANES - 1), (allShells - oneShell) / 3];
  },
  /** By how many bytes heap and process grew over the runs, of code and of the shell. */
  async growth(perdure: typeof Perdure): Promise<number[]> {
    const sandbox = perdure.createQuickJsSandbox();
    const can = { tools: { math: { add: () => 1 } } };
    const code = `await math.add(); ${CODE}`;
    const some = async (count: number) => {
      for (let i = 0; i < count; i++) await sandbox.run({ language: "ts", code, can });
    };
    await some(WARM_UP);
    const early = await resident();
    await some(SETTLED - WARM_UP);
    const before = { rss: await resident(), heap: heap() };
    await some(RUNS);
    const after = { rss: await resident(), heap: heap() };
    await sandbox.dispose();
    const shells = perdure.createBashSandbox({ python: false });
    const scripts = async () => {
      for (let i = 0; i < SHELL_RUNS; i++) await shells.run({ language: "bash", code: COMMAND });
    };
    await scripts();
    const shellBefore = { rss: await resident(), heap: heap() };
    await scripts();
    const shellAfter = { rss: await resident(), heap: heap() };
    await shells.dispose();
    return [
      (after.heap - before.heap) / RUNS,
      before.rss - early,
      after.rss - before.rss,
      (shellAfter.heap - shellBefore.heap) / SHELL_RUNS,
      shellAfter.rss - shellBefore.rss,
    ];
  },
};

/** So many runs that all wait for each other: as many lanes. */
async function runTogether(sandbox: ParkingSandbox, count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<null>();
  let here = 0;
  const meet = async (): Promise<null> => {
    if (++here === count) resolve(null);
    return promise;
  };
  const can = { tools: { all: { meet } } };
  const code = `await all.meet(); ${CODE}`;
  await Promise.all(Array.from({ length: count }, () => sandbox.run({ language: "js", code, can })));
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

function heap(): number {
  globalThis.gc?.();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The process as the system sees it, when it has come to rest. */
async function resident(): Promise<number> {
  for (let i = 0; i < 4; i++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return process.memoryUsage().rss;
}

const [, , task = "", index = ""] = process.argv;
const measured = await tasks[task as FreshTask]((await import(index)) as typeof Perdure);
process.stdout.write(JSON.stringify(measured));
process.exit(0);
