import { percentile } from "../foundation/measure.ts";
import type { Figure, Section } from "../foundation/section.ts";
import { inFreshProcess, withCompiled } from "./child.ts";
import { measureCode } from "./code.ts";
import { measureFiles } from "./files.ts";
import type { FreshTask } from "./fresh.ts";
import { measureShell } from "./shell.ts";

const COLD_ROUNDS = 5;
const KIB = 1024;
const MIB = 1024 ** 2;

const parts: readonly (() => Promise<Figure[]>)[] = [measureFresh, measureCode, measureShell, measureFiles];

/** What code, the shell and files cost beside the engines and the database underneath. */
export const tools: Section = {
  title: "Tools: code, shell, files",
  notes: [
    "Each floor is measured in the same run and in turns with ours; medians. Cost is how many times more it takes than the floor.",
    "The floors run on the main thread or keep a thread busy, with nothing between them and the host. Ours are in another thread, with limits, and what they ask for is checked.",
    "First runs are those of a process of their own with the compiled package, and include loading and starting all that is needed. The code makes a list of 50 rows, filters and sorts it.",
    "Memory of a lane or a shell is what the process grows by for one more of them. Growth is after 100 runs (60 commands) to warm up, after garbage collection; that of the process goes up and down by some MiB.",
  ],
  async run(say) {
    const figures: Figure[] = [];
    for (const measure of parts) {
      const some = await measure();
      figures.push(...some);
      for (const { what, ours, unit, bare } of some)
        say(`${what}: ${ours.toFixed(2)} ${unit}, floor ${bare?.toFixed(2)}`);
    }
    return figures;
  },
};

/** What only fresh processes can tell: first runs, and memory. */
function measureFresh(): Promise<Figure[]> {
  return withCompiled(async (index) => {
    const cold = async (ours: FreshTask, bare: FreshTask) => {
      const all = { ours: [] as number[], bare: [] as number[] };
      for (let round = 0; round < COLD_ROUNDS; round++) {
        all.bare.push(...(await inFreshProcess(bare, index)));
        all.ours.push(...(await inFreshProcess(ours, index)));
      }
      return { ours: percentile(all.ours, 50), bare: percentile(all.bare, 50) };
    };
    const code = await cold("sandbox", "engine");
    const shell = await cold("shell", "bareShell");
    const [lane = 0, idleShell = 0] = await inFreshProcess("memory", index);
    const [heap = 0, rss = 0, shellHeap = 0, shellRss = 0] = await inFreshProcess("growth", index);
    return [
      {
        what: "`sandbox.run`, first of a process",
        unit: "ms",
        ...code,
        against: "quickjs-wasi: load, compile, evaluate",
      },
      { what: "first command of a process", unit: "ms", ...shell, against: "just-bash: load, run" },
      { what: "memory of a lane that rests", unit: "MiB", ours: lane / MIB },
      { what: "memory of a shell that rests", unit: "MiB", ours: idleShell / MIB },
      { what: "growth of the heap per run, over 200 runs", unit: "KiB", ours: heap / KIB },
      { what: "growth of the process over 200 runs", unit: "MiB", ours: rss / MIB },
      { what: "growth of the heap per command, over 60 commands", unit: "KiB", ours: shellHeap / KIB },
      { what: "growth of the process over 60 commands", unit: "MiB", ours: shellRss / MIB },
    ];
  });
}
