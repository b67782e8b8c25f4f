import { createGenerationEffect } from "perdure/collections";
import { createCollection, eq } from "@tanstack/db";
import { logCollectionOptions, openLocalLog } from "perdure/collections";
interface Ask { id: string; status: string; answer?: string }
const asks = createCollection(logCollectionOptions<Ask>({ log: openLocalLog(), name: "a", getKey: (r) => r.id }));
createGenerationEffect({
  query: (q) => q.from({ a: asks }).where(({ a }) => eq(a.status, "pending")),
  collection: asks,
  generate: async (row, run) => `x${row.id}${run.attempt}`,
  keepResult: (draft, result) => { draft.answer = result; },
  onComplete: (row, result) => void (row.id + result.toUpperCase()),
});
createGenerationEffect({
  query: (q) => q.from({ a: asks }).where(({ a }) => eq(a.status, "pending")),
  collection: asks,
  generate: async (row, run) => `x${row.id}${run.attempt}`,
  keepResult: (draft: Ask, result: string) => { draft.answer = result; },
});
const p = { keepResult: (draft: Ask, result: string | { content: string }) => { draft.answer = String(result); } };
createGenerationEffect({
  query: (q) => q.from({ a: asks }).where(({ a }) => eq(a.status, "pending")),
  collection: asks,
  ...p,
  generate: async (row, run) => `x${row.id}${run.attempt}`,
});
