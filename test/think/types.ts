// Checked by the compiler (`npm run check`), never run.
import { jsonSchema, type LanguageModel, Output, tool, type ToolSet } from "ai";
import {
  type ChatResponseResult,
  type ChunkContext,
  type DurableExecutionOptions,
  durableTool,
  type PrepareStepContext,
  runStep,
  type SaveMessagesResult,
  type StepConfig,
  type StepContext,
  type StreamCallback,
  Think,
  type ToolCallContext,
  type ToolCallDecision,
  type ToolCallResultContext,
  type ToolResultDecision,
  type TurnConfig,
  type TurnContext,
} from "perdure";
import type { ReturnedCall, SubmitResult } from "perdure/chat";
import { expectTypeOf } from "vitest";

declare const model: LanguageModel;

const tools = {
  search: tool({
    inputSchema: jsonSchema<{ query: string; limit?: number }>({ type: "object" }),
    execute: async ({ query }) => ({ hits: [query] }),
  }),
  add: durableTool(
    tool({ inputSchema: jsonSchema<{ a: number; b: number }>({ type: "object" }), execute: ({ a, b }) => a + b }),
    { replay: "safe" },
  ),
};
type Tools = typeof tools;

/** A tool that works in steps. */
export const stepping = tool({
  inputSchema: jsonSchema<{ order: string }>({ type: "object" }),
  execute: async ({ order }, { step = runStep }: DurableExecutionOptions) => {
    const price = await step("price", async () => ({ order, cents: 5 }));
    expectTypeOf(price).toEqualTypeOf<{ order: string; cents: number }>();
    return step("charge", ({ idempotencyKey, signal }) => {
      expectTypeOf(idempotencyKey).toEqualTypeOf<string>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      return price.cents;
    });
  },
});

/** A class that changes results. */
export class Discreet extends Think {
  override afterToolCall({ toolName }: ToolCallResultContext<Tools>): ToolResultDecision | undefined {
    // @ts-expect-error: it is "withhold"
    const wrong: ToolResultDecision = { action: "hide" };
    if (toolName === "add") return { action: "withhold", reason: "No." };
    return Math.random() < 2 ? { action: "replace", output: 1 } : wrong;
  }
  original(): ReturnedCall | undefined {
    return this.originalToolResult("c1");
  }
}

/** A class that names its tools in every hook. */
export class Typed extends Think {
  override getModel() {
    return model;
  }
  override getTools() {
    return tools;
  }
  override beforeTurn(context: TurnContext<Tools>): TurnConfig<Tools> {
    expectTypeOf(context.tools).toEqualTypeOf<Tools>();
    return { activeTools: ["search"], toolChoice: { type: "tool", toolName: "add" } };
  }
  override beforeStep(context: PrepareStepContext<Tools>): StepConfig<Tools> | undefined {
    expectTypeOf(context.stepNumber).toEqualTypeOf<number>();
    return context.stepNumber === 0 ? { activeTools: ["search"] } : undefined;
  }
  override beforeToolCall(context: ToolCallContext<Tools>): ToolCallDecision | undefined {
    expectTypeOf(context.toolName).toEqualTypeOf<"search" | "add">();
    if (context.toolName !== "search") return undefined;
    expectTypeOf(context.input).toEqualTypeOf<{ query: string; limit?: number }>();
    return { action: "allow", input: { ...context.input, limit: Math.min(context.input.limit ?? 10, 50) } };
  }
  override afterToolCall(context: ToolCallResultContext<Tools>): void {
    expectTypeOf(context.durationMs).toEqualTypeOf<number>();
    if (!context.success) {
      expectTypeOf(context.error).toEqualTypeOf<unknown>();
      expectTypeOf(context.output).toEqualTypeOf<undefined>();
      return;
    }
    if (context.toolName === "search") expectTypeOf(context.output).toEqualTypeOf<{ hits: string[] }>();
    if (context.toolName === "add") expectTypeOf(context.output).toEqualTypeOf<number>();
  }
  override onStepFinish(step: StepContext<Tools>): void {
    for (const call of step.staticToolCalls) {
      if (call.toolName === "add") expectTypeOf(call.input).toEqualTypeOf<{ a: number; b: number }>();
    }
    for (const result of step.staticToolResults) {
      if (result.toolName === "search") expectTypeOf(result.output).toEqualTypeOf<{ hits: string[] }>();
    }
    expectTypeOf(step.usage.inputTokens).toEqualTypeOf<number | undefined>();
  }
  override onStepEnd(step: StepContext<Tools>): void {
    expectTypeOf(step.text).toEqualTypeOf<string>();
  }
  override onChunk({ chunk }: ChunkContext<Tools>): void {
    if (chunk.type === "text-delta") expectTypeOf(chunk.text).toEqualTypeOf<string>();
  }
  override onChatResponse(result: ChatResponseResult): void {
    expectTypeOf(result.output).toEqualTypeOf<unknown>();
  }
}

