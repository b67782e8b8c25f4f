import { chat, toolDefinition } from "@tanstack/ai";
import { createCollection, eq, inArray } from "@tanstack/db";
import { createGenerationEffect, logCollectionOptions, openLocalLog, rowsOf } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { describe, expect, test, vi } from "vitest";
import { desk, settled, until, user } from "./asks.ts";
import { PATIENCE_MS } from "../../support/until.ts";

describe("a generation effect", () => {
  test("without a collection the callbacks write, under any names; one that fails is called again", async () => {
    const log = openLocalLog();
    const asks = createCollection(
      logCollectionOptions<{ id: string; state: string; response?: string }>({
        log,
        name: "x",
        getKey: (row) => row.id,
      }),
    );
    const rows = rowsOf(asks);
    let [made, written] = [0, 0];
    const effect = createGenerationEffect({
      query: (q) => q.from({ ask: asks }).where(({ ask }) => eq(ask.state, "open")),
      generate: async () => `answer ${++made}`,
      onComplete: async (row, result) => {
        if (++written === 1) throw new Error("not yet");
        await rows.update(row.id, (draft) => Object.assign(draft, { state: "done", response: result }));
      },
      retry: { delayMs: 1 },
      onProblem: () => {},
    });
    await rows.insert({ id: "a", state: "open" });
    await effect.idle();
    expect(rows.get("a")).toMatchObject({ state: "done", response: "answer 1" });
    expect([made, written]).toEqual([1, 2]);
    await effect.dispose();
  });

  test("an effect that is disposed does not wait for the next try of a callback", async () => {
    const here = desk(openLocalLog());
    let tries = 0;
    const effect = createGenerationEffect({
      query: (q) => q.from({ ask: here.asks }).where(({ ask }) => eq(ask.status, "pending")),
      collection: here.asks,
      generate: async () => "answer",
      onComplete: () => {
        tries++;
        throw new Error("not yet");
      },
      retry: { delayMs: PATIENCE_MS * 2, maxDelayMs: PATIENCE_MS * 2 },
      disposeWaitMs: PATIENCE_MS * 2,
      onProblem: () => {},
    });
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await vi.waitFor(() => expect(tries).toBe(1), PATIENCE_MS);
    await effect.dispose();
    expect(here.rows.get("a")).toMatchObject({ status: "pending" });
  });

  test('trap: an empty text is a failure, as chat({ stream: false }) gives "" when it waits for an approval', async () => {
    const here = desk(openLocalLog());
    const risky = toolDefinition({ name: "risky", description: "Asks.", needsApproval: true }).server(async () => 1);
    const adapter = scriptedText([{ toolCalls: [{ name: "risky" }] }]);
    const effect = createGenerationEffect({
      query: (q) => q.from({ ask: here.asks }).where(({ ask }) => eq(ask.status, "pending")),
      collection: here.asks,
      generate: (row) => chat({ adapter, messages: user(row.prompt), tools: [risky], stream: false }),
      retry: { maxAttempts: 1 },
      onProblem: () => {},
    });
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    expect(await until(here, "a", settled)).toMatchObject({ status: "failed" });
    await effect.dispose();
  });

  test("a suspended row that is always ready does not run without a break", async () => {
    const here = desk(openLocalLog());
    let made = 0;
    const effect = createGenerationEffect({
      query: (q) => q.from({ ask: here.asks }).where(({ ask }) => inArray(ask.status, ["pending", "suspended"])),
      collection: here.asks,
      generate: async () => ({ outcome: "suspended" as const, made: ++made }),
    });
    await here.rows.insert({ id: "a", prompt: "hi", status: "pending" });
    await vi.waitFor(() => expect(made).toBe(4), PATIENCE_MS);
    await effect.idle();
    expect(made).toBe(4);
    await effect.dispose();
  });
});
