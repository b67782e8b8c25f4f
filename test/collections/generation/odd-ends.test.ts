import { EventType, toolDefinition } from "@tanstack/ai";
import type { StreamChunk } from "@tanstack/ai";
import {
  createClaims,
  createGenerationEffect,
  durableChat,
  openLocalLog,
  rowsOf,
  streamToCollection,
} from "perdure/collections";
import type { RowWrite } from "perdure/collections/log";
import { PerdureError } from "perdure";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { MAX_ROW_WRITE_LENGTH } from "../../../src/wire/row-frames.ts";
import { failing } from "../own-log.ts";
import { desk, pending, settled, until, user } from "./asks.ts";

const search = toolDefinition({ name: "search", description: "Searches.", inputSchema: z.object({ q: z.string() }) });

const setsStatus = (write: RowWrite, status: string) =>
  write.changes.some(({ table, value }) => table === "asks" && value?.["status"] === status);

test.each([true, false])("an answer that its row cannot hold fails the row (claims: %s)", async (withClaims) => {
  const log = openLocalLog();
  const here = desk(log);
  const claims = withClaims ? { claims: createClaims({ collection: here.claims }) } : {};
  const effect = createGenerationEffect({
    ...pending(here),
    ...claims,
    retry: { maxAttempts: 2, delayMs: 1 },
    generate: async () => "text",
    keepResult: (draft) => void Object.assign(draft, { answer: 1n }),
  });
  await here.rows.insert({ id: "1", prompt: "?", status: "pending" });
  const row = await until(here, "1", settled);
  expect(row).toMatchObject({ status: "failed" });
  await effect.dispose();
});

test.each(["completed", "pending", "suspended", "failed"])(
  "a write to %s that fails once is made good",
  async (status) => {
    let failures = 1;
    const log = failing(openLocalLog(), (write) =>
      setsStatus(write, status) && write.changes[0]?.operation === "update" && failures-- > 0
        ? new PerdureError("call_failed", "no")
        : undefined,
    );
    const here = desk(log);
    const claims = createClaims({ collection: here.claims });
    let times = 0;
    const effect = createGenerationEffect({
      ...pending(here, ["pending", "generating", "suspended"]),
      claims,
      retry: { maxAttempts: status === "failed" ? 1 : 3, delayMs: 1 },
      generate: async () => {
        times++;
        if (status === "failed" || (status === "pending" && times === 1)) throw new Error("not yet");
        return { outcome: status === "suspended" && times === 1 ? "suspended" : "completed", content: "x" };
      },
    });
    await here.rows.insert({ id: "1", prompt: "?", status: "pending" });
    expect((await until(here, "1", settled))?.status).toBe(status === "failed" ? "failed" : "completed");
    await effect.dispose();
    await claims.dispose();
  },
);

test("an answer behind a history of messages without ids is stored, and given again as it was", async () => {
  const here = desk(openLocalLog());
  const adapter = scriptedText(["the answer"]);
  const options = {
    adapter,
    messages: [...user("hi"), { role: "assistant" as const, content: "hello" }, ...user("and?")],
    chunks: { collection: here.chunks },
    turns: here.turns,
    generationId: "g",
  };
  const first = await durableChat(options);
  const again = await durableChat(options);
  expect(first).toMatchObject({ outcome: "completed", content: "the answer" });
  expect(again).toMatchObject({ outcome: "completed", content: "the answer", lastText: "the answer" });
  expect(again.messages).toHaveLength(1);
  expect(adapter.calls).toHaveLength(1);
});

test("of two that take the same answer up at once one asks the model", async () => {
  const here = desk(openLocalLog());
  const adapter = scriptedText((call) =>
    call.step === 0 ? { toolCalls: [{ id: "c1", name: "search", input: { q: "x" } }] } : "done",
  );
  const step = () =>
    durableChat({
      adapter,
      messages: user("?"),
      tools: [search],
      toolCalls: { collection: here.toolCalls },
      chunks: { collection: here.chunks },
      turns: here.turns,
      mode: "suspend",
      generationId: "g",
    });
  const outcomes = async () => {
    const all = await Promise.allSettled([step(), step(), step()]);
    return all
      .map((one) => (one.status === "fulfilled" ? one.value.outcome : String((one.reason as PerdureError).code)))
      .toSorted();
  };
  expect(await outcomes()).toEqual(["fenced", "fenced", "suspended"]);
  expect(adapter.calls).toHaveLength(1);
  expect(await outcomes()).toEqual(["suspended", "suspended", "suspended"]);
  await rowsOf(here.toolCalls).update("g:c1", (row) => void Object.assign(row, { status: "failed", error: "broken" }));
  expect(await outcomes()).toEqual(["completed", "fenced", "fenced"]);
  expect(adapter.calls).toHaveLength(2);
  expect(adapter.calls[1]?.messages.at(-1)?.content).toContain("broken");
  expect(await outcomes()).toEqual(["completed", "completed", "completed"]);
  expect(
    rowsOf(here.chunks)
      .all()
      .filter((row) => row.isFinal === true),
  ).toHaveLength(1);
});

