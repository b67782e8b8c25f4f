import type { Context } from "@tanstack/db";
import { newId } from "../../base/id.ts";
import type { AgentContext, AgentReply, QueryAgentConfig } from "./config.ts";
import type { Mailbox, Turn } from "./mailbox.ts";
import { watchQuery, type RowQuery, type Watch } from "../log/query.ts";

/** An agent with queries: all rows of its query are one turn, only this process knows begun turns, its callbacks write. */
export class QueryMailbox<TRow extends object> implements Mailbox<TRow> {
  readonly ready: Promise<void>;
  readonly #config: QueryAgentConfig<TRow, unknown>;
  readonly #watch: Watch<object>;
  readonly #begun = new Map<string, { generationId: string; attempts: number }>();
  /** Answered or given up, but still listed: not again until they were gone. */
  readonly #settled = new Set<string>();

  constructor(config: QueryAgentConfig<TRow, unknown>, wake: () => void) {
    this.#config = config;
    this.#watch = watchQuery(config.pendingWork as RowQuery<Context>, wake);
    this.ready = this.#watch.ready;
  }

  pending(): TRow[] {
    // The query is what the configuration's row type was inferred from.
    const rows = this.#watch.rows() as TRow[];
    const there = new Set(rows.map((row) => this.idOf(row)));
    for (const id of this.#settled) if (!there.has(id)) this.#settled.delete(id);
    return rows.filter((row) => !this.#settled.has(this.idOf(row)));
  }

  idOf(row: TRow): string {
    if (this.#config.idOf !== undefined) return this.#config.idOf(row);
    const { id, $key } = row as { id?: unknown; $key?: unknown };
    return typeof id === "string" ? id : JSON.stringify($key ?? row);
  }

  attemptsOf(row: TRow): number {
    return this.#begun.get(this.idOf(row))?.attempts ?? 0;
  }

  batch(due: readonly TRow[], maxAttempts: number): TRow[] {
    const [first] = due;
    const alone = first !== undefined && this.attemptsOf(first) > 0 && this.attemptsOf(first) + 1 >= maxAttempts;
    return alone ? [first] : [...due];
  }

  async begin(rows: readonly TRow[]): Promise<Turn<TRow>> {
    const known = new Set(rows.map((row) => this.#begun.get(this.idOf(row))?.generationId));
    const [only] = known;
    const generationId = known.size === 1 && only !== undefined ? only : newId("gen");
    const attempt = Math.max(...rows.map((row) => this.attemptsOf(row))) + 1;
    for (const row of rows) this.#begun.set(this.idOf(row), { generationId, attempts: attempt });
    return { rows: [...rows], generationId, attempt, callers: callersOf(rows) };
  }

  lost(): undefined {
    return undefined;
  }

  build(turn: Turn<TRow>, context: AgentContext) {
    return this.#config.buildMessages(turn.rows, { ...context, collections: undefined });
  }

  async store(turn: Turn<TRow>, reply: AgentReply, context: AgentContext): Promise<boolean> {
    await this.#config.onResponse(reply.content, turn.rows, { ...context, collections: undefined });
    this.#settle(turn);
    return true;
  }

  async handBack(turn: Turn<TRow>): Promise<void> {
    for (const row of turn.rows) {
      this.#begun.set(this.idOf(row), { generationId: turn.generationId, attempts: turn.attempt - 1 });
    }
  }

  async failed(): Promise<void> {}

  async giveUp(turn: Turn<TRow>, error: Error, context: AgentContext): Promise<void> {
    this.#settle(turn);
    await this.#config.onError?.(error, turn.rows, { ...context, collections: undefined });
  }

  async dispose(): Promise<void> {
    await this.#watch.dispose();
  }

  #settle(turn: Turn<TRow>): void {
    for (const row of turn.rows) {
      this.#settled.add(this.idOf(row));
      this.#begun.delete(this.idOf(row));
    }
  }
}

/** Rows that were made from an `AgentRequest` may carry who waits for their answer. */
function callersOf(rows: readonly object[]): string[] {
  const found = rows.flatMap((row) => (row as { callers?: unknown }).callers ?? []);
  return [...new Set(found.filter((name): name is string => typeof name === "string"))];
}
