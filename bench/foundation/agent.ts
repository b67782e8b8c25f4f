import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Agent, type AgentEnv, callable } from "perdure";
import type { AgentHost } from "perdure";

/** The agent that is measured: a state, a table, a method that does nothing. */
export class Bench extends Agent<AgentEnv, { n: number }> {
  static {
    callable(this, "ping");
  }
  override initialState = { n: 0 };
  readonly #host: AgentHost;

  constructor(host: AgentHost) {
    super(host);
    this.#host = host;
  }

  ping(value: number): number {
    return value;
  }
  read(): number {
    return this.state.n;
  }
  set(n: number): void {
    this.setState({ n });
  }
  async plan(count: number): Promise<void> {
    this.transaction(() => {
      for (let i = 0; i < count; i++) void this.schedule(86_400 + i, "set", i);
    });
    await this.#host.durable();
  }
  prepare(): void {
    this.sql`CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, text TEXT)`;
  }
  /** So many commits, one after the other, none waited for. */
  commits(count: number, text: string): void {
    for (let i = 0; i < count; i++) this.sql`INSERT INTO row (text) VALUES (${text})`;
  }
  insert(text: string): void {
    this.sql`INSERT INTO row (text) VALUES (${text})`;
  }
}

/** Runs `work` with a folder of its own. */
export async function withFolder<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), "perdure-bench-"));
  try {
    return await work(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
