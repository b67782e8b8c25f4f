// Parts of messages as they come to be: what tools do, what is stored when, and in which order it is read. Written after
// the samples on persistence, tools and ordering; a comment says what had to be written otherwise.
import { jsonSchema, tool, type UIMessage, wrapLanguageModel } from "ai";
import { agentTool, Think, type ToolCallContext, type ToolCallResultContext } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { chunksOf, textIn } from "../../chat/client.ts";
import { openSmall, shown } from "../../context/compacting.ts";
import { openThink } from "../../think/harness.ts";

const anything = jsonSchema<Record<string, unknown>>({ type: "object" });

test("by hand: a message first, then its part, then the part with its result", async () => {
  // `Session.updateMessage` and `Session.updatePart` are `appendMessage` and `updateMessage` of a session: a message is
  // written whole, in one commit. In a turn the engine does all of this by itself.
  const kit = await openSmall();
  const { session } = await kit.agent();
  const running = { type: "tool-task", toolCallId: "t1", state: "input-available", input: { prompt: "look" } };
  const message = { id: "m1", role: "assistant", parts: [running] } as UIMessage;
  session.appendMessage({ id: "u1", role: "user", parts: [{ type: "text", text: "Look into it." }] });
  session.appendMessage(message);
  session.updateMessage({
    ...message,
    parts: [{ ...running, state: "output-available", output: { title: "Looked", output: "Nothing there." } }],
  } as UIMessage);
  expect(session.getHistory().map(({ id }) => id)).toEqual(["u1", "m1"]);
  await kit.restart();
  await kit.ask("And?");
  expect(shown(kit.turns().at(-1))).toContain("Nothing there.");
});

test("progress: what a tool says on its way is shown, and the last of it is the result", async () => {
  // Instead of the callback `metadata()` a tool is a generator: each value that it yields is an output so far.
  const seen: unknown[] = [];
  const index = tool({
    inputSchema: anything,
    async *execute() {
      yield { title: "Indexing", metadata: { files: 1 } };
      yield { title: "Indexing", metadata: { files: 2 } };
      yield { title: "Indexed", metadata: { files: 3 }, output: "three files" };
    },
  });
  const kit = await openSmall({
    answer: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "index", input: {} }] } : "There are three."),
    tools: { index },
  });
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: [{ type: "text", text: "go" }] }]);
  await client.done("r1");
  for (const chunk of chunksOf(client.of("r1"))) if (chunk.type === "tool-output-available") seen.push(chunk);
  expect(seen.map((chunk) => (chunk as { preliminary?: boolean }).preliminary ?? false)).toEqual([
    true,
    true,
    true,
    false,
  ]);
  const part = (await kit.last())?.parts.find(({ type }) => type === "tool-index");
  expect(part).toMatchObject({ state: "output-available", output: { title: "Indexed", output: "three files" } });
});

test("text comes in deltas, and is one part when it ends", async () => {
  // `Session.updatePart({ part, delta })`: chunks are stored as they come (a flush window at a time) and sent after that.
  const deltas: string[] = [];
  const kit = await openSmall({
    answer: () => ({ text: ["The harbour ", "has nine ", "berths."] }),
    extend: (Base) =>
      class extends Base {
        override onChunk({ chunk }: Parameters<Think["onChunk"]>[0]) {
          if (chunk.type === "text-delta") deltas.push(chunk.text);
          return undefined;
        }
      },
  });
  await kit.ask("How many?");
  expect(deltas).toEqual(["The harbour ", "has nine ", "berths."]);
  expect((await kit.last())?.parts).toMatchObject([
    { type: "step-start" },
    { type: "text", text: "The harbour has nine berths.", state: "done" },
  ]);
});

test("tools: description, schema, what is told before and after, and what the model reads of the result", async () => {
  // `Plugin.trigger("tool.execute.before" | "tool.execute.after")` are `beforeToolCall` and `afterToolCall`. The session
  // and the message of a call are known to the agent: `this.session`, and the hooks' context.
  const told: string[] = [];
  const read = tool({
    description: "Reads a file.",
    inputSchema: jsonSchema<{ path: string }>({ type: "object", properties: { path: { type: "string" } } }),
    execute: async (args, options) => ({
      title: args.path,
      output: `text of ${args.path}`,
      metadata: { call: options.toolCallId },
    }),
    toModelOutput: ({ output }) => ({ type: "text", value: (output as { output: string }).output }),
  });
  const kit = await openSmall({
    answer: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "read", input: { path: "a.md" } }] } : "Read."),
    tools: { read, write: tool({ inputSchema: anything, execute: async () => "never" }) },
    extend: (Base) =>
      class extends Base {
        override beforeTurn() {
          // `tools: { write: false }` of a request: only what is named here is offered.
          return { activeTools: ["read"] };
        }
        override beforeToolCall(call: ToolCallContext) {
          told.push(`before ${call.toolName}`);
          return undefined;
        }
        override afterToolCall(call: ToolCallResultContext) {
          told.push(`after ${call.toolName}`);
          return undefined;
        }
      },
  });
  await kit.ask("Read a.md");
  expect(told).toEqual(["before read", "after read"]);
  expect(kit.turns()[0]?.tools.map(({ name }) => name)).toEqual(["read"]);
  expect(shown(kit.turns()[1])).toContain('"output":{"type":"text","value":"text of a.md"}');
  const part = (await kit.last())?.parts.find(({ type }) => type === "tool-read");
  expect(part).toMatchObject({ output: { title: "a.md", output: "text of a.md" } });
});

