import type { AnyTextAdapter } from "@tanstack/ai";
import { isSettledStatus, type GenerationRecord } from "../contract.ts";
import type { RowChange, RowCondition } from "../../wire/row-frames.ts";
import { rowsOf, type Rows } from "../log/rows.ts";
import { toolRowsOf } from "../call/durable-tool.ts";
import type { AgentCollections } from "./agent-collections.ts";
import type { AgentHooks, AgentTurn, AgentTurnStatus } from "./config.ts";

/** Keeps one row for each answer of an agent, and knows which answers wait for their tools. */
export class AnswerRows {
  readonly #agentName: string;
  readonly #model: string;
  readonly #collections: AgentCollections;
  readonly #tools: readonly unknown[];
  readonly #rows: Rows<GenerationRecord>;
  /** Calls of this log's tools that have no result: answer, then calls. */
  readonly #open = new Map<string, Set<string>>();
  /** Answers that wait for calls in collections of others, until one of those has changed. */
  readonly #asleep = new Set<string>();
  #foreignChanges = 0;

  constructor(agentName: string, adapter: AnyTextAdapter, collections: AgentCollections, tools: readonly unknown[]) {
    this.#agentName = agentName;
    this.#model = adapter.model;
    this.#collections = collections;
    this.#tools = tools;
    this.#rows = rowsOf(collections.generations);
  }

  hooks(): AgentHooks {
    return {
      ready: async () => {
        const { toolCalls, turns, chunks, summaries, generations, approvals } = this.#collections;
        const all = [toolCalls, turns, chunks, summaries, generations, approvals];
        await Promise.all(all.map((one) => one.utils.confirmed.ready ?? one.utils.log.ready));
      },
      changes: (turn, status, error) => this.#changes(turn, status, error),
      conditions: (generationId) => this.#conditions(generationId),
      isSuspended: (id) => this.#rows.get(id)?.status === "suspended" && (this.#open.has(id) || this.#asleep.has(id)),
      isCancelled: (id) => this.#rows.get(id)?.status === "cancelled",
      subscribe: (wake) => this.#subscribe(wake),
    };
  }

  /** A mark to be given to {@link afterSuspension}. */
  beforeRun(): number {
    return this.#foreignChanges;
  }

  /** An answer has ended to wait for these calls. */
  afterSuspension(generationId: string, pending: readonly string[], seen: number): void {
    const calls = rowsOf(this.#collections.toolCalls);
    const isForeign = !pending.some((id) => calls.get(id) !== undefined);
    if (isForeign && seen === this.#foreignChanges) this.#asleep.add(generationId);
  }

  #changes(turn: AgentTurn, status: AgentTurnStatus, error?: Error): RowChange[] {
    const known = this.#rows.get(turn.generationId);
    // Who has cancelled an answer has the last word.
    if (known?.status === "cancelled" && status !== "cancelled") return [];
    const now = new Date().toISOString();
    const { completedAt: _completedAt, error: _error, ...before } = known ?? this.#fresh(turn, now);
    const value: GenerationRecord = {
      ...before,
      status,
      attempt: turn.attempt,
      updatedAt: now,
      ...(turn.writer === undefined ? {} : { runner: turn.writer.id, fence: turn.writer.epoch }),
      ...(isSettledStatus(status) ? { completedAt: now } : {}),
      ...(error === undefined ? {} : { error: error.message }),
    };
    const { tableName: table, admit } = this.#collections.generations.utils;
    return [{ table, key: value.id, operation: "upsert", value: admit(value, known) }];
  }

  #conditions(generationId: string): RowCondition[] {
    const unchanged = this.#rows.unchanged(generationId);
    return unchanged === undefined ? [] : [unchanged];
  }

  #fresh(turn: AgentTurn, now: string): GenerationRecord {
    const agentName = this.#agentName;
    const model = this.#model;
    return { id: turn.generationId, agentName, status: "generating", model, createdAt: now, updatedAt: now };
  }

  #subscribe(wake: () => void): () => void {
    const { toolCalls, generations } = this.#collections;
    const { confirmed } = toolCalls.utils;
    for (const row of confirmed.rows()) this.#note(row.key, row.value);
    const calls = confirmed.subscribe((changes, reset) => {
      if (reset) this.#open.clear();
      for (const { key, value, operation } of changes) this.#note(key, operation === "delete" ? {} : value);
      wake();
    });
    const foreign = this.#tools.flatMap((tool) => {
      const rows = toolRowsOf(tool);
      if (rows === undefined || rows.collection === toolCalls) return [];
      return rows.subscribe(() => {
        this.#foreignChanges++;
        this.#asleep.clear();
        wake();
      });
    });
    const ends = [calls, generations.utils.confirmed.subscribe(wake), ...foreign];
    return () => ends.forEach((end) => end());
  }

  /** `<answer>:<call>` is the id of a call's row. */
  #note(key: string, value: { readonly [field: string]: unknown }): void {
    const { generationId = key.slice(0, key.lastIndexOf(":")), status } = value;
    if (typeof generationId !== "string") return;
    const calls = this.#open.get(generationId) ?? new Set();
    const isOpen = typeof status === "string" && !isSettledStatus(status);
    if (isOpen && value["isAsync"] !== true) calls.add(key);
    else calls.delete(key);
    if (calls.size > 0) this.#open.set(generationId, calls);
    else this.#open.delete(generationId);
  }
}
