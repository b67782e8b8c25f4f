// A parent whose tools are children, for tests of what public clients show of them. Children say one word whenever the
// test lets them; the script looks only at the prompt, so it also fits after a restart.
import { type ToolSet, jsonSchema, tool } from "ai";
import { agentTool, callable, durableTool, getCurrentAgent, Think } from "perdure";
import { CONTINUE_PROMPT } from "perdure/chat";
import type { Clock } from "perdure/host";
import { type ScriptedCall, type ScriptedReply, scriptedModel } from "perdure/testing";
import { z } from "zod";

/** What a child says in the end. */
export const WORDS = ["one ", "two ", "three ", "four"];

/** What the test hears of the agents. */
export interface Notes {
  /** A child's model was called. */
  called?(query: string): void;
  /** A child's tool ran. */
  ran?(name: string): void;
}

const anything = jsonSchema<object>({ type: "object" });
const inputSchema = z.object({ query: z.string() });

/** The words that an answer still lacks: one that was cut is gone on with, not begun again. */
function restOf({ prompt }: ScriptedCall): string[] {
  const asked = prompt.findLastIndex(
    ({ role, content }) => role === "user" && !JSON.stringify(content).includes(JSON.stringify(CONTINUE_PROMPT)),
  );
  const said = JSON.stringify(prompt.slice(asked + 1));
  return WORDS.filter((word) => !said.includes(`${word.trim()} `) && !said.includes(`${word.trim()}"`));
}

/** The children: `steps` calls a tool first, `ask` one that needs approval, others only speak. */
function childReply(call: ScriptedCall): string | ScriptedReply {
  const has = (query: string) => call.userText.includes(`"${query}`);
  const isFresh = call.prompt.every(({ role }) => role !== "tool");
  if (has("fail")) return { error: new Error("no luck") };
  if (isFresh && has("steps"))
    return { toolCalls: [{ toolName: "search", input: { for: "leaves" }, toolCallId: "s1" }] };
  if (isFresh && has("ask")) return { toolCalls: [{ toolName: "buy", input: { what: "tea" }, toolCallId: "b1" }] };
  return { text: restOf(call), delayMs: 1 };
}

/** The classes of a host. Children wait for `clock` before each word. */
export function togetherAgents(clock: Clock, notes: Notes = {}) {
  const childModel = scriptedModel(
    (call) => {
      notes.called?.(call.userText);
      return childReply(call);
    },
    { clock },
  );
  class Researcher extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return childModel;
    }
    override getTools(): ToolSet {
      return {
        search: tool({
          inputSchema: anything,
          execute: async () => {
            notes.ran?.("search");
            await this.reportProgress({ fraction: 0.25, phase: "reading", message: "Reading." });
            await this.reportProgress({ fraction: 0.4, phase: "reading" });
            await this.reportProgress({ milestone: "sources", fraction: 0.5, data: { count: 3 } });
            await this.reportProgress({ fraction: 1, phase: "writing" });
            return ["a", "b"];
          },
        }),
        buy: tool({
          inputSchema: anything,
          needsApproval: true,
          execute: () => {
            notes.ran?.("buy");
            return "bought";
          },
        }),
      };
    }
    override onChatError(error: unknown): unknown {
      return error instanceof Error ? error.message : String(error);
    }
    override classifyChatError() {
      return "fatal" as const;
    }
  }

  const parentModel = scriptedModel(({ userText, step, prompt }) => {
    const isAnswered = prompt.at(-1)?.role === "tool";
    if (isAnswered || step > 0) return "Done.";
    const [toolName = "", ...words] = userText.split(" ");
    return { toolCalls: [{ toolName, input: { query: words.join(" ") }, toolCallId: "c1" }] };
  });
  class Parent extends Think {
    override workspaceTools = false as const;
    static {
      callable(this, "alone");
      callable(this, "quiet");
      callable(this, "stopRun");
    }
    override getModel() {
      return parentModel;
    }
    override getTools(): ToolSet {
      return {
        research: agentTool(Researcher, { description: "Research.", inputSchema, displayName: "Researcher" }),
        later: agentTool(Researcher, { description: "Research later.", inputSchema, detached: { maxBudgetMs: 0 } }),
        team: durableTool(
          tool({
            inputSchema,
            execute: async (_input, { toolCallId }) => {
              const { turn = "" } = getCurrentAgent();
              const runs = ["second", "first", "third"].map((query, at) =>
                this.runAgentTool(Researcher, {
                  input: { query },
                  runId: `${turn}-${query}`,
                  parentToolCallId: toolCallId,
                  displayOrder: [1, 0, 2][at] ?? 0,
                }),
              );
              return (await Promise.all(runs)).map(({ status }) => status);
            },
          }),
          { replay: "safe" },
        ),
      };
    }
    /** A run that no tool call started. */
    async alone(query: string): Promise<string> {
      return (await this.runAgentTool(Researcher, { input: { query }, detached: true })).runId;
    }
    /** The same, of which clients hear no words. */
    async quiet(query: string): Promise<string> {
      return (await this.runAgentTool(Researcher, { input: { query }, detached: true, eventDelivery: "terminal" }))
        .runId;
    }
    stopRun(runId: string): Promise<void> {
      return this.cancelAgentTool(runId);
    }
  }
  return { Parent, Researcher };
}
