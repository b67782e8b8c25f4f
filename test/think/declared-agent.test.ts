import { jsonSchema, tool } from "ai";
import { agent, type AgentHost, callable, PerdureError, Think } from "perdure";
import { memoryStorage } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { connect, openHost } from "../host/open-host.ts";
import { systemOf } from "./harness.ts";

const open = (agents: Parameters<typeof openHost>[0]["agents"]) => openHost({ agents, storage: memoryStorage() });

/** The text of a conversation's last message. */
async function lastText(stub: { readonly url: string }): Promise<string> {
  const messages = (await (await fetch(`${stub.url}/get-messages`)).json()) as { parts: { text?: string }[] }[];
  return (messages.at(-1)?.parts ?? []).map(({ text }) => text ?? "").join("");
}

test("values: model, instructions, tools and settings are those of the class", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "add", input: { a: 2, b: 3 } }] } : "It is five.",
  );
  const add = tool({
    inputSchema: jsonSchema<{ a: number; b: number }>({ type: "object" }),
    execute: ({ a, b }) => a + b,
  });
  const Sums = agent({
    model,
    instructions: "You add.",
    tools: { add },
    maxSteps: 4,
    workspaceTools: false,
    messageConcurrency: "latest",
    initialState: { asked: 0 },
  });
  const host = await open({ Sums });
  const stub = host.getAgentByName(Sums, "one");
  expect(await stub.runTurn({ input: "2 and 3?" })).toMatchObject({ status: "completed" });
  expect(await lastText({ url: `${host.url}/agents/sums/one` })).toBe("It is five.");
  expect(systemOf(model)).toMatch(/^You add\./);
  expect(model.calls[0]?.tools.map(({ name }) => name)).toEqual(["add"]);
  expect(await stub.getMaxSteps()).toBe(4);
  expect((await connect(host, "/agents/sums/one")).states()).toEqual([{ asked: 0 }]);

  const Poor = agent({ model, workspaceTools: false, budgets: { turn: { maxTokens: 1 } } });
  const poor = (await open({ Poor })).getAgentByName(Poor, "one");
  expect(await poor.runTurn({ input: "Hi." })).toMatchObject({
    status: "error",
    error: expect.stringContaining("budget") as string,
  });
});

test("functions are asked with the agent, each time", async () => {
  const model = scriptedModel(["one", "two"]);
  const Asked = agent({
    model: async (self) => (self.name === "anna" ? model : []),
    instructions: async (self) => `${self.name} was asked ${self.messages.length}.`,
    tools: (self) => ({ [`for-${self.name}`]: tool({ inputSchema: jsonSchema({ type: "object" }) }) }),
    maxSteps: (self) => self.name.length,
    workspaceTools: false,
    initialState: (self) => ({ owner: self.name }),
  });
  const host = await open({ Asked });
  const stub = host.getAgentByName(Asked, "anna");
  await stub.runTurn({ input: "Hi." });
  await stub.runTurn({ input: "Again." });
  expect([systemOf(model, 0), systemOf(model, 1)].map((text) => text.split("\n")[0])).toEqual([
    "anna was asked 1.",
    "anna was asked 3.",
  ]);
  expect(model.calls[0]?.tools.map(({ name }) => name)).toEqual(["for-anna"]);
  expect(await stub.getMaxSteps()).toBe(4);
  expect((await connect(host, "/agents/asked/ben")).states()).toEqual([{ owner: "ben" }]);
});

