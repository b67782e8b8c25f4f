// What the programs of these tests and their driver agree on.
import { toolDefinition } from "@tanstack/ai";
import { z } from "zod";

export const AGENT = "writer";

export const lookUp = toolDefinition({
  name: "lookUp",
  description: "Looks a word up.",
  inputSchema: z.object({ word: z.string() }),
  outputSchema: z.object({ meaning: z.string() }),
});

export const print = toolDefinition({
  name: "print",
  description: "Prints a text, if somebody allows it.",
  inputSchema: z.object({ text: z.string() }),
  outputSchema: z.object({ copies: z.number() }),
  needsApproval: true,
});

/** What the model says before its tools, and after them. */
export const BEGINNING = ["Let ", "me ", "see. "];
export const END = ["It ", "means ", "wet ", "feet, ", "and ", "is ", "in ", "print."];
/** The text of the whole answer. */
export const ANSWER = END.join("");