/** A class that names none: nothing is any. */
export class Untyped extends Think {
  override async getModel() {
    return [model, "openai/gpt-5"];
  }
  override beforeToolCall(context: ToolCallContext) {
    expectTypeOf(context.toolName).toEqualTypeOf<string>();
    expectTypeOf(context.input).toEqualTypeOf<unknown>();
  }
  override afterToolCall(context: ToolCallResultContext) {
    expectTypeOf(context.output).toEqualTypeOf<unknown>();
    expectTypeOf(context.error).toEqualTypeOf<unknown>();
  }
  override beforeTurn(context: TurnContext) {
    expectTypeOf(context.tools).toEqualTypeOf<ToolSet>();
    expectTypeOf(context.body).toEqualTypeOf<Record<string, unknown> | undefined>();
    return { temperature: 0.2, maxSteps: 3 };
  }
}

export const named: TurnConfig<Tools> = { activeTools: ["add"] };
// @ts-expect-error no such tool
export const unknownTool: TurnConfig<Tools> = { activeTools: ["subtract"] };
// @ts-expect-error no such tool
export const unknownChoice: TurnConfig<Tools> = { toolChoice: { type: "tool", toolName: "subtract" } };
// @ts-expect-error not a setting of a step
export const tooMuch: StepConfig = { maxSteps: 3 };
// @ts-expect-error a decision needs what it decides on
export const noOutput: ToolCallDecision = { action: "substitute" };

export async function turns(agent: Typed): Promise<void> {
  const callback: StreamCallback = {
    onEvent: (json) => void expectTypeOf(json).toEqualTypeOf<string>(),
    onDone: () => {},
  };
  expectTypeOf(await agent.runTurn({ input: "Hi." })).toEqualTypeOf<SaveMessagesResult>();
  expectTypeOf(await agent.runTurn({ mode: "wait", input: "Hi." })).toEqualTypeOf<SaveMessagesResult>();
  expectTypeOf(await agent.runTurn({ mode: "stream", input: "Hi.", callback })).toEqualTypeOf<SaveMessagesResult>();
  expectTypeOf(await agent.runTurn({ mode: "submit", input: "Hi." })).toEqualTypeOf<SubmitResult>();
  expectTypeOf(await agent.chat("Hi.", callback)).toEqualTypeOf<SaveMessagesResult>();

  const schema = jsonSchema<{ port: string }>({ type: "object" });
  const structured = await agent.runTurn({ input: "Hi.", config: { output: Output.object({ schema }) } });
  expectTypeOf(structured.output).toEqualTypeOf<{ port: string } | undefined>();
  const chosen = await agent.runTurn({ input: "Hi.", config: { output: Output.choice({ options: ["a", "b"] }) } });
  expectTypeOf(chosen.output).toEqualTypeOf<"a" | "b" | undefined>();

  // @ts-expect-error somebody has to listen
  await agent.runTurn({ mode: "stream", input: "Hi." });
  // @ts-expect-error a submission is a message
  await agent.runTurn({ mode: "submit" });
  // @ts-expect-error no such mode
  await agent.runTurn({ mode: "later", input: "Hi." });
  // @ts-expect-error a submission outlives its caller's signal
  await agent.runTurn({ mode: "submit", input: "Hi.", signal: new AbortController().signal });
  // @ts-expect-error the end must be heard
  await agent.chat("Hi.", { onEvent: () => {} });
}

export async function settings(agent: Typed): Promise<void> {
  interface Config {
    readonly tier: "fast" | "capable";
  }
  await agent.configure<Config>({ tier: "fast" });
  expectTypeOf(agent.getConfig<Config>()).toEqualTypeOf<Config | undefined>();
  expectTypeOf(agent.getConfig()).toEqualTypeOf<unknown>();
  // @ts-expect-error no such tier
  await agent.configure<Config>({ tier: "slow" });
  agent.budgets = { turn: { maxTokens: 1000 }, agent: { maxCost: 5, soft: 0.8 } };
  // @ts-expect-error no such scope
  agent.budgets = { day: { maxTokens: 1000 } };
  agent.prices = { "my/model": { input: 1, output: 2 } };
  agent.prices = (name) => (name.startsWith("my/") ? { input: 1, output: 2 } : undefined);
  // @ts-expect-error what does not say so runs never twice, what says so is safe
  durableTool(tools.search, { replay: "sometimes" });
}
