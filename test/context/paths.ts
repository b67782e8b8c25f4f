// Conversations in a real database, and how long things are when a token is four characters.
import type { UIMessage } from "ai";
import type { CompactionJob } from "../../src/context/compaction-job.ts";
import type { Measure } from "../../src/context/measure.ts";
import { ContextReader, type PathNode } from "../../src/context/view.ts";
import type { AgentHost } from "../../src/port.ts";
import { insertMessage, messagesUp, updateMessage } from "../../src/store/message.ts";

export const text = (words: string): UIMessage["parts"][number] => ({ type: "text", text: words });
export const step: UIMessage["parts"][number] = { type: "step-start" };

/** A call of a tool that has its output. */
export function called(tool: string, id: string, output: unknown, input: unknown = {}): UIMessage["parts"][number] {
  return {
    type: `tool-${tool}`,
    toolCallId: id,
    state: "output-available",
    input,
    output,
  } as UIMessage["parts"][number];
}

export const user = (id: string, words: string): UIMessage => ({ id, role: "user", parts: [text(words)] });
export const answer = (id: string, ...parts: UIMessage["parts"]): UIMessage => ({ id, role: "assistant", parts });

/** A path that grows at its end. */
export class TestPath {
  readonly #db: Pick<AgentHost, "sql" | "tx" | "emit">;
  readonly reader: ContextReader;
  leaf: number | null = null;
  readonly #known = new Map<number, { body: string; node: PathNode }>();

  constructor(db: Pick<AgentHost, "sql" | "tx" | "emit">) {
    this.#db = db;
    this.reader = new ContextReader(db);
  }

  add(...messages: UIMessage[]): this {
    for (const message of messages) {
      const row = {
        id: message.id,
        session: "main",
        parent: this.leaf,
        role: message.role,
        body: JSON.stringify(message),
      };
      this.leaf = insertMessage(this.#db, { ...row, createdAt: 0 });
    }
    return this;
  }

  /** The last message says more. */
  replace(message: UIMessage): void {
    updateMessage(this.#db, this.leaf ?? 0, message.role, JSON.stringify(message));
  }

  /** How many messages the last walk read. */
  read = 0;

  *up(): Generator<PathNode> {
    this.read = 0;
    for (const row of this.leaf === null ? [] : messagesUp(this.#db, this.leaf, 100_000)) {
      this.read++;
      const known = this.#known.get(row.seq);
      const same = known?.body === row.body && known.node.pinned === (row.pinned === 1);
      const node = { seq: row.seq, message: JSON.parse(row.body) as UIMessage, pinned: row.pinned === 1 };
      if (!same) this.#known.set(row.seq, { body: row.body, node });
      yield same ? known.node : node;
    }
  }

  view() {
    return this.reader.read(this.up(), "main");
  }
}

/** A token is four characters of JSON. */
export function measureOf(usable: number, fixed = 0): Measure {
  const count = (value: string) => value.length / 4;
  return {
    text: count,
    message: (_message, parts: UIMessage["parts"]) => parts.reduce((sum, part) => sum + count(JSON.stringify(part)), 0),
    output: (_message, { output }) => count(typeof output === "string" ? output : JSON.stringify(output)),
    fixed,
    usable,
  };
}

/** A job on a path, whose summariser says what it is told to. */
export function jobOn(path: TestPath, more: Partial<CompactionJob> = {}): CompactionJob {
  return {
    session: "main",
    trigger: "manual",
    open: false,
    view: () => path.view(),
    measure: measureOf(10_000),
    summariser: {
      model: "test/small",
      room: 100_000,
      ask: () => Promise.resolve({ kind: "text", text: "## Goal\nA short summary." }),
    },
    live: () => ({}),
    keepAlways: () => false,
    subjects: ({ input }) => [JSON.stringify(input)],
    signal: new AbortController().signal,
    ...more,
  };
}