test("hooks get the agent and what the method gets; those that are left out are those of Think", async () => {
  const seen: string[] = [];
  const Hooked = agent({
    model: scriptedModel([{ text: "fine" }, { error: new Error("no") }]),
    onStart: (self, props) => void seen.push(`start ${self.name} ${JSON.stringify(props)}`),
    beforeTurn: (self, { system }) => {
      seen.push(`turn ${self.name} ${system.length > 0}`);
      return { maxRetries: 0 };
    },
    onStepFinish: (self, step) => void seen.push(`step ${self.name} ${step.text}`),
    onChatError: (self, error) => `${self.name}: ${error instanceof Error ? error.message : ""}!`,
    onChatResponse: (self, result) => void seen.push(`end ${self.name} ${result.status}`),
    onRequest: (self, request) => new Response(`${self.name} ${request.method}`),
    onError: (_self, error, connection) => void seen.push(`error ${String(error)} ${String(connection)}`),
  });
  const host = await open({ Hooked });
  const stub = host.getAgentByName(Hooked, "x", { props: { a: 1 } });
  expect(await stub.runTurn({ input: "Hi." })).toMatchObject({ status: "completed" });
  expect(await stub.runTurn({ input: "Hi." })).toMatchObject({ status: "error", error: "x: no!" });
  await expect.poll(() => seen.length).toBe(6);
  expect(seen).toEqual([
    'start x {"a":1}',
    "turn x true",
    "step x fine",
    "end x completed",
    "turn x true",
    "end x error",
  ]);
  expect(await (await fetch(`${host.url}/agents/hooked/x/page`)).text()).toBe("x GET");
  expect(Hooked.prototype.beforeTurn).not.toBe(Think.prototype.beforeTurn);
  expect(Hooked.prototype.beforeStep).toBe(Think.prototype.beforeStep);
});

test("tasks come again and again, by value or by function", async () => {
  const model = scriptedModel(() => "done");
  const daily = { schedule: "every day at 08:00 in Europe/Berlin", prompt: "Go." } as const;
  const ByValue = agent({ model, scheduledTasks: { daily } });
  const ByFunction = agent({
    model,
    // Without a zone it would not start.
    scheduledTasks: (self) => ({
      tidy: { schedule: "every day at 08:00", handler: () => self.setState({ ran: true }) },
    }),
    getDefaultTimezone: (self) => (self.name === "x" ? "Europe/Berlin" : undefined),
    initialState: { ran: false },
    onError: () => {},
  });
  const host = await open({ ByValue, ByFunction });
  expect(await host.getAgentByName(ByValue, "x").getScheduledTasks()).toEqual({ daily });
  expect(await host.getAgentByName(ByFunction, "x").getDefaultTimezone()).toBe("Europe/Berlin");
  await expect(host.getAgentByName(ByFunction, "y").getDefaultTimezone()).rejects.toThrow("needs a time zone");
  const plain = agent({ model });
  expect(plain.prototype.getScheduledTasks).toBe(Think.prototype.getScheduledTasks);
  expect(ByFunction.prototype.getScheduledTasks).not.toBe(Think.prototype.getScheduledTasks);
});

test("each agent has its own copy of the first state", async () => {
  const Lists = agent({ model: scriptedModel([]), initialState: { words: ["first"] } });
  class Spoiled extends Lists {
    static {
      callable(this, "spoil");
    }
    spoil(): number {
      return this.state.words.push("more");
    }
  }
  const host = await open({ Spoiled });
  expect(await host.getAgentByName(Spoiled, "a").spoil()).toBe(2);
  expect(await host.getAgentByName(Spoiled, "b").spoil()).toBe(2);
});

test("an ordinary class: it has a name or none, can be extended, and be a child", async () => {
  const model = scriptedModel(() => "hello");
  const Child = agent({ name: "Helper", model, options: { sendIdentityOnConnect: false } });
  class Parent extends agent({ model, maxSteps: 2 }) {
    static {
      callable(this, "ask");
    }
    override maxSteps = 3;
    constructor(host: AgentHost) {
      super(host);
      this.sendReasoning = false;
    }
    async ask(): Promise<string> {
      const result = await (await this.subAgent(Child, "c")).runTurn({ input: "Hi." });
      return `${result.status} ${this.getMaxSteps()}`;
    }
  }
  expect([Child.name, agent({ model }).name, Parent.name]).toEqual(["Helper", "", "Parent"]);
  expect([Child.options, agent({ model }).options]).toEqual([{ sendIdentityOnConnect: false }, {}]);
  const host = await openHost({ agents: [Parent], subAgents: [Child], storage: memoryStorage() });
  expect(await (await connect(host, "/agents/parent/p")).call("ask")).toBe("completed 3");
  expect(await lastText({ url: `${host.url}/agents/parent/p/sub/helper/c` })).toBe("hello");
});

test("what cannot work is refused at once", () => {
  const model = scriptedModel([]);
  // @ts-expect-error a model is needed
  expect(() => agent({ instructions: "Hi." })).toThrow("agent({ … }) needs `model`");
  const wrong = () => agent({ name: "sub", model });
  expect(wrong).toThrow(PerdureError);
  expect(wrong).toThrow('The class name "sub" becomes "sub" in URLs');
});
