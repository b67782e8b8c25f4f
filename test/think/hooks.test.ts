import type { ToolSet, UIMessage } from "ai";
import type {
  ChunkContext,
  PrepareStepContext,
  StepContext,
  ToolCallContext,
  ToolCallDecision,
  ToolCallResultContext,
} from "perdure";
import { getCurrentAgent, type Think } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, serverTool } from "./harness.ts";

const callThenSay: Script = ({ step }) =>
  step === 0 ? { text: "Let me see.", toolCalls: [{ toolName: "add", input: { a: 1, b: 2 }, toolCallId: "c1" }] } : "3";

type Hooks = Partial<
  Pick<
    Think,
    | "beforeTurn"
    | "beforeStep"
    | "beforeToolCall"
    | "afterToolCall"
    | "onStepFinish"
    | "onStepEnd"
    | "onChunk"
    | "onChatResponse"
    | "assembleContext"
    | "getTools"
    | "getSystemPrompt"
  >
>;

/** An agent with these hooks, and a tool that adds. */
async function hooked(hooks: Hooks, script: Script = callThenSay, tools?: ToolSet) {
  const model = scriptedModel(script);
  const added: unknown[] = [];
  const add = serverTool<{ a: number; b: number }>((input) => {
    added.push(input);
    return input.a + input.b;
  });
  const kit = await openThink((Base) => {
    class Talk extends Base {
      override getModel() {
        return model;
      }
      override getTools(): ToolSet | Promise<ToolSet> {
        return tools ?? { add };
      }
    }
    Object.assign(Talk.prototype, hooks);
    return Talk;
  });
  return Object.assign(kit, { model, added });
}

function toolPart(message: UIMessage | undefined) {
  return message?.parts.find((part) => part.type === "tool-add");
}

test("the hooks of a turn come in order, each with what the AI SDK tells its own", async () => {
  const log: unknown[] = [];
  const kit = await hooked({
    beforeTurn: ({ requestId }) => void log.push(["turn", requestId.slice(0, 3)]),
    beforeStep: ({ stepNumber, steps, messages }) => void log.push(["step", stepNumber, steps.length, messages.length]),
    beforeToolCall: ({ toolName, input, stepNumber }) => void log.push(["before", toolName, input, stepNumber]),
    afterToolCall: ({ toolName, success, output }) => void log.push(["after", toolName, success, output]),
    onStepFinish: ({ stepNumber, finishReason }) => void log.push(["finish", stepNumber, finishReason]),
    onStepEnd: ({ stepNumber }) => void log.push(["end", stepNumber]),
    onChatResponse: ({ status }) => void log.push(["response", status]),
  });
  await kit.ask("1 + 2?");
  await expect.poll(() => log.at(-1)).toEqual(["response", "completed"]);
  expect(log).toEqual([
    ["turn", "srv"],
    ["step", 0, 0, 1],
    ["before", "add", { a: 1, b: 2 }, 0],
    ["after", "add", true, 3],
    ["finish", 0, "tool-calls"],
    ["end", 0],
    ["step", 1, 1, 3],
    ["finish", 1, "stop"],
    ["end", 1],
    ["response", "completed"],
  ]);
});

test("hooks and tools run as the agent, inside the turn", async () => {
  const seen: [string, boolean, string | undefined][] = [];
  const look = (what: string) => {
    const { agent, turn } = getCurrentAgent();
    seen.push([what, agent !== undefined, turn?.slice(0, 3)]);
  };
  const kit = await hooked(
    {
      beforeTurn: () => look("beforeTurn"),
      beforeStep: () => look("beforeStep"),
      beforeToolCall: () => look("beforeToolCall"),
      afterToolCall: () => look("afterToolCall"),
      onStepFinish: () => look("onStepFinish"),
      onChunk: () => look("onChunk"),
      getSystemPrompt: () => (look("getSystemPrompt"), ""),
    },
    callThenSay,
    { add: serverTool(() => look("tool")) },
  );
  await kit.ask("Hi.");
  const kinds = new Set(seen.map(([what]) => what));
  expect([...kinds].toSorted()).toEqual([
    "afterToolCall",
    "beforeStep",
    "beforeToolCall",
    "beforeTurn",
    "getSystemPrompt",
    "onChunk",
    "onStepFinish",
    "tool",
  ]);
  expect(seen.every(([, agent, turn]) => agent && turn === "srv")).toBe(true);
});

