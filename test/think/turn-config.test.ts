// Each field of what `beforeTurn` and `beforeStep` may return does what it says.
import { hasToolCall, jsonSchema, Output, tool, type ToolSet } from "ai";
import type { StepConfig, TurnConfig, TurnContext } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, refusal, said, sent, serverTool, systemOf } from "./harness.ts";

interface Setup {
  readonly script?: Script;
  readonly turn?: TurnConfig;
  readonly step?: (step: number) => StepConfig | undefined;
  readonly tools?: ToolSet;
  readonly manual?: boolean;
}

/** An agent whose hooks return what the test says. */
async function configured({ script = ["ok"], turn = {}, step, tools = {}, manual = false }: Setup) {
  const model = scriptedModel(script);
  const contexts: TurnContext[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getSystemPrompt() {
          return "The usual.";
        }
        override getTools() {
          return tools;
        }
        override beforeTurn(context: TurnContext) {
          contexts.push(context);
          return turn;
        }
        override beforeStep(context: { readonly stepNumber: number }) {
          return step?.(context.stepNumber);
        }
      },
    { manual },
  );
  return Object.assign(kit, { model, contexts });
}

const loop: Script = ({ step }) => (step < 3 ? { toolCalls: [{ toolName: "look", input: {} }] } : "done");
const look = { look: serverTool(() => "a boat") };

test("beforeTurn is told the turn as it would run", async () => {
  const kit = await configured({ tools: look });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")], {
    mood: "calm",
    clientTools: [{ name: "locate", description: "", parameters: { type: "object" } }],
  });
  await client.done("r1");
  const [context] = kit.contexts;
  expect(context).toMatchObject({
    requestId: "r1",
    messages: [{ role: "user", content: [{ type: "text", text: "Hi." }] }],
    model: kit.model,
    continuation: false,
    recovering: false,
    body: { mood: "calm" },
    clientTools: [{ name: "locate" }],
  });
  expect(context?.system).toContain("The usual.");
  expect(context?.system).toContain("look");
  expect(Object.keys(context?.tools ?? {})).toEqual(["locate", "look"]);
  expect(context?.abortSignal.aborted).toBe(false);
  await (await kit.agent()).continueLastTurn();
  expect(kit.contexts[1]).toMatchObject({ continuation: true, recovering: false });
});

test("model: another one, or a list of others", async () => {
  const first = scriptedModel([{ error: refusal(400) }, "no"]);
  const other = scriptedModel(["from the other"]);
  const kit = await configured({ turn: { model: [first, other] } });
  await kit.ask("Hi.");
  expect(textIn(await kit.last())).toBe("from the other");
  expect(kit.model.calls).toHaveLength(0);
});

test("system replaces the whole prompt; instructions win over it", async () => {
  const kit = await configured({ turn: { system: "Only this." }, tools: look });
  await kit.ask("Hi.");
  expect(systemOf(kit.model)).toBe("Only this.");
  const both = await configured({ turn: { system: "Only this.", instructions: "No, this." } });
  await both.ask("Hi.");
  expect(systemOf(both.model)).toBe("No, this.");
});

test("messages replace the conversation, and what the turn does comes after them", async () => {
  const kit = await configured({ turn: { messages: [said("Instead.")] }, script: loop, tools: look });
  await kit.ask("Hi.");
  expect(sent(kit.model, 0).join()).toContain("Instead.");
  expect(sent(kit.model, 0).join()).not.toContain("Hi.");
  expect(sent(kit.model, 1).slice(0, 1)).toEqual(sent(kit.model, 0));
  expect(sent(kit.model, 1).join()).toContain("a boat");
});

test("tools are added; one of a known name replaces it", async () => {
  const kit = await configured({
    turn: { tools: { look: serverTool(() => "another boat"), more: serverTool(() => "") } },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    tools: look,
  });
  await kit.ask("Hi.");
  expect(kit.model.calls[0]?.tools.map(({ name }) => name)).toEqual(["look", "more"]);
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "another boat" } });
  expect(systemOf(kit.model)).toContain("more");
});

test("activeTools: no other is offered", async () => {
  const kit = await configured({ turn: { activeTools: ["look"] }, tools: { ...look, other: serverTool(() => "") } });
  await kit.ask("Hi.");
  expect(kit.model.calls[0]?.tools.map(({ name }) => name)).toEqual(["look"]);
});

test("toolChoice", async () => {
  const kit = await configured({
    turn: { toolChoice: { type: "tool", toolName: "look" }, maxSteps: 1 },
    script: [{ toolCalls: [{ toolName: "look", input: {} }] }],
    tools: look,
  });
  await kit.ask("Hi.");
  expect(kit.model.calls[0]?.options.toolChoice).toEqual({ type: "tool", toolName: "look" });
});

test("maxSteps, instead of the class's", async () => {
  const kit = await configured({ turn: { maxSteps: 2 }, script: loop, tools: look });
  await kit.ask("Hi.");
  expect(kit.model.calls).toHaveLength(2);
});

