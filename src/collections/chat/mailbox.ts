import type { ModelMessage } from "@tanstack/ai";
import type { RowOptions } from "../log/rows.ts";
import type { AgentContext, AgentReply } from "./config.ts";

/** One try at one answer. */
export interface Turn<TRow extends object> {
  /** Oldest first, one at least. */
  readonly rows: TRow[];
  /** The same for all tries at this answer. */
  readonly generationId: string;
  /** From 1. */
  readonly attempt: number;
  /** The agents that wait for the answer. */
  readonly callers: readonly string[];
}

/** Where an agent's work comes from and its answers go. The runner knows nothing else about rows. */
export interface Mailbox<TRow extends object> {
  /** Resolves when the rows that were there are here. */
  readonly ready: Promise<void>;
  /** All rows that are work now, oldest first. */
  pending(): TRow[];
  idOf(row: TRow): string;
  /** How often an answer to the row was begun and not handed back. */
  attemptsOf(row: TRow): number;
  /** Which rows are answered together, out of those that are due. `maxAttempts`: how often each is tried. */
  batch(due: readonly TRow[], maxAttempts: number): TRow[];
  /** Takes the rows. Undefined: somebody else was quicker, or they are gone. */
  begin(rows: readonly TRow[], fence: RowOptions): Promise<Turn<TRow> | undefined>;
  /** Why the turn is not this runner's any more; undefined while it is. */
  lost(turn: Turn<TRow>): Error | undefined;
  build(turn: Turn<TRow>, context: AgentContext): Promise<ModelMessage[]>;
  /** Stores the answer. False: refused, the turn is not this runner's any more. */
  store(turn: Turn<TRow>, reply: AgentReply, context: AgentContext): Promise<boolean>;
  /** The try does not count: it was disposed, or goes on when its tools are done. */
  handBack(turn: Turn<TRow>, why: "suspended" | "disposed", fence: RowOptions): Promise<void>;
  /** Tells the world that a try has failed and another one follows. */
  failed(turn: Turn<TRow>, error: Error, fence: RowOptions): Promise<void>;
  /** There is no further try. */
  giveUp(turn: Turn<TRow>, error: Error, context: AgentContext): Promise<void>;
  dispose(): Promise<void>;
}
