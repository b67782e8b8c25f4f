import { join } from "node:path";
import Database from "better-sqlite3";
import { createHost } from "perdure/node";
import { Bench, withFolder } from "./agent.ts";
import { inTurns, rate } from "./measure.ts";
import type { Figure } from "./section.ts";

const ROUNDS = 5;
const COMMITS = 10_000;
const WAITED = 2_000;
const AT_ONCE = 64;
const TEXT = "x".repeat(80);

/** Commits through an agent beside the same insert on better-sqlite3. */
export function measureCommits(): Promise<Figure[]> {
  return withFolder(async (dir) => {
    const host = createHost({ agents: { Bench }, dir: join(dir, "host") });
    const agent = host.getAgentByName(Bench, "commits");
    await agent.prepare();
    const normal = openRaw(join(dir, "normal.db"), "NORMAL");
    const full = openRaw(join(dir, "full.db"), "FULL");

    const plain = await inTurns(
      ROUNDS,
      () => rate(COMMITS, () => agent.commits(COMMITS, TEXT)),
      () => rate(COMMITS, () => repeat(COMMITS, () => normal.insert.run(TEXT))),
    );
    const durable = await inTurns(
      ROUNDS,
      () => rate(WAITED, () => calls(WAITED, () => agent.insert(TEXT))),
      () => rate(WAITED, () => repeat(WAITED, () => full.insert.run(TEXT))),
    );
    await host.stop();
    normal.db.close();
    full.db.close();
    return [
      {
        what: "commits of one agent, not waited for",
        unit: "commits/s",
        ...plain,
        against: "better-sqlite3, synchronous=NORMAL",
      },
      {
        what: `commits of one agent, each waited for until it survives power loss, ${AT_ONCE} callers`,
        unit: "commits/s",
        ...durable,
        against: "better-sqlite3, synchronous=FULL, blocking",
      },
    ];
  });
}

function openRaw(file: string, synchronous: "NORMAL" | "FULL") {
  const db = new Database(file);
  db.pragma("journal_mode = WAL");
  db.pragma("locking_mode = EXCLUSIVE");
  db.pragma(`synchronous = ${synchronous}`);
  db.exec("CREATE TABLE row (id INTEGER PRIMARY KEY, text TEXT)");
  return { db, insert: db.prepare<[string]>("INSERT INTO row (text) VALUES (?)") };
}

function repeat(count: number, work: () => void): void {
  for (let i = 0; i < count; i++) work();
}

async function calls(count: number, call: () => Promise<void>): Promise<void> {
  let left = count;
  const caller = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, caller));
}
