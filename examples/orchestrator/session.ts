import { tool } from "ai";
import { Think } from "perdure";
import { z } from "zod";
import { pickModel } from "../shared/model.ts";
import { Orchestrator } from "./orchestrator.ts";

/** Without an API key: one tool by what the task is about, then a sentence about what it gave. */
const model = pickModel(({ userText, prompt }) => {
  const last = prompt.at(-1);
  const result = last?.role === "tool" ? last.content.find((part) => part.type === "tool-result") : undefined;
  if (result !== undefined) return `Done: ${"value" in result.output ? JSON.stringify(result.output.value) : ""}.`;
  const asked = userText.toLowerCase();
  const path = /[\w-]+\.\w+/.exec(asked)?.[0] ?? "notes.txt";
  if (asked.includes("weather")) return { toolName: "weather", input: { city: "Oslo" } };
  if (asked.includes("write")) return { toolName: "write", input: { path, text: userText } };
  if (asked.includes("read")) return { toolName: "read", input: { path } };
  if (asked.includes("list")) return { toolName: "list", input: {} };
  return 'I am a script. Tell me to "write plan.txt", "read plan.txt", "list" the files, or ask for the weather.';
});

/** A child: its conversation is its own, what it works on belongs to the orchestrator. */
export class Session extends Think {
  override getModel() {
    return model;
  }

  override getSystemPrompt() {
    return "You do one task at a time for your orchestrator. Keep what others need in the shared workspace.";
  }

  override getTools() {
    const parent = this.parentAgent(Orchestrator);
    return {
      list: tool({
        description: "Lists the files of the shared workspace.",
        inputSchema: z.object({}),
        execute: () => parent.sharedList(),
      }),
      read: tool({
        description: "Reads a file of the shared workspace.",
        inputSchema: z.object({ path: z.string() }),
        execute: ({ path }) => parent.sharedRead(path),
      }),
      write: tool({
        description: "Writes a file of the shared workspace.",
        inputSchema: z.object({ path: z.string(), text: z.string() }),
        execute: async ({ path, text }) => {
          await parent.sharedWrite(path, text);
          return `${path} is written`;
        },
      }),
      weather: tool({
        description: "Says what the weather will be like in a city.",
        inputSchema: z.object({ city: z.string() }),
        execute: ({ city }) => parent.mcpCall("forecast", { city }),
      }),
    };
  }
}