test("beforeStep is told all that the AI SDK's prepareStep is told", async () => {
  const contexts: PrepareStepContext[] = [];
  const kit = await hooked({ beforeStep: (context) => void contexts.push(context) });
  await kit.ask("Hi.");
  expect(contexts[1]).toMatchObject({
    stepNumber: 1,
    model: kit.model,
    initialMessages: [{ role: "user" }],
    responseMessages: [{ role: "assistant" }, { role: "tool" }],
    messages: [{ role: "user" }, { role: "assistant" }, { role: "tool" }],
  });
  expect(contexts[1]?.steps[0]).toMatchObject({ text: "Let me see.", toolResults: [{ output: 3 }] });
  expect(contexts[1]?.instructions).toContain("add");
});

test.each<[string, ToolCallDecision | undefined, unknown[], unknown]>([
  ["nothing", undefined, [{ a: 1, b: 2 }], 3],
  ["allow", { action: "allow" }, [{ a: 1, b: 2 }], 3],
  ["allow with another input", { action: "allow", input: { a: 5, b: 5 } }, [{ a: 5, b: 5 }], 10],
  ["block", { action: "block", reason: "Not today." }, [], "Not today."],
  ["block without a reason", { action: "block" }, [], "The call was blocked."],
  ["substitute", { action: "substitute", output: { from: "cache" } }, [], { from: "cache" }],
])("beforeToolCall: %s", async (_name, decision, ran, output) => {
  const kit = await hooked({ beforeToolCall: () => decision });
  await kit.ask("1 + 2?");
  expect(kit.added).toEqual(ran);
  const value = Object.values(outputsSent(kit.model, 1))[0] as { value: unknown };
  expect(value.value).toEqual(output);
  expect(toolPart((await kit.stored()).at(-1))).toMatchObject({ state: "output-available", output });
});

test("beforeToolCall is told the messages that led to the call, and the turn's signal", async () => {
  const contexts: ToolCallContext[] = [];
  const kit = await hooked({ beforeToolCall: (context) => void contexts.push(context) });
  await kit.ask("1 + 2?");
  expect(contexts).toMatchObject([
    { type: "tool-call", toolCallId: "c1", toolName: "add", messages: [{ role: "user" }], stepNumber: 0 },
  ]);
  expect(contexts[0]?.abortSignal.aborted).toBe(false);
});

test("afterToolCall is told how it ended, what was thrown itself, and with which input", async () => {
  const results: ToolCallResultContext[] = [];
  const full = Object.assign(new Error("The disk is full."), { code: "ENOSPC" });
  const kit = await hooked(
    {
      beforeToolCall: () => ({ action: "allow", input: { a: 9 } }),
      afterToolCall: (context) => void results.push(context),
    },
    ({ step }) =>
      step === 0
        ? {
            toolCalls: [
              { toolName: "good", input: {}, toolCallId: "c1" },
              { toolName: "bad", input: {}, toolCallId: "c2" },
            ],
          }
        : "done",
    {
      good: serverTool(() => "fine"),
      bad: serverTool(() => {
        throw full;
      }),
    },
  );
  await kit.ask("Hi.");
  const byId = new Map(results.map((result) => [result.toolCallId, result]));
  expect(byId.get("c1")).toMatchObject({ toolName: "good", success: true, output: "fine", input: { a: 9 } });
  expect(byId.get("c2")).toMatchObject({ toolName: "bad", success: false });
  expect(byId.get("c2")?.error).toBe(full);
  expect(results.every(({ durationMs }) => durationMs >= 0)).toBe(true);
});

