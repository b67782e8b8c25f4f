import { readdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createHost } from "perdure/node";
import { Bench, withFolder } from "./agent.ts";
import { percentile } from "./measure.ts";
import type { Figure } from "./section.ts";

const AGENTS = 500;

/** From a call to its answer when the agent is only a file, beside opening such a file and reading the same row. */
export function measureWake(): Promise<Figure[]> {
  return withFolder(async (dir) => {
    const first = createHost({ agents: { Bench }, dir });
    for (let i = 0; i < AGENTS; i++) await first.getAgentByName(Bench, `w${i}`).set(i);
    await first.stop();

    // In turns over the same files: half of them each, so that none is warm for the second.
    const files = readdirSync(join(dir, "agents", "Bench")).filter((name) => name.endsWith(".db"));
    const bare: number[] = [];
    for (const name of files.slice(0, AGENTS / 2)) bare.push(timeRaw(join(dir, "agents", "Bench", name)));
    const second = createHost({ agents: { Bench }, dir });
    const ours: number[] = [];
    for (const name of files.slice(AGENTS / 2)) {
      const agent = second.getAgentByName(Bench, name.split(".")[0] ?? "");
      const begun = performance.now();
      await agent.read();
      ours.push(performance.now() - begun);
    }
    await second.stop();
    const against = "better-sqlite3: open, read one row";
    return [50, 99].map((percent) => ({
      what: `wake, from call to answer, p${percent}`,
      unit: "ms",
      ours: percentile(ours, percent),
      bare: percentile(bare, percent),
      against,
    }));
  });
}

function timeRaw(file: string): number {
  const begun = performance.now();
  const db = new Database(file);
  db.pragma("locking_mode = EXCLUSIVE");
  db.prepare("SELECT value FROM perdure_state").get();
  const took = performance.now() - begun;
  db.close();
  return took;
}
