import { toolDefinition } from "@tanstack/ai";
import { createCollection, createEffect, eq } from "@tanstack/db";
import { createToolExecutionEffect, logCollectionOptions, openLocalLog } from "perdure/collections";
import type { RowLog, ToolCallRecord } from "perdure/collections";
import type { RowChange } from "perdure/collections/log";
import { z } from "zod";
import { until } from "../foundation/measure.ts";
import type { Figure } from "../foundation/section.ts";
import { bestInTurns } from "../tools/best.ts";

const ROUNDS = 4;
const CALLS = 1_000;
const COLLECTIONS = 1_000;
const ROWS_EACH = 5;

export const add = toolDefinition({
  name: "add",
  description: "Adds.",
  inputSchema: z.object({ n: z.number() }),
  outputSchema: z.number(),
});

/** A row of a tool call. */
export function callRow(id: string): ToolCallRecord {
  const at = "2026-01-01T00:00:00.000Z";
  return { id, generationId: "g", name: "add", args: { n: 1 }, status: "pending", createdAt: at, updatedAt: at };
}

function openCalls(log: RowLog) {
  return createCollection(logCollectionOptions<ToolCallRecord>({ log, name: "calls", getKey: (row) => row.id }));
}

const inserts = (from: number, count: number): RowChange[] =>
  Array.from({ length: count }, (_, n) => ({
    table: "calls",
    key: `c${from + n}`,
    operation: "insert",
    value: { ...callRow(`c${from + n}`) },
  }));

/** Effects beside those of TanStack DB alone. */
export async function measureEffects(): Promise<Figure[]> {
  const unit = "rows/s";
  const one = await bestInTurns(
    "highest",
    ROUNDS,
    () => oneEffect(execute),
    () => oneEffect(bareEffect),
  );
  const made: number[] = [];
  const bareMade: number[] = [];
  const many = await bestInTurns(
    "highest",
    ROUNDS,
    () => manyEffects(execute, made),
    () => manyEffects(bareEffect, bareMade),
  );
  const against = "`createEffect` that makes the same two writes";
  return [
    { what: "tool calls through one execution effect, in memory", unit, ...one, against },
    {
      what: "1,000 collections with an effect each: until all are ready",
      unit: "ms",
      ours: Math.min(...made),
      bare: Math.min(...bareMade),
      against: "`createEffect`",
    },
    { what: `${ROWS_EACH} tool calls to each of them`, unit, ...many, against },
  ];
}

interface Running {
  readonly ready: Promise<unknown>;
  dispose(): Promise<void>;
}

/** Ours: reads again, judges, writes under conditions. */
function execute(log: RowLog): Running {
  const calls = openCalls(log);
  return createToolExecutionEffect({
    query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
    collection: calls,
    tools: [add],
    implementations: { add: ({ n }) => n + 1 },
  });
}

/** The same work by hand: no claim on the row, no retry, nothing that keeps a row from running twice. */
function bareEffect(log: RowLog): Running {
  const calls = openCalls(log);
  const set = (row: ToolCallRecord, change: Partial<ToolCallRecord>) =>
    log.write({
      changes: [
        { table: "calls", key: row.id, operation: "update", value: { ...calls.get(row.id), ...row, ...change } },
      ],
    });
  const effect = createEffect<ToolCallRecord>({
    query: (q) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending")),
    onEnter: async ({ value }) => {
      await set(value, { status: "executing" });
      await set(value, { status: "completed", result: 2 });
    },
  });
  return { ready: calls.preload(), dispose: () => effect.dispose() };
}

async function oneEffect(start: (log: RowLog) => Running): Promise<number> {
  const log = openLocalLog();
  const effect = start(log);
  await effect.ready;
  const begun = performance.now();
  await log.write({ changes: inserts(0, CALLS) });
  await until(() => isDone(log, CALLS));
  const ms = performance.now() - begun;
  await effect.dispose();
  return (CALLS * 1000) / ms;
}

async function manyEffects(start: (log: RowLog) => Running, made: number[]): Promise<number> {
  const logs = Array.from({ length: COLLECTIONS }, () => openLocalLog());
  const begun = performance.now();
  const effects = logs.map((log) => start(log));
  await Promise.all(effects.map(({ ready }) => ready));
  const ready = performance.now();
  made.push(ready - begun);
  await Promise.all(logs.map((log) => log.write({ changes: inserts(0, ROWS_EACH) })));
  await until(() => logs.every((log) => isDone(log, ROWS_EACH)));
  const ms = performance.now() - ready;
  await Promise.all(effects.map((effect) => effect.dispose()));
  return (COLLECTIONS * ROWS_EACH * 1000) / ms;
}

function isDone(log: RowLog, count: number): boolean {
  let done = 0;
  for (const { value } of log.table("calls").rows()) if (value.status === "completed") done++;
  return done === count;
}
