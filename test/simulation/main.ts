// npm run simulate: many runs until one fails, or one run with all that happens in it.
import { parseArgs } from "node:util";
import { seedsTold } from "./report.ts";
import { play } from "./run.ts";
import { shrink } from "./shrink.ts";

const DEFAULT_RUNS = 300;
const TOLD_EVERY = 500;

const { values } = parseArgs({
  options: {
    /** How many runs; with `first`, from which seed on. */
    runs: { type: "string" },
    first: { type: "string" },
    /** One run, with its trace. */
    seed: { type: "string" },
    /** Only so many actions of it. */
    actions: { type: "string" },
    /** Does not stop at a failure. */
    all: { type: "boolean" },
  },
});

if (values.seed !== undefined) await replay(Number(values.seed), values.actions);
else await simulate(Number(values.first ?? 1), Number(values.runs ?? DEFAULT_RUNS), values.all === true);
// What dead processes have left hanging keeps nothing from ending.
process.exit();

async function replay(seed: number, actions: string | undefined): Promise<void> {
  const options = actions === undefined ? {} : { actions: Number(actions) };
  const { broken } = await play(seed, { ...options, echo: (line) => console.log(line) });
  console.log(broken.length === 0 ? "All promises held." : `Broken:\n- ${broken.join("\n- ")}`);
  process.exitCode = broken.length === 0 ? 0 : 1;
}

async function simulate(first: number, runs: number, all: boolean): Promise<void> {
  const begun = performance.now();
  let failures = 0;
  for (let seed = first; seed < first + runs; seed++) {
    const verdict = await play(seed);
    if (verdict.broken.length > 0) {
      failures++;
      process.exitCode = 1;
      if (all) console.log(`seed ${seed}: ${verdict.broken[0]}`);
      else {
        console.log(seedsTold(verdict, await shrink(seed)));
        break;
      }
    }
    const done = seed - first + 1;
    if (done % TOLD_EVERY === 0 || done === runs) {
      const seconds = (performance.now() - begun) / 1000;
      console.log(`${done} of ${runs} runs, ${failures} failed, ${(done / seconds).toFixed(1)} a second`);
    }
  }
}
