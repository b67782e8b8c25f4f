import { cpus, loadavg } from "node:os";
import type { Figure, Section } from "../foundation/section.ts";
import { bestInTurns } from "./best.ts";
import { inFreshProcess, withCompiled } from "./child.ts";
import { measureCode } from "./code.ts";
import { measureFiles } from "./files.ts";
import type { FreshTask } from "./fresh.ts";
import { measureShell } from "./shell.ts";

const COLD_ROUNDS = 7;
const KIB = 1024;
const MIB = 1024 ** 2;

const parts: readonly (() => Promise<Figure[]>)[] = [measureFresh, measureCode, measureShell, measureFiles];

const reading = [
  "Each floor is measured in the same run and in turns with ours, and of both the best round counts: other work on the machine only makes rounds worse. Cost is how many times more it takes than the floor.",
  "The floors run on the main thread or keep a thread busy, with nothing between them and the host. Ours are in another thread, with limits, and what they ask for is checked.",
  "First runs are those of a process of their own with the compiled package, and include loading and starting all that is needed. The code makes a list of 50 rows, filters and sorts it.",
  "Memory of a lane or a shell is what the process grows by for one more of them. Growth is that of one lane (one shell) used again and again, after garbage collection of the host. At first the lane's own heap grows to what its collector lets it have; then it stays, and goes up and down by some MiB.",
  "The table is one of five runs on a shared machine, at loads of 4 to 14: of the two quietest the later. The cost of a warm run moved most, from 2.3x to 12x (`execute`); of others: first run 6x to 8x, calls awaited 7x to 16x of the engine and 2x to 4x of a message, new files 1.9x to 4.2x, `grep` 7x to 9x, `grep -r` 36x to 49x, points 2.6x to 4.9x, `restore` of all 2.5x to 6x.",
];

/** What code, the shell and files cost beside the engines and the database underneath. */
export const tools: Section = {
  title: "Tools: code, shell, files",
  // Asked for after it was measured.
  get notes() {
    return [
      ...reading,
      `Load of the machine (average of 1 minute, ${cpus().length} cores): ${loadavg()[0]?.toFixed(1)}.`,
    ];
  },
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
    const cold = (ours: FreshTask, bare: FreshTask) => {
      const first = async (task: FreshTask) => (await inFreshProcess(task, index))[0] ?? 0;
      return bestInTurns(
        "lowest",
        COLD_ROUNDS,
        () => first(ours),
        () => first(bare),
      );
    };
    const code = await cold("sandbox", "engine");
    const shell = await cold("shell", "bareShell");
    const [lane = 0, idleShell = 0] = await inFreshProcess("memory", index);
    const [heap = 0, settling = 0, rss = 0, shellHeap = 0, shellRss = 0] = await inFreshProcess("growth", index);
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
      { what: "growth of the heap per run, runs 1,500 to 1,700", unit: "KiB", ours: heap / KIB },
      { what: "growth of the process, runs 100 to 1,500", unit: "MiB", ours: settling / MIB },
      { what: "growth of the process, runs 1,500 to 1,700", unit: "MiB", ours: rss / MIB },
      { what: "growth of the heap per command, over 60 commands", unit: "KiB", ours: shellHeap / KIB },
      { what: "growth of the process over 60 commands", unit: "MiB", ours: shellRss / MIB },
    ];
  });
}
