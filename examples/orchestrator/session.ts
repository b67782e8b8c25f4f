import type { ToolSet } from "ai";
import { Think } from "perdure";
import type { WorkspaceFiles } from "perdure/tools";
import { pickModel } from "../shared/model.ts";
import { Orchestrator } from "./orchestrator.ts";

/** Without an API key: one tool by what the task is about, then a sentence about what it gave. */
const model = pickModel(({ userText, prompt }) => {
  const asked = userText.toLowerCase();
  const file = /[\w-]+\.\w+/.exec(asked)?.[0] ?? "notes.txt";
  const last = prompt.at(-1);
  const result = last?.role === "tool" ? last.content.find((part) => part.type === "tool-result") : undefined;
  if (result?.toolName === "write") return `${file} is written.`;
  if (result !== undefined) return `Done: ${"value" in result.output ? JSON.stringify(result.output.value) : ""}.`;
  if (asked.includes("weather")) return { toolName: "tool_weather_forecast", input: { city: "Oslo" } };
  if (asked.includes("write")) return { toolName: "write", input: { path: `/${file}`, content: userText } };
  if (asked.includes("read")) return { toolName: "read", input: { path: `/${file}` } };
  if (asked.includes("list")) return { toolName: "list", input: { path: "/" } };
  return 'I am a script. Tell me to "write plan.txt", "read plan.txt", "list" the files, or ask for the weather.';
});

/** A child: its conversation is its own, what it works on and works with belongs to the orchestrator. */
export class Session extends Think {
  /** The tools for files come with it. */
  override workspace: WorkspaceFiles = this.parentWorkspace(Orchestrator);
  override workspaceBash = false;

  override getModel() {
    return model;
  }

  override getSystemPrompt() {
    return "You do one task at a time for your orchestrator. Keep what others need in the shared workspace.";
  }

  override getTools(): Promise<ToolSet> {
    return this.parentAgent(Orchestrator).lentTools();
  }
}
