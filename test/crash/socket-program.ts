// An agent for clients on real sockets, for the crash matrix.
import type { AgentOptions, StreamingResponse } from "perdure";
import type { QueueRun } from "perdure/work";
import { callable } from "../../src/agent/callable.ts";
import { serve } from "../../src/host/node/serve.ts";
import { report } from "../../src/testing/crash/child.ts";
import { obey, QUEUED, reportEvents, Watched, watchedOptions } from "./watched-host.ts";

interface Count {
  readonly n: number;
}

class Board extends Watched<Count> {
  static override options: AgentOptions = { allowClientState: true };
  static {
    callable(this, "set");
    callable(this, "write");
    callable(this, "later");
    callable(this, "several", { streaming: true });
    callable(this, "read");
  }

  override initialState: Count = { n: 0 };

  set(n: number): number {
    this.setState({ n });
    return n;
  }

  write(text: string): string {
    this.sql`CREATE TABLE IF NOT EXISTS line (text TEXT NOT NULL)`;
    this.sql`INSERT INTO line (text) VALUES (${text})`;
    return text;
  }

  later(text: string): Promise<string> {
    return this.queue("writeLate", { text, ...QUEUED });
  }

  writeLate({ text }: { text: string }, { occurrence }: QueueRun): void {
    report({ type: "ran", key: text, occurrence });
    this.write(text);
  }

  /** Each chunk stands on a row that was written right before it. */
  async several(response: StreamingResponse, texts: readonly string[]): Promise<void> {
    for (const text of texts) {
      response.send(this.write(text));
      await new Promise((resolve) => setImmediate(resolve));
    }
    response.end(texts.length);
  }

  read() {
    const hasLines = this.sql`SELECT 1 FROM sqlite_master WHERE name = 'line'`.length > 0;
    const rows = hasLines ? this.sql<{ text: string }>`SELECT text FROM line ORDER BY rowid` : [];
    return { n: this.state.n, lines: rows.map(({ text }) => text) };
  }
}

const agents = { Board };
reportEvents();
const host = await serve({ agents, ...watchedOptions(), port: 0, signals: false });
obey(host, agents);
report({ type: "listening", port: host.port });
