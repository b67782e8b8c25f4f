import { toolDefinition } from "@tanstack/ai";
import { eq } from "@tanstack/db";
import {
  createClaims,
  createGenerationEffect,
  createToolExecutionEffect,
  durableChat,
  openLocalLog,
  readChunks,
  rowsOf,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { numbers, pause } from "../random.ts";
import { desk, pending, queryOf, user } from "./asks.ts";

const SEEDS = 3;
const wait = toolDefinition({ name: "wait", description: "Waits.", inputSchema: z.object({}) });

test.each(["hold", "suspend"] as const)(
  "whatever order rows are cancelled, put back and deleted in, none is left behind (%s)",
  async (mode) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = numbers(seed * 7_919);
      const log = openLocalLog();
      const here = desk(log);
      const tools = createToolExecutionEffect({
        query: (q) => q.from({ c: here.toolCalls }).where(({ c }) => eq(c.status, "pending")),
        tools: [wait],
        collection: here.toolCalls,
        implementations: { wait: async () => (await pause(random(10)), "ok") },
        onProblem: () => {},
      });
      const start = () => {
        const mine = desk(log);
        const claims = createClaims({ collection: mine.claims, maxAttempts: 1_000 });
        const effect = createGenerationEffect({
          ...pending(mine),
          query: (q) => queryOf(q, mine.asks, ["pending", "generating", "suspended"]),
          claims,
          toolCalls: { collection: mine.toolCalls },
          resumable: random(2) === 0,
          retry: { maxAttempts: 1_000, delayMs: 1, maxDelayMs: 2 },
          generate: (row, { generationId, signal, when }) =>
            durableChat({
              adapter: scriptedText((call) => {
                const turn = random(6);
                if (turn === 0) return { error: "bad luck" };
                if (turn === 1) return { text: "half", cut: true };
                if (turn < 4 && call.step === 0) return { text: "Hm. ", toolCalls: [{ name: "wait" }] };
                return { text: ["re ", () => pause(random(10)), call.userText] };
              }),
              messages: user(row.prompt),
              tools: [wait],
              toolCalls: { collection: mine.toolCalls },
              chunks: { collection: mine.chunks },
              turns: mine.turns,
              mode,
              generationId,
              signal,
              when,
            }),
        });
        return { effect, claims };
      };
      const runners = [start(), start()];
      const ids = ["a", "b", "c"];
      const set = (id: string, status: string) => here.rows.update(id, (row) => void (row.status = status));
      const insert = (id: string) => here.rows.insert({ id, prompt: id, status: "pending" });
      for (const id of ids) await insert(id);
      for (let step = 0; step < 40; step++) {
        const id = ids[random(ids.length)]!;
        const what = random(8);
        if (what === 0) await set(id, "cancelled");
        else if (what === 1) await set(id, "pending");
        else if (what === 2) await here.rows.delete(id);
        else if (what === 3) await insert(id);
        else if (what === 4 && random(3) === 0) {
          const old = runners.shift()!;
          runners.push(start());
          await old.effect.dispose();
          await old.claims.dispose();
        } else await pause(random(12));
      }
      for (const id of ids) await insert(id);
      const over = () => here.rows.all().every((row) => ["completed", "cancelled"].includes(row.status));
      const end = Date.now() + 5_000;
      while (!over() && Date.now() < end) await pause(9);
      expect(over(), `seed ${seed}: ${JSON.stringify(here.rows.all())}`).toBe(true);
      for (const row of here.rows.all()) {
        if (row.status !== "completed") continue;
        const chunks = readChunks(here.chunks, row.generationId ?? "");
        expect(
          chunks.map((chunk) => chunk.index),
          `seed ${seed}`,
        ).toEqual(chunks.map((_, index) => index));
        expect(
          chunks.filter((chunk) => chunk.isFinal === true),
          `seed ${seed} ${row.id}`,
        ).toHaveLength(1);
        expect(row.answer?.endsWith(`re ${row.prompt}`), `seed ${seed}: ${row.answer}`).toBe(true);
      }
      const open = () =>
        rowsOf(here.toolCalls)
          .all()
          .filter((call) => !["completed", "cancelled"].includes(call.status));
      await tools.idle();
      expect(open(), `seed ${seed}`).toEqual([]);
      for (const { effect, claims } of runners) {
        await effect.dispose();
        await claims.dispose();
      }
      await tools.dispose();
    }
  },
);
