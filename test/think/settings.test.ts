import type { ToolSet } from "ai";
import type { Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { chunksOf, textIn, user } from "../chat/client.ts";
import { openThink, refusal, said, sent, serverTool, systemOf } from "./harness.ts";

test("a class that says nothing but its model is a whole agent", async () => {
  const model = scriptedModel(["Hello."]);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
      },
  );
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect((await kit.stored()).map(textIn)).toEqual(["Hi.", "Hello."]);
  expect(systemOf(model)).toContain("careful");
});

test("a class without a model says so, and nothing is asked", async () => {
  const kit = await openThink((Base) => class Unfinished extends Base {});
  const end = await kit.ask("Hi.");
  expect(end.status).toBe("error");
  expect(end.error).toContain("Unfinished must override getModel()");
  expect((await kit.agent()).usage().calls).toBe(0);
});

test("getModel may be slow, and is asked for every turn", async () => {
  const model = scriptedModel(["one", "two"]);
  let asked = 0;
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override async getModel() {
          asked++;
          await Promise.resolve();
          return model;
        }
      },
  );
  await kit.ask("1");
  await kit.ask("2");
  expect(asked).toBe(2);
});

test("of several models the next one is taken when one fails for good", async () => {
  const first = scriptedModel([{ error: refusal(401) }], { modelId: "first" });
  const second = scriptedModel(["from the second"], { modelId: "second" });
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return [first, second];
        }
      },
  );
  await kit.ask("Hi.");
  expect(textIn(await kit.last())).toBe("from the second");
  expect((await kit.agent()).listUsage().map(({ model, modelIndex }) => [model, modelIndex])).toEqual([
    ["scripted/second", 1],
    ["scripted/first", 0],
  ]);
});

test("the system prompt is the class's own, and what the tools allow comes after it", async () => {
  const model = scriptedModel(["ok", "ok"]);
  let tools: ToolSet = {};
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override async getSystemPrompt() {
          return "You are a lighthouse.";
        }
        override getTools() {
          return tools;
        }
      },
  );
  await kit.ask("Hi.");
  expect(systemOf(model)).toBe("You are a lighthouse.");
  tools = { signal: serverTool(() => "done"), bash: serverTool(() => "") };
  await kit.ask("Again.");
  expect(systemOf(model, 1)).toMatch(/^You are a lighthouse\.\n/);
  expect(systemOf(model, 1)).toContain("signal, bash");
  expect(systemOf(model, 1)).toContain("shell commands");
});

test("the block on the tools names those that the model is offered, and no other", async () => {
  const model = scriptedModel(["ok", "ok"]);
  let activeTools: string[] = ["light"];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools(): ToolSet {
          return { light: serverTool(() => ""), bash: serverTool(() => "") };
        }
        override beforeTurn() {
          return { activeTools };
        }
      },
  );
  await kit.ask("Hi.");
  expect(model.calls[0]?.tools.map(({ name }) => name)).toEqual(["light"]);
  expect(systemOf(model)).toContain("light");
  expect(systemOf(model)).not.toContain("bash");
  expect(systemOf(model)).not.toContain("shell");
  activeTools = [];
  await kit.ask("Again.");
  expect(model.calls[1]?.tools).toEqual([]);
  expect(systemOf(model, 1)).not.toContain("Tools of this turn");
});

test("the block says which tools run on the user's device", async () => {
  const model = scriptedModel(["ok"]);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: [{ type: "text", text: "Hi." }] }], {
    clientTools: [{ name: "locate", description: "Where is the user?", parameters: { type: "object" } }],
  });
  await client.done("r1");
  expect(systemOf(model)).toContain("on the user's device: locate");
  expect(model.calls[0]?.tools.map(({ name }) => name)).toEqual(["locate"]);
});

test("a client's tool cannot take the place of one of the server", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "c1" }] } : "done",
  );
  let ran = 0;
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { pay: serverTool(() => ++ran) };
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: [{ type: "text", text: "Pay." }] }], {
    clientTools: [{ name: "pay", description: "mine", parameters: { type: "object" } }],
  });
  await client.done("r1");
  expect(ran).toBe(1);
});

test.each([
  ["maxSteps", { maxSteps: 2 }],
  ["getMaxSteps", { getMaxSteps: () => 2 }],
])("%s bounds the model calls of a turn", async (_name, setting) => {
  const model = scriptedModel(() => ({ toolCalls: [{ toolName: "again", input: {} }] }));
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { again: serverTool(() => "again") };
        }
      },
  );
  Object.assign(await kit.agent(), setting);
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(model.calls).toHaveLength(2);
  // The calls of the last step have run: nothing is left without a result.
  expect((await kit.last())?.parts.filter((part) => part.type === "tool-again")).toHaveLength(2);
  expect((await kit.agent()).hasPendingInteraction()).toBe(false);
});

