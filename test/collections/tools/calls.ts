import { createCollection, eq } from "@tanstack/db";
import type { InitialQueryBuilder } from "@tanstack/db";
import { logCollectionOptions, rowsOf } from "perdure/collections";
import type { GenerationRecord, RowLog, ToolCallRecord } from "perdure/collections";
import { toolDefinition } from "@tanstack/ai";
import { z } from "zod";

/** A tool with both schemas. */
export const add = toolDefinition({
  name: "add",
  description: "Adds two numbers.",
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  outputSchema: z.object({ sum: z.number() }),
});

/** Another one, with neither. */
export const note = toolDefinition({ name: "note", description: "Takes a note." });

/** The same object but for some of its members. */
export function altered<T extends object>(inner: T, own: Partial<T>): T {
  return new Proxy(inner, {
    get(target, name) {
      if (Object.hasOwn(own, name)) return Reflect.get(own, name) as unknown;
      const found: unknown = Reflect.get(target, name, target);
      return typeof found === "function" ? (found.bind(target) as unknown) : found;
    },
  });
}

/** The collection of calls, as one process has it. */
export function openCalls(log: RowLog, name = "calls") {
  const calls = createCollection(logCollectionOptions<ToolCallRecord>({ log, name, getKey: (row) => row.id }));
  return { calls, rows: rowsOf(calls) };
}

/** The collection of answers. */
export function openGenerations(log: RowLog) {
  const generations = createCollection(
    logCollectionOptions<GenerationRecord>({ log, name: "generations", getKey: (row) => row.id }),
  );
  return { generations, rows: rowsOf(generations) };
}

/** A call that waits to be executed. */
export function pending(id: string, more: Partial<ToolCallRecord> = {}): ToolCallRecord {
  const time = "2026-01-01T00:00:00.000Z";
  const row: ToolCallRecord = {
    id,
    generationId: "g",
    name: "add",
    args: { a: 1, b: 2 },
    status: "pending",
    attempt: 0,
    createdAt: time,
    updatedAt: time,
  };
  return { ...row, ...more };
}

/** The calls of a collection that wait. */
export function waiting(calls: ReturnType<typeof openCalls>["calls"]) {
  return (q: InitialQueryBuilder) => q.from({ c: calls }).where(({ c }) => eq(c.status, "pending"));
}

/** A promise in the hands of a test. */
export function gate<T = void>() {
  return Promise.withResolvers<T>();
}
