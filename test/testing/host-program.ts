// A host with one agent that stores items and tells a client of each, for the crash matrix of the real host.
import { createHost } from "perdure/node";
import { crashPoint, onCommand, programDir, report } from "perdure/testing";
import { hostable, hosted } from "../../src/port.ts";
import type { AgentHost, HostedAgent } from "../../src/port.ts";

const WANTED = 3;

class Store {
  static readonly [hostable] = true;
  readonly [hosted]: HostedAgent;
  readonly #host: AgentHost;

  constructor(host: AgentHost) {
    this.#host = host;
    this[hosted] = {
      start: async () => {
        host.sql("CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, done INTEGER NOT NULL DEFAULT 0)");
        this.finish();
      },
      invoke: async (_, [id]) => this.add(Number(id)),
      request: async () => new Response(),
      connect: async () => undefined,
      message: async () => undefined,
      close: async () => undefined,
      alarm: async () => undefined,
      admitChild: async () => ({}),
      drain: () => undefined,
      halt: () => undefined,
    };
  }

  add(id: number): void {
    this.#host.sql("INSERT OR IGNORE INTO item (id) VALUES (?)", id);
    report({ type: "accepted", id });
    this.finish();
  }

  finish(): void {
    const rows = () => this.#host.sql<{ id: number; done: number }>("SELECT id, done FROM item ORDER BY id");
    for (const { id, done } of rows()) {
      if (done === 0) this.#host.tx(() => this.#host.sql("UPDATE item SET done = 1 WHERE id = ?", id), "commit");
    }
    const items = rows();
    if (items.length === WANTED) report({ type: "finished", items });
  }
}

const host = createHost({ agents: { Store }, dir: programDir(), onCommit: crashPoint() });
onCommand((command) => void host.getAgentByName(Store, "one").add(Number(command)));
report({ type: "ready" });
