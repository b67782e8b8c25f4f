import { toolDefinition } from "@tanstack/ai";
import { eq } from "@tanstack/db";
import {
  agentCollections,
  createAgent,
  createToolExecutionEffect,
  durableAgent,
  openLocalLog,
  rowsOf,
} from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { numbers, pause } from "../random.ts";
import { say, seen } from "./agent-session.ts";

const SEEDS = 3;
const wait = toolDefinition({ name: "wait", description: "Waits.", inputSchema: z.object({}) });

test.each(["hold", "suspend"] as const)(
  "whatever comes in whatever order, every message is answered once or given up (%s)",
  async (toolMode) => {
    for (let seed = 1; seed <= SEEDS; seed++) {
      const random = numbers(seed * 104_729);
      const log = openLocalLog();
      const collections = agentCollections(log);
      const messages = rowsOf(collections.messages);
      const generations = rowsOf(collections.generations);
      const tools = createToolExecutionEffect({
        query: (q) => q.from({ c: collections.toolCalls }).where(({ c }) => eq(c.status, "pending")),
        tools: [wait],
        collection: collections.toolCalls,
        generations: collections.generations,
        implementations: { wait: async () => (await pause(random(10)), "ok") },
        onProblem: () => {},
      });
      const start = () =>
        createAgent(
          durableAgent({
            name: "it",
            instructions: "",
            adapter: scriptedText((call) => {
              const turn = random(6);
              if (turn === 0) return { error: "bad luck" };
              if (turn === 1) return { text: "half", cut: true };
              if (turn < 4 && call.step === 0) return { text: "Hm. ", toolCalls: [{ name: "wait" }] };
              return { text: ["re ", () => pause(random(10)), call.userText] };
            }),
            tools: [wait],
            toolMode,
            retry: { maxAttempts: 4, delayMs: 1, maxDelayMs: 2 },
            log,
            onFailure: () => {},
          }),
        );
      const agents = [start(), start()];
      const ids: string[] = [];
      const requests: string[] = [];
      for (let step = 0; step < 40; step++) {
        const what = random(9);
        const id = ids[random(Math.max(1, ids.length))];
        if (what < 2) ids.push(await say(collections, "it", `m${step}`));
        else if (what === 2) {
          requests.push(`r${step}`);
          ids.push(await say(collections, "it", `q${step}`, { requestId: `r${step}`, actorId: "other" }));
        } else if (what === 3 && id !== undefined && !requests.includes(messages.get(id)?.requestId ?? ""))
          await messages.delete(id);
        else if (what === 4 && id !== undefined) await messages.update(id, (row) => void (row.content += "!"));
        else if (what === 5) {
          const open = generations.all().filter((row) => !["completed", "failed", "cancelled"].includes(row.status));
          const one = open[random(Math.max(1, open.length))];
          if (one !== undefined && random(3) === 0)
            await generations.update(one.id, (row) => void (row.status = "cancelled"));
        } else if (what === 6 && random(3) === 0) {
          const old = agents.shift()!;
          agents.push(start());
          await old.dispose();
        } else await pause(random(12));
      }
      const mine = () => messages.all().filter((row) => row.targetAgent === "it");
      await seen(collections.messages, () => mine().every((row) => row.processed));
      for (const agent of agents) await agent.drainUntilIdle();
      const all = messages.all();
      for (const requestId of requests) {
        const given = all.filter((row) => row.inReplyTo === requestId).length;
        const failed = all.filter((row) => row.requestId === requestId && row.error !== undefined).length;
        expect(given + failed, `seed ${seed}: ${requestId}`).toBe(1);
      }
      for (const row of mine()) {
        if (row.error !== undefined) continue;
        const answers = all.filter(
          (one) => one.generationId === row.generationId && one.role === "assistant" && one.toolCalls === undefined,
        );
        expect(answers, `seed ${seed}: ${row.content}`).toHaveLength(1);
      }
      const open = generations.all().filter((row) => !["completed", "failed", "cancelled"].includes(row.status));
      const wanted = open.filter(({ id }) => mine().some((row) => row.generationId === id));
      expect(wanted, `seed ${seed}`).toEqual([]);
      await Promise.all([...agents.map((one) => one.dispose()), tools.dispose()]);
    }
  },
);
