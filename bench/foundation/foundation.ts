import { measureCommits } from "./commits.ts";
import { measureCreate } from "./create.ts";
import { measureIdle } from "./idle.ts";
import { measureRpc } from "./rpc.ts";
import type { Section } from "./section.ts";
import { measureWake } from "./wake.ts";

/** What an agent costs beside the bare library underneath it. */
export const foundation: Section = {
  title: "Foundation",
  notes: [
    "Each floor is measured in the same run and in turns with ours. Cost is how many times more it takes than the floor; below 1x it takes less.",
    "Durable commits beat blocking ones because all callers who wait share one sync, off the event loop.",
    "Clients are in a process of their own. Memory is heap and what hangs on it, after garbage collection; SQLite's page caches show only in the process.",
    "Loopback and one disk; read rates as a lower bound, since other work may have run on the machine.",
  ],
  async run(say) {
    const figures = [];
    for (const measure of [measureCommits, measureRpc, measureWake, measureCreate, measureIdle]) {
      const some = await measure();
      figures.push(...some);
      for (const { what, ours, unit } of some) say(`${what}: ${Math.round(ours * 100) / 100} ${unit}`);
    }
    return figures;
  },
};
