import type { ToolSet } from "ai";
import type { SkillRegistry } from "./registry.ts";
import { createSkillTools } from "./tools.ts";
import type { SkillScriptRunner } from "./types.ts";

/** What a turn needs for its skills. */
export interface TurnSkills {
  /** For the system prompt. Empty when there are none. */
  readonly prompt: string;
  /** None when there are no skills. */
  readonly tools: ToolSet;
}

/** Looks at the sources again, and gives the catalog and the tools. Never rejects. */
export async function skillsForTurn(registry: SkillRegistry, runner?: SkillScriptRunner): Promise<TurnSkills> {
  await registry.refresh();
  const prompt = registry.catalog();
  return { prompt, tools: prompt === "" ? {} : createSkillTools(registry, runner) };
}
