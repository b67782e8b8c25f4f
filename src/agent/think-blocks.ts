import type { Tool, ToolSet } from "ai";
import { DEFAULT_SYSTEM_PROMPT } from "../context/capabilities.ts";
import { saysWhoItIs } from "../memory/render.ts";
import type { ContextBlocks } from "../memory/context-blocks.ts";
import { durableTool, type DurableToolOptions } from "../tool/define.ts";

/** How long a call of a context tool may take: a provider has its own, shorter bounds. */
const TOOL_TIMEOUT_MS = 90_000;

/** What context blocks add to a turn. */
export interface JoinedBlocks {
  /** The system prompt, without the lines on the tools. */
  readonly prompt: string;
  readonly tools: ToolSet;
  /** Makes the text of the blocks anew, and the prompt with it: after a compaction, when all is read anew anyway. */
  renew(): Promise<string>;
}

/**
 * The prompt of a turn: what the class says, then the blocks. A class that says nothing of its own leaves it to a
 * read-only block to say who the agent is; the default is only there when there is none.
 */
export async function joinBlocks(blocks: ContextBlocks | undefined, base: string): Promise<JoinedBlocks> {
  if (blocks === undefined) return { prompt: base, tools: {}, renew: async () => base };
  return {
    prompt: joined(base, await blocks.systemPrompt()),
    tools: durableTools(blocks),
    renew: async () => joined(base, await blocks.refreshSystemPrompt()),
  };
}

function joined(base: string, text: string): string {
  if (text === "") return base;
  return base === "" || (base === DEFAULT_SYSTEM_PROMPT && saysWhoItIs(text)) ? text : `${base}\n\n${text}`;
}

function durableTools(blocks: ContextBlocks): ToolSet {
  const tools: ToolSet = {};
  for (const [name, tool] of Object.entries(blocks.tools())) {
    // Texts that the agent stores itself know which calls have written to them. Nobody knows that of a provider.
    const replay = name === "set_context" && blocks.writesElsewhere ? "never" : "safe";
    const options: DurableToolOptions = { replay, timeoutMs: TOOL_TIMEOUT_MS };
    tools[name] = durableTool<Tool>(tool, options);
  }
  return tools;
}
