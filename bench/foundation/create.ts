import { mkdirSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import { createHost } from "perdure/node";
import { Bench, withFolder } from "./agent.ts";
import { inTurns, rate } from "./measure.ts";
import type { Figure } from "./section.ts";

const ROUNDS = 3;
const AGENTS = 100;

/** The first write of a new agent, until it survives power loss, beside a new SQLite file that does the same. */
export function measureCreate(): Promise<Figure[]> {
  return withFolder(async (dir) => {
    const host = createHost({ agents: { Bench }, dir: join(dir, "host") });
    const raw = join(dir, "raw");
    mkdirSync(raw);
    let made = 0;
    const ours = () =>
      rate(AGENTS, async () => {
        for (let i = 0; i < AGENTS; i++) await host.getAgentByName(Bench, `new-${++made}`).set(i);
      });
    const bare = () =>
      rate(AGENTS, () => {
        for (let i = 0; i < AGENTS; i++) createRaw(join(raw, `${++made}.db`));
      });
    const one = await inTurns(ROUNDS, ours, bare);
    const together = await rate(AGENTS, () =>
      Promise.all(Array.from({ length: AGENTS }, () => host.getAgentByName(Bench, `new-${++made}`).set(1))),
    );
    await host.stop();
    const against = "better-sqlite3: new file, one table, one row, synchronous=FULL";
    return [
      { what: "new agents, one after the other", unit: "agents/s", ...one, against },
      { what: "new agents, all at once", unit: "agents/s", ours: together, bare: one.bare, against },
    ];
  });
}

function createRaw(file: string): void {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("synchronous = FULL");
  db.exec("CREATE TABLE state (id INTEGER PRIMARY KEY, value TEXT)");
  db.prepare("INSERT INTO state (value) VALUES (?)").run('{"n":1}');
  db.close();
}
