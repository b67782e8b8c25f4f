// Hooks of turns, steps and tools, and what a turn may change.
import { hasToolCall, tool, type UIMessage } from "ai";
import {
  type ExtensionDeclaration,
  type PrepareStepContext,
  type StepContext,
  Think,
  type ToolCallContext,
  type ToolCallDecision,
  type ToolCallResultContext,
  type TurnConfig,
  type TurnContext,
} from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { ask, type Env, open, textOf } from "./open.ts";

const searched: unknown[] = [];
const tools = {
  search: tool({
    description: "Search the notes.",
    inputSchema: z.object({ query: z.string(), limit: z.number().optional() }),
    execute: (input) => {
      searched.push(input);
      return ["one"];
    },
  }),
};

test("hooks with the types of the tools", async () => {
  const told: string[] = [];
  class Librarian extends Think<Env> {
    override getModel() {
      return this.env.AI;
    }
    override getTools() {
      return tools;
    }
    override beforeStep(ctx: PrepareStepContext<typeof tools>) {
      if (ctx.stepNumber === 0)
        return { activeTools: ["search"], toolChoice: { type: "tool" as const, toolName: "search" as const } };
      return undefined;
    }
    override beforeToolCall(ctx: ToolCallContext<typeof tools>): ToolCallDecision | undefined {
      if (ctx.toolName !== "search") return undefined;
      const query: string = ctx.input.query;
      told.push(query);
      return { action: "allow", input: { ...ctx.input, limit: Math.min(ctx.input.limit ?? 10, 50) } };
    }
    override afterToolCall(ctx: ToolCallResultContext<typeof tools>) {
      if (ctx.success) told.push(`${ctx.toolName} ok, ${typeof ctx.durationMs}`, ...ctx.output);
      else told.push(`${ctx.toolName} failed: ${String(ctx.error)}`);
    }
    override onStepFinish(ctx: StepContext<typeof tools>) {
      const anthropic = ctx.providerMetadata?.anthropic as { cacheReadInputTokens?: number } | undefined;
      told.push(`cache read: ${anthropic?.cacheReadInputTokens ?? 0}`);
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "search", input: { query: "boats", limit: 90 } }] } : "Found.",
  );
  await open({ Main: Librarian }, { AI: model }).saveMessages([ask("Find boats.")]);
  expect(searched).toEqual([{ query: "boats", limit: 50 }]);
  expect(told).toEqual(["boats", "search ok, number", "one", "cache read: 0", "cache read: 0"]);
  expect(model.calls[0]?.options.toolChoice).toMatchObject({ type: "tool", toolName: "search" });
});

test("beforeTurn: another model for turns that go on with an answer", async () => {
  class Thrifty extends Think<Env & { CHEAP: Env["AI"] }> {
    override getModel() {
      return this.env.AI;
    }
    override beforeTurn(ctx: TurnContext) {
      return ctx.continuation ? { model: this.env.CHEAP } : undefined;
    }
  }
  const agent = open({ Main: Thrifty }, { AI: scriptedModel(["Dear."]), CHEAP: scriptedModel([" Cheap."]) });
  await agent.saveMessages([ask("Hi.")]);
  await agent.continueLastTurn();
  expect(textOf((await agent.getHistory()).at(-1))).toBe("Dear. Cheap.");
});

test("all that a turn may change", async () => {
  const model = scriptedModel(["Yes."]);
  const config: TurnConfig = {
    model,
    system: "Be brief.",
    messages: [{ role: "user", content: "Only this." }],
    tools,
    activeTools: ["search"],
    toolChoice: "auto",
    maxSteps: 3,
    stopWhen: hasToolCall("finalAnswer"),
    sendReasoning: false,
    maxOutputTokens: 200,
    temperature: 0.2,
    topP: 0.9,
    topK: 40,
    presencePenalty: 0.1,
    frequencyPenalty: 0.1,
    stopSequences: ["END"],
    seed: 7,
    maxRetries: 0,
    timeout: { totalMs: 60_000 },
    headers: { "x-turn": "1" },
    providerOptions: { scripted: { fast: true } },
    experimental_telemetry: { isEnabled: false },
    chatStreamStallTimeoutMs: 0,
  };
  class Set extends Think<Env> {
    override beforeTurn() {
      return config;
    }
    override getModel() {
      return this.env.AI;
    }
  }
  await open({ Main: Set }, { AI: model }).saveMessages([ask("Hi.")]);
  expect(model.calls[0]?.options).toMatchObject({ temperature: 0.2, topK: 40, seed: 7, maxOutputTokens: 200 });
  expect(JSON.stringify(model.calls[0]?.prompt)).toContain("Only this.");
});

test("an extension listens to calls of tools, and writes down what it saw", async () => {
  const source = `({
    tools: {},
    hooks: {
      beforeToolCall: async (snapshot, host) => {},
      afterToolCall: async (snapshot, host) => {
        await host?.writeFile("logs/" + snapshot.toolName + ".json", JSON.stringify(snapshot));
      },
      onStepFinish: async (snapshot, host) => {}
    }
  })`;
  class Watched extends Think<Env> {
    // A sandbox that comes along, in the place of a Worker loader.
    override extensionLoader = true as const;
    override getModel() {
      return this.env.AI;
    }
    override getTools() {
      return tools;
    }
    override getExtensions(): ExtensionDeclaration[] {
      const manifest = {
        name: "diary",
        version: "1.0.0",
        permissions: { workspace: "read-write" as const },
        hooks: ["beforeToolCall" as const, "afterToolCall" as const, "onStepFinish" as const],
      };
      return [{ manifest, source }];
    }
    log(): Promise<string | null> {
      return this.workspace.readFile("logs/search.json");
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "search", input: { query: "oars" } }] } : "Found.",
  );
  const agent = open({ Main: Watched }, { AI: model });
  await agent.saveMessages([ask("Find oars.")]);
  await expect.poll(async () => (await agent.log()) ?? "").toContain("oars");
  const last: UIMessage | undefined = (await agent.getHistory()).at(-1);
  expect(textOf(last)).toBe("Found.");
});