const base = { threadId: "t", runId: "r" };
const start = { type: EventType.RUN_STARTED, ...base };
const text = (delta: string) => [
  { type: EventType.TEXT_MESSAGE_START, messageId: "m", role: "assistant" },
  { type: EventType.TEXT_MESSAGE_CONTENT, messageId: "m", delta },
  { type: EventType.TEXT_MESSAGE_END, messageId: "m" },
];
const end = { type: EventType.RUN_FINISHED, ...base, finishReason: "stop" };
const broken = { type: EventType.RUN_ERROR, message: "down" };

test.each([
  ["no end", [start, ...text("a")], "model_failed"],
  ["nothing at all", [], "model_failed"],
  ["two ends", [start, ...text("a"), end, end], "completed"],
  ["an error behind the end", [start, ...text("a"), end, broken], "model_failed"],
  ["an end behind an error", [start, ...text("a"), broken, end], "model_failed"],
  ["text behind the end", [start, ...text("a"), end, ...text("b")], "model_failed"],
  ["no text", [start, end], "completed"],
  ["a huge piece", [start, ...text("x".repeat(300_000)), end], "completed"],
])("a stream with %s", async (_name, events, outcome) => {
  const here = desk(openLocalLog());
  async function* stream() {
    for (const event of events) yield event as unknown as StreamChunk;
  }
  const result = await streamToCollection(stream(), { collection: here.chunks, generationId: "g" }).then(
    (made) => made.outcome,
    (error: PerdureError) => error.code,
  );
  expect(result).toBe(outcome);
  const rows = rowsOf(here.chunks).all();
  expect(rows.map((row) => row.index)).toEqual(rows.map((_, index) => index));
  expect(rows.filter((row) => row.isFinal === true).map((row) => row.index)).toEqual(
    outcome === "completed" ? [rows.length - 1] : [],
  );
});

test.each([true, false])(
  "a row that is asked for again while its answer comes to an end is answered again (claims: %s)",
  async (withClaims) => {
    const here = desk(openLocalLog());
    const claims = withClaims ? { claims: createClaims({ collection: here.claims }) } : {};
    const deaf = Promise.withResolvers<string>();
    let times = 0;
    const effect = createGenerationEffect({
      ...pending(here),
      ...claims,
      generate: async () => (++times === 1 ? deaf.promise : `answer ${times}`),
    });
    await here.rows.insert({ id: "1", prompt: "?", status: "pending" });
    await until(here, "1", (row) => row?.status === "generating");
    await here.rows.update("1", (row) => void (row.status = "cancelled"));
    await here.rows.update("1", (row) => void (row.status = "pending"));
    deaf.resolve("late");
    expect(await until(here, "1", settled)).toMatchObject({ status: "completed", answer: "answer 2" });
    await here.rows.update("1", (row) => void (row.status = "pending"));
    expect(await until(here, "1", settled)).toMatchObject({ status: "completed", answer: "answer 3" });
    await effect.dispose();
  },
);

test("what a turn that was cut off has left is deleted in a few writes, and no write is too long", async () => {
  let writes = 0;
  let longest = 0;
  const log = failing(openLocalLog(), (write) => {
    writes++;
    longest = Math.max(longest, JSON.stringify(write).length);
    return undefined;
  });
  const here = desk(log);
  const piece = "x".repeat(50_000);
  const adapter = scriptedText([
    { text: [...Array.from({ length: 1_500 }, () => "y"), ...Array.from({ length: 200 }, () => piece)], cut: true },
    "whole",
  ]);
  const step = () =>
    durableChat({
      adapter,
      messages: user("?"),
      chunks: { collection: here.chunks },
      turns: here.turns,
      generationId: "g",
    });
  await expect(step()).rejects.toMatchObject({ code: "model_failed" });
  expect(rowsOf(here.chunks).all().length).toBeGreaterThan(1_500);
  expect(longest).toBeLessThan(MAX_ROW_WRITE_LENGTH);
  writes = 0;
  expect(await step()).toMatchObject({ content: "whole" });
  expect(writes).toBeLessThan(20);
});

test("a runner that is disposed gives its row to another one at once, not when its lease is over", async () => {
  const log = openLocalLog();
  const run = (generate: () => Promise<string>) => {
    const mine = desk(log);
    const claims = createClaims({ collection: mine.claims });
    const effect = createGenerationEffect({ ...pending(mine, ["pending", "generating"]), claims, generate });
    return { effect, claims };
  };
  const here = desk(log);
  const first = run(() => new Promise(() => {}));
  await here.rows.insert({ id: "1", prompt: "?", status: "pending" });
  await until(here, "1", (row) => row?.status === "generating");
  const second = run(async () => "second");
  await second.effect.idle();
  void first.effect.dispose();
  await first.claims.dispose();
  expect(await until(here, "1", settled)).toMatchObject({ answer: "second" });
  await second.effect.dispose();
});
