// Checked by the compiler (`npm run check`), never run.
import { jsonSchema, type LanguageModel, tool } from "ai";
import { agent, Agent, type AgentEnv, agentTool, callable, type Think } from "perdure";
import type { HostedAgentClass } from "perdure/host";
import { createHost, findAgents, type FoundAgents, memoryStorage, serve } from "perdure/node";
import { expectTypeOf } from "vitest";

declare const model: LanguageModel;

const tools = {
  search: tool({
    inputSchema: jsonSchema<{ query: string }>({ type: "object" }),
    execute: async ({ query }) => ({ hits: [query] }),
  }),
  add: tool({ inputSchema: jsonSchema<{ a: number; b: number }>({ type: "object" }), execute: ({ a, b }) => a + b }),
};

// Everything is inferred: the state from its first value, the tools from what they are.
export const Full = agent({
  name: "Full",
  model: async (self) => {
    expectTypeOf(self).toEqualTypeOf<Think<AgentEnv, { count: number }>>();
    return [model, "openai/gpt-5"];
  },
  initialState: { count: 0 },
  instructions: (self) => `${self.name} has ${self.state.count}.`,
  tools,
  maxSteps: (self) => self.state.count + 1,
  budgets: { turn: { maxTokens: 1000 } },
  messageConcurrency: "steer",
  options: { allowClientState: true },
  onStart: (self, props) => {
    expectTypeOf(props).toEqualTypeOf<object | undefined>();
    expectTypeOf(self.env).toEqualTypeOf<AgentEnv>();
    self.setState({ count: 1 });
    // @ts-expect-error not the state
    self.setState({ total: 1 });
  },
  onStateChanged: (_self, state) => void expectTypeOf(state).toEqualTypeOf<{ count: number }>(),
  beforeTurn: (_self, context) => {
    expectTypeOf(context.tools).toEqualTypeOf<typeof tools>();
    return { activeTools: ["search"] };
  },
  beforeToolCall: (self, context) => {
    expectTypeOf(self.state.count).toBeNumber();
    expectTypeOf(context.toolName).toEqualTypeOf<"search" | "add">();
    if (context.toolName !== "add") return undefined;
    expectTypeOf(context.input).toEqualTypeOf<{ a: number; b: number }>();
    return { action: "allow", input: { ...context.input, a: 1 } };
  },
  afterToolCall: (_self, context) => {
    if (context.success && context.toolName === "search") {
      expectTypeOf(context.output).toEqualTypeOf<{ hits: string[] }>();
    }
  },
  onChatResponse: (self, result) => {
    expectTypeOf(result.requestId).toBeString();
    expectTypeOf(self.messages.length).toBeNumber();
  },
});
expectTypeOf<InstanceType<typeof Full>>().toEqualTypeOf<Think<AgentEnv, { count: number }>>();
expectTypeOf(Full).toExtend<HostedAgentClass>();

// Tools as a function are inferred too.
export const Asked = agent({
  model,
  tools: async (self) => (self.name === "" ? tools : tools),
  beforeToolCall: (_self, context) => void expectTypeOf(context.toolName).toEqualTypeOf<"search" | "add">(),
});
expectTypeOf<InstanceType<typeof Asked>>().toEqualTypeOf<Think>();

/** It is an ordinary class. */
export class More extends agent({ model, initialState: (): { words: string[] } => ({ words: [] }) }) {
  static {
    callable(this, "say");
  }
  say(word: string): number {
    this.setState({ words: [...this.state.words, word] });
    return this.state.words.length;
  }
  async child(): Promise<void> {
    const full = await this.subAgent(Full, "one");
    expectTypeOf(await full.cancelChat("id")).toBeBoolean();
  }
}

/** A tool whose work a declared agent does. */
export const research = agentTool(Full, {
  description: "Finds something out.",
  inputSchema: jsonSchema<{ question: string }>({ type: "object" }),
});

/** What goes to `onStart`, named. */
export const WithProps = agent<AgentEnv, unknown, { region: string }>({
  model,
  onStart: (_self, props) => void expectTypeOf(props).toEqualTypeOf<{ region: string } | undefined>(),
});

export const Busy = agent({
  model,
  scheduledTasks: (self) => ({
    digest: { schedule: "every weekday at 08:00 in Europe/Berlin", prompt: () => `Greet ${self.name}.` },
  }),
});
// @ts-expect-error not a schedule
agent({ model, scheduledTasks: { often: { schedule: "often", prompt: "Go." } } });
// @ts-expect-error a chat agent needs a model
agent({ instructions: "Hi." });
// @ts-expect-error not a setting
agent({ model, maxStep: 3 });
// @ts-expect-error not a policy
agent({ model, messageConcurrency: "later" });
// @ts-expect-error no such tool
agent({ model, tools, beforeTurn: () => ({ activeTools: ["subtract"] }) });
// @ts-expect-error a prompt is a text
agent({ model, instructions: () => 5 });
// @ts-expect-error not what the state is
agent<AgentEnv, { count: number }>({ model, initialState: { count: "none" } });

/** Where agents come from. */
export async function hosts(): Promise<void> {
  class Plain extends Agent {}
  await serve({ agents: { Full, More, Plain }, dir: "data" });
  await serve({ agents: [More, Plain], dir: "data" });
  await serve({ agents: "./agents", dir: "data", watch: true });
  await serve({ agents: new URL("./agents", import.meta.url), dir: "data" });
  // @ts-expect-error not an agent
  await serve({ agents: { Date }, dir: "data" });
  const found = await findAgents("./agents");
  expectTypeOf(found).toEqualTypeOf<FoundAgents>();
  const host = createHost({ agents: found.agents, subAgents: found.subAgents, storage: memoryStorage() });
  host.replaceAgents(found);
  createHost({ ...found, dir: "data" });
  // @ts-expect-error it would have to wait: see findAgents()
  createHost({ agents: "./agents", dir: "data" });
}