test.each<[string, () => ToolCallDecision, object]>([
  ["blocked", () => ({ action: "block", reason: "No." }), { success: true, output: "No." }],
  ["blocked without words", () => ({ action: "block" }), { success: true, output: "The call was blocked." }],
  ["substituted", () => ({ action: "substitute", output: [7] }), { success: true, output: [7] }],
  ["failed by beforeToolCall", fail, { success: false, error: new Error("The hook is broken.") }],
])("afterToolCall is told of a call that was %s", async (_name, beforeToolCall, expected) => {
  const results: ToolCallResultContext[] = [];
  const kit = await hooked({ beforeToolCall, afterToolCall: (context) => void results.push(context) });
  await kit.ask("1 + 2?");
  expect(kit.added).toEqual([]);
  expect(results).toMatchObject([
    { toolCallId: "c1", toolName: "add", input: { a: 1, b: 2 }, durationMs: 0, ...expected },
  ]);
});

test("a beforeToolCall that throws is the error of that call: the model reads it, and the turn goes on", async () => {
  const tools = { add: serverTool(() => "added"), other: serverTool(() => "other") };
  const kit = await hooked(
    { beforeToolCall: ({ toolName }) => (toolName === "add" ? fail() : undefined) },
    ({ step }) =>
      step === 0
        ? {
            toolCalls: [
              { toolName: "add", input: {}, toolCallId: "c1" },
              { toolName: "other", input: {}, toolCallId: "c2" },
            ],
          }
        : "done",
    tools,
  );
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(outputsSent(kit.model, 1)).toMatchObject({
    c1: { type: "error-text", value: "The hook is broken." },
    c2: { value: "other" },
  });
  expect(toolPart(await kit.last())).toMatchObject({ state: "output-error", errorText: "The hook is broken." });
});

test("a substitute that no message can hold is the error of that call", async () => {
  const kit = await hooked({ beforeToolCall: () => ({ action: "substitute", output: () => 1 }) });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(toolPart(await kit.last())).toMatchObject({ state: "output-error" });
});

test("afterToolCall sees a result that is stored already, and that nobody was shown", async () => {
  const stored: unknown[] = [];
  const query = "SELECT status, result FROM perdure_tool_call";
  const kit = await hooked({
    async afterToolCall() {
      stored.push(...(await kit.rows(query)), JSON.stringify(await kit.stored()).includes('"output":3'));
    },
  });
  await kit.ask("Hi.");
  expect(stored).toMatchObject([
    { status: "returned", result: expect.stringContaining('"output":3') as string },
    false,
  ]);
  expect(await kit.rows(query)).toEqual([{ status: "settled", result: null }]);
});

test("onStepFinish is told the whole step", async () => {
  const steps: StepContext[] = [];
  const kit = await hooked({ onStepFinish: (step) => void steps.push(step) }, ({ step }) =>
    step === 0
      ? {
          reasoning: "Numbers.",
          text: "Let me see.",
          sources: [{ url: "https://a.example", title: "A" }],
          files: [{ mediaType: "text/plain", data: "YQ==" }],
          toolCalls: [{ toolName: "add", input: { a: 1, b: 2 }, toolCallId: "c1" }],
          usage: { inputTokens: 10, outputTokens: 5, cachedInputTokens: 4 },
        }
      : "3",
  );
  await kit.ask("1 + 2?");
  const [first, second] = steps;
  expect(first).toMatchObject({
    stepNumber: 0,
    text: "Let me see.",
    reasoningText: "Numbers.",
    sources: [{ url: "https://a.example" }],
    toolCalls: [{ toolCallId: "c1", toolName: "add", input: { a: 1, b: 2 } }],
    toolResults: [{ toolCallId: "c1", output: 3 }],
    finishReason: "tool-calls",
    usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15, inputTokenDetails: { cacheReadTokens: 4 } },
    model: { provider: "scripted", modelId: "scripted" },
    warnings: [],
  });
  expect(first?.files).toHaveLength(1);
  expect(first?.response.modelId).toBe("scripted");
  expect(first?.response.messages.map(({ role }) => role)).toEqual(["assistant", "tool"]);
  expect(first?.content.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["reasoning", "text", "source", "file", "tool-call", "tool-result"]),
  );
  expect(second).toMatchObject({ stepNumber: 1, text: "3", finishReason: "stop" });
  expect(first?.callId).not.toBe(second?.callId);
});

