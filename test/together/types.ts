// Checked by the compiler (`npm run check`), never run.
import { type InferToolInput, type InferToolOutput, jsonSchema, type ToolSet } from "ai";
import {
  Agent,
  agentTool,
  type AgentToolLifecycleResult,
  type AgentToolRunInfo,
  type RunAgentToolResult,
  Think,
} from "perdure";
import type { AgentToolFailure, AgentToolReceipt, DetachedRunAgentToolResult } from "perdure/agent-tools";
import { expectTypeOf } from "vitest";
import { z } from "zod";

class Researcher extends Think {}
interface Report {
  readonly sources: string[];
}

const description = "Research.";
const inputSchema = z.object({ query: z.string(), limit: z.number().optional() });

export const plain = agentTool(Researcher, { description, inputSchema });
expectTypeOf<InferToolInput<typeof plain>>().toEqualTypeOf<{ query: string; limit?: number | undefined }>();
expectTypeOf<InferToolOutput<typeof plain>>().toEqualTypeOf<string | AgentToolFailure | AgentToolReceipt>();

export const structured = agentTool(Researcher, {
  description,
  inputSchema: jsonSchema<{ query: string }>({ type: "object" }),
  outputSchema: jsonSchema<Report>({ type: "object" }),
});
expectTypeOf<InferToolInput<typeof structured>>().toEqualTypeOf<{ query: string }>();
expectTypeOf<InferToolOutput<typeof structured>>().toEqualTypeOf<Report | AgentToolFailure | AgentToolReceipt>();
export const tools = { plain, structured } satisfies ToolSet;

export function read(output: Report | AgentToolFailure | AgentToolReceipt): string {
  if ("ok" in output) {
    expectTypeOf(output).toEqualTypeOf<AgentToolFailure>();
    expectTypeOf(output.status).toEqualTypeOf<"error" | "aborted" | "interrupted">();
    return output.error;
  }
  return "runId" in output ? output.note : output.sources.join();
}

// @ts-expect-error the model has to know when to use it
agentTool(Researcher, { inputSchema });
// @ts-expect-error and what to give it
agentTool(Researcher, { description });
// @ts-expect-error an agent is no tool
agentTool("Researcher", { description, inputSchema });

/** An agent that has work done. */
export class Desk extends Agent {
  readonly drawer = "locked";
  researched(_run: AgentToolRunInfo, _result: AgentToolLifecycleResult): void {}

  async work(): Promise<void> {
    expectTypeOf(await this.runAgentTool(Researcher, { input: "tea" })).toEqualTypeOf<RunAgentToolResult>();
    const typed = await this.runAgentTool<Report>(Researcher, { input: { query: "tea" } });
    expectTypeOf(typed.output).toEqualTypeOf<Report | undefined>();
    expectTypeOf(typed.status).toEqualTypeOf<"completed" | "error" | "aborted" | "interrupted">();
    const started = await this.runAgentTool(Researcher, { input: "tea", detached: true });
    expectTypeOf(started).toEqualTypeOf<DetachedRunAgentToolResult>();
    expectTypeOf(started.status).toEqualTypeOf<"running" | "completed" | "error" | "aborted" | "interrupted">();
    await this.runAgentTool(Researcher, { input: "tea", detached: { onFinish: "researched", maxBudgetMs: 1000 } });
    // @ts-expect-error no such method
    await this.runAgentTool(Researcher, { input: "tea", detached: { onFinish: "nobody" } });
    // @ts-expect-error no such mode
    await this.runAgentTool(Researcher, { input: "tea", detached: { onMilestones: { names: ["x"], mode: "shout" } } });
    // @ts-expect-error no such delivery
    await this.runAgentTool(Researcher, { input: "tea", eventDelivery: "some" });
    // @ts-expect-error there is always something to do
    await this.runAgentTool(Researcher, {});
    await this.clearAgentToolRuns({ status: ["completed", "error"], olderThan: Date.now() });
    // @ts-expect-error no such status
    await this.clearAgentToolRuns({ status: ["done"] });
    expectTypeOf(this.listAgentToolRuns()).toEqualTypeOf<AgentToolRunInfo[]>();
  }
}

export async function outside(desk: Desk): Promise<void> {
  await desk.runAgentTool(Researcher, { input: "tea", detached: { onFinish: "researched" } });
  // @ts-expect-error no such method
  await desk.runAgentTool(Researcher, { input: "tea", detached: { onFinish: "nobody" } });
}