test("stopWhen ends the turn after a step; the bound on the steps holds all the same", async () => {
  const kit = await configured({ turn: { stopWhen: hasToolCall("look") }, script: loop, tools: look });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(kit.model.calls).toHaveLength(1);
  const never = await configured({ turn: { stopWhen: [() => false], maxSteps: 2 }, script: loop, tools: look });
  await never.ask("Hi.");
  expect(never.model.calls).toHaveLength(2);
});

test("stop conditions see the steps so far, with the results of their tools", async () => {
  const seen: unknown[] = [];
  const kit = await configured({
    turn: {
      stopWhen: ({ steps }) => {
        seen.push(steps.map(({ toolResults }) => toolResults.map(({ output }) => output)));
        return steps.length === 2;
      },
    },
    script: loop,
    tools: look,
  });
  await kit.ask("Hi.");
  expect(kit.model.calls).toHaveLength(2);
  expect(seen.at(-1)).toEqual([["a boat"], ["a boat"]]);
});

test("sendReasoning and sendSources hide both from clients", async () => {
  const script: Script = () => ({ reasoning: "hmm", text: "yes", sources: [{ url: "https://a.example" }] });
  const types = async (turn: TurnConfig) => {
    const kit = await configured({ turn, script });
    await kit.ask("Hi.");
    return (await kit.last())?.parts.map(({ type }) => type);
  };
  expect(await types({})).toEqual(expect.arrayContaining(["reasoning", "source-url", "text"]));
  expect(await types({ sendReasoning: false, sendSources: false })).toEqual(["step-start", "text"]);
});

test("the settings of a model call reach the model", async () => {
  const settings = {
    maxOutputTokens: 321,
    temperature: 0.1,
    topP: 0.2,
    topK: 3,
    presencePenalty: 0.4,
    frequencyPenalty: 0.5,
    stopSequences: ["stop"],
    seed: 6,
    reasoning: "low",
    headers: { "x-a": "1" },
    providerOptions: { scripted: { cache: true } },
  } as const satisfies Omit<TurnConfig, "stopSequences"> & { stopSequences: readonly string[] };
  const turn: TurnConfig = { ...settings, stopSequences: [...settings.stopSequences] };
  const kit = await configured({ turn });
  await kit.ask("Hi.");
  const { reasoning, ...passed } = settings;
  expect(kit.model.calls[0]?.options).toMatchObject(passed);
  expect(kit.model.calls[0]?.options).toMatchObject({ reasoning });
});

test("what the caller of a turn sets holds too; where both say something, beforeTurn has the last word", async () => {
  const kit = await configured({ turn: { topP: 0.9 } });
  await kit.ask("Hi.", { config: { temperature: 0.3, topP: 0.1 } });
  expect(kit.model.calls[0]?.options).toMatchObject({ temperature: 0.3, topP: 0.9 });
});

test("maxRetries bounds the tries of one step on one model", async () => {
  const script: Script = () => ({ error: refusal(503) });
  const kit = await configured({ turn: { maxRetries: 0 }, script });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "error" });
  expect(kit.model.calls).toHaveLength(1);
});

test("output: the model is asked for JSON, and what came of it is the turn's output", async () => {
  const output = Output.object({
    schema: jsonSchema<{ port: string }>({
      type: "object",
      properties: { port: { type: "string" } },
      required: ["port"],
    }),
  });
  const kit = await configured({ turn: { output }, script: ['{"port":"Hamburg"}'] });
  expect(await kit.ask("Where?")).toMatchObject({ status: "completed", output: { port: "Hamburg" } });
  expect(kit.model.calls[0]?.options.responseFormat).toMatchObject({ type: "json" });
  expect(kit.responses).toMatchObject([{ status: "completed", output: { port: "Hamburg" } }]);
});

test("output that is not what was asked for ends the turn with an error that says so", async () => {
  const kit = await configured({ turn: { output: Output.json() }, script: ["no json"] });
  const end = await kit.ask("Where?");
  expect(end.status).toBe("error");
  expect(end.error).toMatch(/JSON|parse/i);
  expect(textIn(await kit.last())).toBe("no json");
});

test("repairToolCall may mend a call that the model got wrong", async () => {
  const inputs: unknown[] = [];
  const strict = tool({
    inputSchema: jsonSchema<{ n: number }>({ type: "object", properties: { n: { type: "number" } } }),
    execute: (input) => void inputs.push(input),
  });
  const kit = await configured({
    turn: { repairToolCall: async ({ toolCall }) => ({ ...toolCall, input: '{"n":7}' }) },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "strict", input: "{n: seven" }] } : "done"),
    tools: { strict },
  });
  await kit.ask("Hi.");
  expect(inputs).toEqual([{ n: 7 }]);
});

test("experimental_context is what tools and conditions get as their context", async () => {
  const seen: unknown[] = [];
  const kit = await configured({
    turn: {
      experimental_context: { who: "anna" },
      stopWhen: ({ steps }) => void seen.push(steps.at(-1)?.runtimeContext) as unknown as false,
    },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {} }] } : "done"),
    tools: {
      look: serverTool((_input, options) => {
        seen.push(options.context, (options as { experimental_context?: unknown }).experimental_context);
        return "";
      }),
    },
  });
  await kit.ask("Hi.");
  expect(seen.length).toBeGreaterThanOrEqual(3);
  expect(seen.every((context) => (context as { who?: string }).who === "anna")).toBe(true);
});

