import { Agent, callable } from "perdure";

/** A sub-agent of Support, with a database of its own: /agents/support/main/sub/handbook/shop. */
export class Handbook extends Agent {
  static {
    callable(this, "lookUp");
    callable(this, "write");
  }

  override onStart() {
    this.sql`CREATE TABLE IF NOT EXISTS entry (word TEXT PRIMARY KEY, text TEXT NOT NULL)`;
    this.sql`INSERT OR IGNORE INTO entry VALUES ('hours', 'We are open from nine to five.')`;
    this.sql`INSERT OR IGNORE INTO entry VALUES ('returns', 'You can bring anything back within a month.')`;
  }

  lookUp(word: string): string {
    const [entry] = this.sql<{ text: string }>`SELECT text FROM entry WHERE word = ${word}`;
    return entry?.text ?? `nothing about "${word}".`;
  }

  write(word: string, text: string): void {
    this.sql`INSERT OR REPLACE INTO entry VALUES (${word}, ${text})`;
  }
}
