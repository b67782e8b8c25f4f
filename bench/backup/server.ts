// The host that is backed up, in a process of its own: many agents, each with some rows.
import { Agent, callable } from "perdure";
import { serve } from "perdure/node";

class Box extends Agent {
  static {
    callable(this, "note");
  }

  note(text: string): number {
    this.sql`CREATE TABLE IF NOT EXISTS notes (text TEXT)`;
    this.sql`INSERT INTO notes VALUES (${text})`;
    return 1;
  }
}

const [dir = "", count = "0"] = process.argv.slice(2);
const host = await serve({ agents: { Box }, dir, port: 0 });
const AT_ONCE = 50;
for (let at = 0; at < Number(count); at += AT_ONCE) {
  const some = Array.from({ length: Math.min(AT_ONCE, Number(count) - at) }, (_, i) => `b${at + i}`);
  await Promise.all(some.map((name) => host.getAgentByName(Box, name).note("x".repeat(10_000))));
}
process.send?.({ url: host.url });