test("onChunk is told each piece of the model's stream", async () => {
  const chunks: ChunkContext["chunk"][] = [];
  const kit = await hooked({ onChunk: ({ chunk }) => void chunks.push(chunk) }, [
    { reasoning: "hm", text: ["a", "b"] },
  ]);
  await kit.ask("Hi.");
  const deltas = chunks.flatMap((chunk) => (chunk.type === "text-delta" ? [chunk.text] : []));
  expect(deltas).toEqual(["a", "b"]);
  expect(chunks.map(({ type }) => type)).toContain("reasoning-delta");
});

test("a slow onChunk is waited for, and loses nothing", async () => {
  const kit = await hooked({ onChunk: () => Promise.resolve() }, [{ text: ["a", "b", "c"] }]);
  await kit.ask("Hi.");
  expect(textIn(await kit.last())).toBe("abc");
});

test("onChatResponse may start another turn, and what it throws goes to onError", async () => {
  let turns = 0;
  const kit = await hooked(
    {
      async onChatResponse(this: Think) {
        turns++;
        if (turns === 1) await this.saveMessages([user("u2", "And now?")]);
        else throw new Error("broken listener");
      },
    },
    ({ turn }) => `answer ${turn}`,
  );
  await kit.ask("Hi.");
  await expect.poll(() => turns).toBe(2);
  await kit.stable();
  expect((await kit.stored()).map(textIn)).toEqual(["Hi.", "answer 0", "And now?", "answer 1"]);
  await expect.poll(() => kit.takeErrors()).toEqual(["broken listener"]);
});

test.each<[string, Hooks]>([
  ["beforeTurn", { beforeTurn: fail }],
  ["beforeStep", { beforeStep: fail }],
  ["assembleContext", { assembleContext: fail }],
  ["getTools", { getTools: fail }],
  ["getSystemPrompt", { getSystemPrompt: fail }],
])("a %s that throws ends the turn with a plain error, and the next turn runs", async (_name, hooks) => {
  let broken = true;
  const [entry] = Object.entries(hooks);
  const [name, hook] = entry ?? [];
  const kit = await hooked({}, callThenSay);
  const agent = await kit.agent();
  const usual = Reflect.get(agent, name ?? "") as (...args: unknown[]) => unknown;
  Reflect.set(agent, name ?? "", (...args: unknown[]) =>
    broken ? (hook as (...args: unknown[]) => unknown)(...args) : usual.apply(agent, args),
  );
  const end = await kit.ask("1 + 2?");
  expect(end).toMatchObject({ status: "error", error: expect.stringMatching(/^Something went wrong on the server/) });
  expect(kit.added).toEqual([]);
  broken = false;
  expect(await kit.ask("1 + 2?")).toMatchObject({ status: "completed" });
});

test.each<[string, Hooks]>([
  ["afterToolCall", { afterToolCall: fail }],
  ["onStepFinish", { onStepFinish: fail }],
  ["onStepEnd", { onStepEnd: fail }],
  ["onChunk", { onChunk: fail }],
])("an %s that throws only reports it", async (_name, hooks) => {
  const kit = await hooked(hooks);
  expect(await kit.ask("1 + 2?")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toContain("3");
  expect(new Set(kit.takeErrors())).toEqual(new Set(["The hook is broken."]));
});

function fail(): never {
  throw new Error("The hook is broken.");
}

test("a turn that onChunk stops before there is anything to read leaves no message", async () => {
  const model = scriptedModel(["Hello."]);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override onChunk() {
          this.abortAllRequests();
        }
      },
  );
  expect(await kit.ask("Hi.")).toMatchObject({ status: "aborted" });
  expect((await kit.stored()).map(textIn)).toEqual(["Hi."]);
});

test("onStepFinish knows a call that was given another id by that id", async () => {
  const steps: string[][] = [];
  const kit = await hooked(
    {
      onStepFinish: ({ toolCalls, toolResults }) =>
        void steps.push([...toolCalls, ...toolResults].map(({ toolCallId }) => toolCallId)),
    },
    ({ step }) => (step < 2 ? { toolCalls: [{ toolName: "add", input: { a: 1, b: 2 }, toolCallId: "c" }] } : "3"),
  );
  await kit.ask("1 + 2?");
  expect(steps).toEqual([["c", "c"], ["c-2", "c-2"], []]);
});
