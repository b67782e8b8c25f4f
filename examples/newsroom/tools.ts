import { toolDefinition } from "@tanstack/ai";
import { z } from "zod";

// What tools are called with and give back. Who calls them and who runs them are two programs.

export const searchArchive = toolDefinition({
  name: "searchArchive",
  description: "Finds what was printed about a subject.",
  inputSchema: z.object({ subject: z.string() }),
  outputSchema: z.object({ found: z.array(z.string()) }),
});

export const publish = toolDefinition({
  name: "publish",
  description: "Prints a story. A person must allow it first.",
  inputSchema: z.object({ headline: z.string(), text: z.string() }),
  outputSchema: z.object({ edition: z.number() }),
  needsApproval: true,
});