test("the model may be wrapped with middleware, and gets system, messages and tools", async () => {
  const model = scriptedModel(["Yes."]);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return wrapLanguageModel({
            model,
            middleware: {
              specificationVersion: "v4",
              transformParams: async ({ params }) => ({ ...params, temperature: 0 }),
            },
          });
        }
        override getSystemPrompt() {
          return "You keep the books.";
        }
      },
  );
  await kit.ask("Hello?");
  expect(model.calls[0]?.options.temperature).toBe(0);
  expect(model.calls[0]?.prompt.map(({ role }) => role)).toEqual(["system", "user"]);
});

test("a call goes from pending to running to completed, or to an error", async () => {
  // The states are those of the AI SDK: input-streaming, input-available, output-available, output-error.
  const kit = await openSmall({
    answer: ({ step }) =>
      step === 0
        ? {
            toolCalls: [
              { toolName: "good", input: { n: 1 }, chunkSize: 3 },
              { toolName: "bad", input: {} },
            ],
          }
        : "Both are known.",
    tools: {
      good: tool({ inputSchema: anything, execute: async () => "fine" }),
      bad: tool({
        inputSchema: anything,
        execute: async (): Promise<string> => Promise.reject(new Error("no such file")),
      }),
    },
  });
  const client = await kit.connect();
  client.request("r1", [{ id: "u1", role: "user", parts: [{ type: "text", text: "go" }] }]);
  await client.done("r1");
  const types = chunksOf(client.of("r1")).map(({ type }) => type);
  const states = ["tool-input-start", "tool-input-available", "tool-output-available"];
  expect(states.map((type) => types.indexOf(type as never))).toEqual(
    states.map((type) => types.indexOf(type as never)).toSorted((a, b) => a - b),
  );
  expect((await kit.last())?.parts.filter(({ type }) => type.startsWith("tool-"))).toMatchObject([
    { type: "tool-good", state: "output-available", output: "fine" },
    { type: "tool-bad", state: "output-error", errorText: expect.stringContaining("no such file") as string },
  ]);
});

test("order: words, then calls, then results, then words; stored and sent", async () => {
  const kit = await openSmall({
    answer: ({ step, userText }) =>
      step === 0 && userText === "Look!"
        ? { text: "I look.", toolCalls: [{ toolName: "look", input: {} }] }
        : "I have looked.",
    tools: { look: tool({ inputSchema: anything, execute: async () => "a boat" }) },
  });
  await kit.ask("Look!");
  expect((await kit.last())?.parts.map(({ type }) => type)).toEqual([
    "step-start",
    "text",
    "tool-look",
    "step-start",
    "text",
  ]);
  await kit.ask("Thanks.");
  expect(
    kit
      .turns()
      .at(-1)
      ?.prompt.map(({ role }) => role),
  ).toEqual([...["system", "user", "assistant", "tool", "assistant", "user"]]);
});

test("a subtask is a tool: another agent does it in a run of its own", async () => {
  // `TaskTool` and its pseudo-part are `agentTool(Class)`: stored by both agents, and carried on by both after a crash.
  const below = scriptedModel(["Three boats."]);
  class Counter extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return below;
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "task", input: { prompt: "Count the boats." } }] } : "They are three.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { task: agentTool(Counter, { description: "Does a task.", inputSchema: anything }) };
        }
      },
    { children: { Counter } },
  );
  expect(await kit.ask("How many boats?")).toMatchObject({ status: "completed" });
  expect(JSON.stringify(below.calls[0]?.prompt)).toContain("Count the boats.");
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("Three boats.");
});

test("a request on its way: stored, asked, its tools run, counted, and what it made is returned", async () => {
  // `SessionPrompt.prompt({ sessionID, parts })`.
  const kit = await openSmall({
    answer: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {} }] } : "A boat."),
    tools: { look: tool({ inputSchema: anything, execute: async () => "a boat" }) },
  });
  const agent = await kit.agent();
  const input: UIMessage = { id: "q1", role: "user", parts: [{ type: "text", text: "What is there?" }] };
  const end = await agent.runTurn({ input, session: "main" });
  expect(end).toMatchObject({ status: "completed" });
  expect(agent.usage({ turn: end.requestId })).toMatchObject({ calls: 2 });
  expect(agent.session.getHistory().map(textIn)).toEqual(["What is there?", "A boat."]);
});