test("chatStreamStallTimeoutMs bounds one turn's silence, and is off again for the next", async () => {
  const kit = await configured({
    turn: { chatStreamStallTimeoutMs: 1000 },
    script: ({ index }) => (index === 0 ? { text: "half", hang: true } : "half and whole"),
    manual: true,
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "half");
  await kit.clock.advance(1000);
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(textIn(await kit.last())).toBe("half and whole");
});

test.each([
  ["totalMs", { totalMs: 1000 }, "before"],
  ["stepMs", { stepMs: 1000 }, true],
  ["firstChunkMs", { firstChunkMs: 1000 }, "before"],
  ["chunkMs", { chunkMs: 1000 }, true],
  ["the shorter one", { stepMs: 60_000, totalMs: 1000 }, true],
  ["a number", 1000, true],
] as const)(
  "timeout: %s ends a model call that takes too long, and it is tried again",
  async (_kind, timeout, hang) => {
    const kit = await configured({
      turn: { timeout, maxRetries: 1 },
      script: ({ index }) => (index === 0 ? { text: "half", hang } : "half and whole"),
      manual: true,
    });
    const client = await kit.connect();
    client.request("r1", [user("u1")]);
    await expect.poll(() => kit.model.calls.length).toBe(1);
    if (hang === true) await client.said("r1", "half");
    await kit.clock.advance(1000);
    await expect.poll(() => kit.model.calls[0]?.status).toBe("aborted");
    // The wait between two tries.
    await kit.clock.advance(1000);
    expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
    expect(kit.model.calls).toHaveLength(2);
    expect(textIn(await kit.last())).toBe("half and whole");
  },
);

test.each([
  ["toolMs", { toolMs: 1000 }],
  ["tools", { tools: { lookMs: 1000 }, toolMs: 1_000_000 }],
])("timeout: %s ends a tool that takes too long, and the model reads that", async (_kind, timeout) => {
  const kit = await configured({
    turn: { timeout },
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    tools: { look: serverTool(() => new Promise<never>(() => {})) },
    manual: true,
  });
  const turn = kit.ask("Hi.");
  await expect.poll(async () => (await kit.rows("SELECT 1 FROM perdure_tool_call")).length).toBe(1);
  await kit.clock.advance(1000);
  expect(await turn).toMatchObject({ status: "completed" });
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toContain("did not finish within 1000 ms");
});

test("toolApproval asks a person for the calls that it names", async () => {
  const kit = await configured({
    turn: { toolApproval: { look: { type: "user-approval", reason: "It is far." } } },
    script: loop,
    tools: look,
  });
  await kit.ask("Hi.");
  expect((await kit.agent()).pendingApprovals()).toMatchObject([{ tool: "look" }]);
});

test("beforeStep changes one model call: model, prompt, messages, tools, choice, options", async () => {
  const other = scriptedModel([{ toolCalls: [{ toolName: "look", input: {} }] }]);
  const kit = await configured({
    step: (step) =>
      step > 0
        ? undefined
        : {
            model: other,
            system: "Once.",
            messages: [said("Only now.")],
            activeTools: ["look"],
            toolChoice: "required",
            providerOptions: { scripted: { once: true } },
          },
    tools: { ...look, more: serverTool(() => "") },
  });
  await kit.ask("Hi.");
  expect(other.calls).toHaveLength(1);
  expect(systemOf(other)).toBe("Once.");
  expect(sent(other, 0).join()).toContain("Only now.");
  expect(other.calls[0]).toMatchObject({
    tools: [{ name: "look" }],
    options: { toolChoice: { type: "required" }, providerOptions: { scripted: { once: true } } },
  });
  // The next one is as the turn has it.
  expect(systemOf(kit.model)).toContain("The usual.");
  expect(sent(kit.model, 0).join()).not.toContain("Only now.");
  expect(kit.model.calls[0]?.tools.map(({ name }) => name)).toEqual(["look", "more"]);
  expect(kit.model.calls[0]?.options.providerOptions).toBeUndefined();
});

test("instructions of beforeStep win over its system", async () => {
  const kit = await configured({ step: () => ({ system: "Once.", instructions: "This." }) });
  await kit.ask("Hi.");
  expect(systemOf(kit.model)).toBe("This.");
});

test("experimental_context of beforeStep holds from that step on", async () => {
  const seen: unknown[] = [];
  const kit = await configured({
    turn: { experimental_context: "turn" },
    step: (step) => (step === 1 ? { experimental_context: "step" } : undefined),
    script: ({ step }) => (step < 3 ? { toolCalls: [{ toolName: "look", input: {} }] } : "done"),
    tools: { look: serverTool((_input, { context }) => void seen.push(context)) },
  });
  await kit.ask("Hi.");
  expect(seen).toEqual(["turn", "step", "step"]);
});
