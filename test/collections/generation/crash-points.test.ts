import { toolDefinition } from "@tanstack/ai";
import { eq, inArray } from "@tanstack/db";
import {
  assembleText,
  createClaims,
  createGenerationEffect,
  createToolExecutionEffect,
  durableChat,
  readChunks,
  rowsOf,
} from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { backends } from "../backends.ts";
import { dying } from "../dying.ts";
import { desk, pending, settled, until, user } from "./asks.ts";

const search = toolDefinition({ name: "search", description: "Searches.", inputSchema: z.object({ q: z.string() }) });
/**
 * Every write in memory, every few of them over the network. Always behind the write: to die before the next one is the
 * same to everybody else.
 */
const cases = backends.flatMap((backend) => {
  const isLocal = backend.name === "local";
  const modes = isLocal ? (["suspend", "hold"] as const) : (["suspend"] as const);
  return modes.map((mode) => ({ backend, name: backend.name, mode, stride: !isLocal ? 8 : mode === "hold" ? 4 : 1 }));
});

describe("crashes of runners", () => {
  test.each(cases)(
    "$name, $mode: wherever a runner dies, another stores one answer, and asks for no stored turn",
    async ({ backend, mode, stride }) => {
      const place = await backend.start();
      let survived = false;
      for (let at = 1; !survived; at += stride) {
        const what = `death at write ${at}`;
        const id = `ask ${at}`;
        const log = await place.open();
        const here = desk(log);
        await Promise.all(
          [here.asks, here.chunks, here.turns, here.toolCalls, here.claims].map((one) => one.preload()),
        );
        let executed = 0;
        const tools = createToolExecutionEffect({
          query: (q) => q.from({ c: here.toolCalls }).where(({ c }) => eq(c.status, "pending")),
          tools: [search],
          collection: here.toolCalls,
          implementations: { search: async ({ q }) => `${++executed} about ${q}` },
        });
        const run = (on: RowLog) => {
          const mine = on === log ? here : desk(on);
          const adapter = scriptedText((call) =>
            call.step === 0
              ? { text: ["Let me ", "look. "], toolCalls: [{ name: "search", input: { q: call.userText } }] }
              : { text: ["It is ", String(call.messages.at(-1)?.content)] },
          );
          const claims = createClaims({ collection: mine.claims, owner: "runner" });
          const effect = createGenerationEffect({
            ...pending(mine),
            query: (q) =>
              q
                .from({ ask: mine.asks })
                .where(({ ask }) => inArray(ask.status, ["pending", "generating", "suspended"])),
            claims,
            toolCalls: { collection: mine.toolCalls },
            resumable: true,
            disposeWaitMs: 0,
            retry: { maxAttempts: 5, delayMs: 1 },
            generate: (row, { generationId, signal, when }) =>
              durableChat({
                adapter,
                messages: user(row.prompt),
                tools: [search],
                toolCalls: { collection: mine.toolCalls },
                chunks: { collection: mine.chunks },
                turns: mine.turns,
                mode,
                generationId,
                signal,
                when,
              }),
          });
          return { adapter, effect, claims };
        };
        const victim = dying(log, at, "after");
        const first = run(victim.log);
        await here.rows.insert({ id, prompt: "owls", status: "pending" });
        survived = (await Promise.race([victim.died.then(() => "died"), until(here, id, settled)])) !== "died";
        const begun = here.rows.get(id)?.generationId;
        const turns = rowsOf(here.turns)
          .all()
          .filter((row) => row.generationId === begun);
        const stored = (index: number) => turns.some((row) => row.index === index);
        // Whatever of it may still run here: it cannot write.
        await first.effect.dispose();
        const second = run(log);
        const row = await until(here, id, settled);
        const expected = "Let me look. It is 1 about owls";
        expect(row, what).toMatchObject({ status: "completed", answer: expected });
        expect(executed, what).toBe(1);
        const mine = rowsOf(here.toolCalls)
          .all()
          .filter((call) => call.generationId === row?.generationId);
        expect(mine, what).toHaveLength(1);
        const steps = second.adapter.calls.map((call) => call.step);
        expect(new Set(steps).size, what).toBe(steps.length);
        // Behind a stored turn of the model it goes on; behind the stored answer there is nothing to ask for.
        expect(stored(0) && steps.includes(0), what).toBe(false);
        expect(stored(2) && steps.length > 0, what).toBe(false);
        const chunks = readChunks(here.chunks, row?.generationId ?? "");
        expect(
          chunks.map((chunk) => chunk.index),
          what,
        ).toEqual(chunks.map((_, index) => index));
        expect(
          chunks.filter((chunk) => chunk.isFinal === true).map((chunk) => chunk.index),
          what,
        ).toEqual([chunks.length - 1]);
        expect(assembleText(chunks), what).toBe(expected);
        await Promise.all([second.effect.dispose(), tools.dispose()]);
        await second.claims.dispose();
      }
      await place.stop();
    },
  );
});
