import { toolDefinition } from "@tanstack/ai";
import {
  agentCollections,
  agentPeer,
  createAgent,
  durableAgent,
  openLocalLog,
  readChunks,
  rowsOf,
} from "perdure/collections";
import type { RowLog } from "perdure/collections";
import { scriptedText } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { replies, say } from "./agent-session.ts";
import { dying, moments } from "../dying.ts";

const lookUp = toolDefinition({
  name: "lookUp",
  description: "Looks a word up.",
  inputSchema: z.object({ word: z.string() }),
  outputSchema: z.object({ meaning: z.string() }),
});

test.each(moments)(
  "wherever a runner dies, another one stores one reply to each message (%s the write)",
  async (moment) => {
    let survived = false;
    for (let at = 1; !survived; at++) {
      const log = openLocalLog();
      const collections = agentCollections(log);
      const executed: string[] = [];
      const tool = lookUp.server(async ({ word }) => {
        executed.push(word);
        return { meaning: `of ${word}` };
      });
      const run = (on: RowLog, leaseMs: number) => {
        const shared = on === log ? collections : agentCollections(on);
        return createAgent(
          durableAgent({
            name: "planner",
            instructions: "Be brief.",
            adapter: scriptedText((call) => {
              if (call.step === 0) return { toolCalls: [{ name: "lookUp", input: { word: call.userText } }] };
              if (call.step === 2) return { toolCalls: [{ name: "helper", input: { message: call.userText } }] };
              return { text: ["It ", "is ", String(call.messages.at(-1)?.content)] };
            }),
            tools: [tool],
            agents: [{ agent: agentPeer("helper", shared), description: "Helps." }],
            collections: shared,
            leaseMs,
            onFailure: () => {},
          }),
        );
      };
      const helper = createAgent(
        durableAgent({
          name: "helper",
          instructions: "",
          adapter: scriptedText((call) => `re ${call.userText}`),
          collections,
          exclusive: false,
        }),
      );
      const victim = dying(log, at, moment);
      // Not so short that a busy machine lets it lose its own lease.
      run(victim.log, 150);
      await say(collections, "planner", "word");
      survived = (await Promise.race([victim.died.then(() => "died"), replies(collections, "planner", 1)])) !== "died";
      const second = run(log, 30_000);
      const answers = await replies(collections, "planner", 1);
      await second.drainUntilIdle();
      const what = `death at write ${at}`;
      expect(
        answers.map((row) => row.content),
        what,
      ).toEqual(['It is {"response":"re word"}']);
      expect(
        rowsOf(collections.messages)
          .all()
          .filter((row) => row.targetAgent === "helper"),
        what,
      ).toHaveLength(1);
      expect(await replies(collections, "helper", 1), what).toHaveLength(1);
      // Once if its result was stored; at least once in any case.
      expect(executed.length, what).toBeLessThanOrEqual(2);
      const [answer] = answers;
      const chunks = readChunks(collections.chunks, answer?.generationId ?? "");
      expect(
        chunks.map((row) => row.index),
        what,
      ).toEqual(chunks.map((_, index) => index));
      expect(
        chunks.filter((row) => row.isFinal === true),
        what,
      ).toHaveLength(1);
      expect(rowsOf(collections.generations).get(answer?.generationId ?? "")?.status, what).toBe("completed");
      await second.dispose();
      await helper.dispose();
    }
  },
);
