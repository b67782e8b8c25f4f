// A host that does all that SQLite wants a temporary file for, and says how each went.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, Think } from "perdure";
import { createHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";

const [dir = ""] = process.argv.slice(2);
const LONG = "many words ".repeat(40);
const ROWS = 20_000;

class Sorter extends Agent {
  /** Sorts more than the cache of SQLite holds. */
  sort(): number {
    this.sql`CREATE TABLE IF NOT EXISTS big (id INTEGER PRIMARY KEY, at INTEGER UNIQUE, text TEXT)`;
    this.transaction(() => {
      for (let i = 0; i < ROWS; i++)
        this.sql`INSERT INTO big (at, text) VALUES (${i}, ${`${(i * 7919) % ROWS} ${LONG}`})`;
    });
    const [row] = this.sql<{
      n: number;
    }>`SELECT count(*) AS n FROM (SELECT text FROM big ORDER BY text DESC LIMIT 100000)`;
    return row?.n ?? 0;
  }
  /** A statement that can fail in its middle keeps a journal of its own. */
  shift(): number {
    this.transaction(() => {
      this.sql`UPDATE big SET at = -at - 1`;
      this.sql`CREATE INDEX big_text ON big (text)`;
    });
    return this.sql<{ n: number }>`SELECT count(*) AS n FROM big WHERE at < 0`[0]?.n ?? 0;
  }
}

class Talker extends Think {
  override getModel() {
    return scriptedModel([`Hello. ${LONG}`]);
  }
  async talk(): Promise<string> {
    await this.saveMessages([{ id: "u1", role: "user", parts: [{ type: "text", text: `find me ${LONG}` }] }]);
    return this.messages.map(({ role }) => role).join(" ");
  }
  async find(): Promise<number> {
    return (await this.search("hello")).length;
  }
  async clean(): Promise<string> {
    const { kept } = await this.erase({ session: "main" });
    return kept.some(({ what }) => what.includes("pages")) ? "pages kept" : "nothing kept";
  }
}

const host = createHost({ agents: { Sorter, Talker }, dir });
const sorter = host.getAgentByName(Sorter, "a");
const talker = host.getAgentByName(Talker, "a");
const say = (line: string) => appendFileSync(join(dir, "said"), `${line}\n`);
const steps: [string, () => Promise<unknown>][] = [
  ["sort", () => sorter.sort()],
  ["shift", () => sorter.shift()],
  ["talk", () => talker.talk()],
  ["find", () => talker.find()],
  ["clean", () => talker.clean()],
];
for (const [name, step] of steps) {
  await step().then(
    (value) => say(`${name}: ${String(value)}`),
    (error: unknown) => say(`${name} failed: ${String(error)}`),
  );
}
await host.stop();