test("by default ten model calls are the most", async () => {
  const model = scriptedModel(() => ({ toolCalls: [{ toolName: "again", input: {} }] }));
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { again: serverTool(() => "again") };
        }
      },
  );
  await kit.ask("Go.");
  expect(model.calls).toHaveLength(10);
});

test("sendReasoning says whether clients see how the model thought", async () => {
  const model = scriptedModel(() => ({ reasoning: "hmm", text: "yes" }));
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
      },
  );
  await kit.ask("1");
  expect((await kit.last())?.parts.map(({ type }) => type)).toContain("reasoning");
  (await kit.agent()).sendReasoning = false;
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: [{ type: "text", text: "2" }] }]);
  await client.done("r1");
  expect((await kit.last())?.parts.map(({ type }) => type)).not.toContain("reasoning");
  expect(chunksOf(client.of("r1")).filter(({ type }) => type.startsWith("reasoning"))).toEqual([]);
});

test("assembleContext decides what the model reads; what the turn adds comes after it", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "seen",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => "a boat") };
        }
        override async assembleContext(context: Parameters<InstanceType<typeof Base>["assembleContext"]>[0]) {
          return [said("A fact."), ...(await super.assembleContext(context))];
        }
      },
  );
  await kit.ask("What is there?");
  const [before, after] = [sent(model, 0), sent(model, 1)];
  expect(before).toHaveLength(2);
  expect(before[0]).toContain("A fact.");
  expect(after.slice(0, 2)).toEqual(before);
  expect(after.slice(2).join()).toContain("a boat");
});

test("what configure stores is there after a restart, and nothing else is", async () => {
  const kit = await openThink((Base) => class extends Base {});
  expect((await kit.agent()).getConfig()).toBeUndefined();
  await (await kit.agent()).configure({ tier: "fast", at: [1, 2] });
  await kit.restart();
  expect((await kit.agent()).getConfig<{ tier: string }>()).toEqual({ tier: "fast", at: [1, 2] });
  await (await kit.agent()).configure({ tier: "slow" });
  expect((await kit.agent()).getConfig()).toEqual({ tier: "slow" });
  const loop: Record<string, unknown> = {};
  loop.self = loop;
  await expect((await kit.agent()).configure(loop)).rejects.toMatchObject({ code: "bad_input" });
  expect((await kit.agent()).getConfig()).toEqual({ tier: "slow" });
});

test("every agent has files, and the model tools for them, unless the class says otherwise", async () => {
  const model = scriptedModel(["one", "two", "three", "four"]);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
      },
  );
  const agent = await kit.agent();
  await agent.workspace.writeFile("/a.txt", "1");
  expect(await agent.workspace.readFile("/a.txt")).toBe("1");
  const names = async (settings: Partial<Pick<Think, "workspaceTools" | "workspaceBash" | "getWorkspace">>) => {
    Object.assign(agent, settings);
    await kit.ask("Hi.");
    return model.calls.at(-1)?.tools.map(({ name }) => name);
  };
  const files = ["read", "write", "edit", "list", "find", "grep", "delete"];
  expect(await names({ workspaceTools: {} })).toEqual([...files, "bash"]);
  expect(await names({ workspaceBash: false })).toEqual(files);
  const long = ["read_file", "write_file", "edit_file", "list_directory", "find_files", "grep", "delete"];
  expect(await names({ workspaceTools: { names: "long" } })).toEqual(long);
  expect(await names({ getWorkspace: () => null })).toEqual([]);
});

test.each([Number.NaN, undefined])(
  "maxSteps that is no number is an error, not a turn without end: %s",
  async (value) => {
    const model = scriptedModel(() => ({ toolCalls: [{ toolName: "look", input: {} }] }));
    const kit = await openThink(
      (Base) =>
        class extends Base {
          override getModel() {
            return model;
          }
          override getTools() {
            return { look: serverTool(() => 1) };
          }
          override getMaxSteps() {
            return value as number;
          }
        },
    );
    expect(await kit.ask("Go.")).toMatchObject({ status: "error", error: expect.stringContaining("maxSteps") });
    expect(model.calls).toHaveLength(0);
  },
);

test("the name of a budget's question is taken: a client's tool of it is passed over, the agent's own is refused", async () => {
  const model = scriptedModel(() => "Hello.");
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")], { clientTools: [{ name: "continue_over_budget" }] });
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(model.calls[0]?.tools ?? []).toEqual([]);
  (await kit.agent()).getTools = () => ({ continue_over_budget: serverTool(() => 1) });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "error", error: expect.stringContaining("another name") });
});
