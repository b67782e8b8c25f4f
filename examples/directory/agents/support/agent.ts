import { tool } from "ai";
import { agent } from "perdure";
import { z } from "zod";
import { Handbook } from "./agents/handbook.ts";
import { model } from "./model.ts";

/** Declared instead of written as a class, and named after its folder: /agents/support/… */
export const Support = agent({
  model,
  instructions: "You answer questions about the shop. Look things up in the handbook.",
  tools: (self) => ({
    lookUp: tool({
      description: "Looks a word up in the shop's handbook.",
      inputSchema: z.object({ word: z.string() }),
      execute: async ({ word }) => (await self.subAgent(Handbook, "shop")).lookUp(word),
    }),
  }),
});
