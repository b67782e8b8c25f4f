import type { UIMessage } from "ai";
import type { ChatRecoveryContext, Think, ToolPart, TurnContext } from "perdure";
import { durableTool } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { chunksOf, RECOVERING, RESUMING, textIn, textOf, user } from "../chat/client.ts";
import { openThink, outputsSent, sent, serverTool } from "./harness.ts";

type Settings = Partial<Pick<Think, "chatRecovery" | "chatStreamStallTimeoutMs">>;

interface Setup {
  readonly script: Script;
  readonly settings?: Settings;
  readonly manual?: boolean;
  readonly tool?: () => unknown;
  readonly replay?: "safe";
  readonly repair?: (part: ToolPart) => ToolPart | Part | undefined;
}

type Part = UIMessage["parts"][number];

async function cutting({ script, settings, manual = false, tool = () => "a boat", replay, repair }: Setup) {
  const model = scriptedModel(script);
  const turns: TurnContext[] = [];
  const recoveries: ChatRecoveryContext[] = [];
  const kit = await openThink(
    (Base) => {
      class Talk extends Base {
        constructor(host: ConstructorParameters<typeof Base>[0]) {
          super(host);
          Object.assign(this, settings);
        }
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: durableTool(serverTool(tool), { replay }) };
        }
        override beforeTurn(context: TurnContext) {
          turns.push(context);
        }
        override onChatRecovery(context: ChatRecoveryContext) {
          recoveries.push(context);
        }
        protected override repairInterruptedToolPart(part: Part) {
          return (repair?.(part as ToolPart) as Part | undefined) ?? super.repairInterruptedToolPart(part);
        }
      }
      return Talk;
    },
    { manual },
  );
  return Object.assign(kit, { model, turns, recoveries });
}

const halfThenWhole: Script = ({ index }) => (index === 0 ? { text: "Half", hang: true } : "Half and whole.");

test("a turn that a restart cut goes on in the same message, with nobody connected", async () => {
  const kit = await cutting({ script: halfThenWhole });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")]);
  await client.said("r1", "Half");
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect((await kit.stored()).map(textIn)).toEqual(["Hi.", "Half and whole."]);
  // What was there is given to the model to go on from.
  expect(sent(kit.model, 1).join()).toContain("Half");
  expect(kit.recoveries).toMatchObject([
    { requestId: "r1", attempt: 1, recoveryKind: "continue", partialText: "Half" },
  ]);
  expect(kit.turns.map(({ recovering }) => recovering)).toEqual([false, true]);
});

test("a turn that was cut has one stream: it begins once, and who is given it again has all of it", async () => {
  const kit = await cutting({ script: ({ index }) => ({ text: index === 0 ? "Half" : "Half and more", hang: true }) });
  const first = await kit.connect();
  first.request("r1", [user("u1", "Hi.")]);
  await first.said("r1", "Half");
  await kit.restart();
  const client = await kit.connect();
  await client.frame(({ type }) => type === RESUMING);
  client.ack("r1");
  await client.said("r1", "Half and more");
  expect(textOf(client.of("r1"))).toBe("Half and more");
  // The public hook begins anew with every start that it is given again, and forgets what was before it.
  const types = chunksOf(client.of("r1")).map(({ type }) => type);
  expect(types.filter((type) => type.startsWith("start"))).toEqual(["start", "start-step"]);
});

test("settled steps are not made again: only the model call that was cut is", async () => {
  let looks = 0;
  const kit = await cutting({
    script: ({ step, index }) => {
      if (step === 0) return { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] };
      return index === 1 ? { text: "A", hang: true } : "A boat.";
    },
    tool: () => {
      looks++;
      return "a boat";
    },
  });
  const client = await kit.connect();
  client.request("r1", [user("u1", "What is there?")]);
  await client.said("r1", "A");
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(looks).toBe(1);
  expect(kit.model.calls.map(({ step }) => step)).toEqual([0, 1, 1]);
  expect(textIn(await kit.last())).toBe("A boat.");
  const agent = await kit.agent();
  expect(agent.listUsage().map(({ step, status }) => [step, status])).toEqual([
    [1, "ok"],
    [1, "cut"],
    [0, "ok"],
  ]);
});

test("chatRecovery: false ends a turn that was cut, with what there is", async () => {
  const kit = await cutting({ script: halfThenWhole, settings: { chatRecovery: false } });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")]);
  await client.said("r1", "Half");
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(kit.model.calls).toHaveLength(1);
  expect(textIn(await kit.last())).toBe("Half");
  expect(kit.responses).toMatchObject([{ status: "error" }]);
});

test("maxAttempts bounds it: then the user reads terminalMessage and onExhausted is called", async () => {
  const exhausted: ChatRecoveryContext[] = [];
  const kit = await cutting({
    script: () => ({ text: "Half", hang: true }),
    settings: {
      chatRecovery: {
        maxAttempts: 2,
        terminalMessage: "Please try again.",
        onExhausted: (context) => void exhausted.push(context),
      },
      chatStreamStallTimeoutMs: 1000,
    },
    manual: true,
  });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")]);
  for (let call = 1; call <= 3; call++) {
    await expect.poll(() => kit.model.calls.length).toBe(call);
    await expect.poll(() => kit.clock.pending()).toBeGreaterThan(0);
    await kit.clock.advance(1000);
  }
  expect(await client.done("r1")).toMatchObject({ error: true, body: "Please try again." });
  expect(exhausted).toMatchObject([{ requestId: "r1", attempt: 3, maxAttempts: 2 }]);
  expect(client.ofType(RECOVERING).map(({ recovering }) => recovering)).toEqual([true, false]);
  expect(kit.model.calls).toHaveLength(3);
  expect(textIn(await kit.last())).toBe("Half");
});

test("shouldKeepRecovering is asked from the second time on, and its no ends it", async () => {
  const asked: number[] = [];
  const kit = await cutting({
    script: () => ({ text: "Half", hang: true }),
    settings: {
      chatRecovery: {
        shouldKeepRecovering: ({ attempt }) => {
          asked.push(attempt);
          return false;
        },
      },
      chatStreamStallTimeoutMs: 1000,
    },
    manual: true,
  });
  const turn = kit.ask("Hi.");
  for (let call = 1; call <= 2; call++) {
    await expect.poll(() => kit.model.calls.length).toBe(call);
    await expect.poll(() => kit.clock.pending()).toBeGreaterThan(0);
    await kit.clock.advance(1000);
  }
  expect(await turn).toMatchObject({ status: "error" });
  expect(asked).toEqual([2]);
});

test("the stall watchdog does not count the time of tools, nor the wait between tries", async () => {
  const slow = Promise.withResolvers<string>();
  const kit = await cutting({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    settings: { chatStreamStallTimeoutMs: 1000 },
    manual: true,
    tool: () => slow.promise,
  });
  const turn = kit.ask("Hi.");
  await expect.poll(async () => (await kit.rows("SELECT 1 FROM perdure_tool_call")).length).toBe(1);
  for (let second = 0; second < 60; second++) await kit.clock.advance(1000);
  slow.resolve("a boat");
  expect(await turn).toMatchObject({ status: "completed" });
  expect(kit.recoveries).toEqual([]);
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "a boat" } });
});

test("a tool that is safe to run again does; its result is the one that counts", async () => {
  let runs = 0;
  const kit = await cutting({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    tool: () => (++runs === 1 ? new Promise<never>(() => {}) : "a boat"),
    replay: "safe",
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => runs).toBe(1);
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(runs).toBe(2);
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "a boat" } });
});

test("repairInterruptedToolPart may give a cut call another end", async () => {
  let runs = 0;
  const kit = await cutting({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    tool: () => {
      runs++;
      return new Promise<never>(() => {});
    },
    repair: (part) => ({ ...part, state: "output-available", output: "I could not see." }),
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => runs).toBe(1);
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(runs).toBe(1);
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "I could not see." } });
});

test("a part of another kind may stand for a cut call: the model reads it, and it is what is stored", async () => {
  let runs = 0;
  const kit = await cutting({
    script: ({ index }) =>
      index === 0 ? { toolCalls: [{ toolName: "look", input: { at: "sea" }, toolCallId: "c1" }] } : "done",
    tool: () => {
      runs++;
      return new Promise<never>(() => {});
    },
    repair: ({ input }) => ({ type: "text", text: `I wanted to look at ${JSON.stringify(input)}.` }),
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => runs).toBe(1);
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(runs).toBe(1);
  expect(outputsSent(kit.model, 1)).toEqual({});
  expect(sent(kit.model, 1).join()).toContain("I wanted to look at");
  expect((await kit.last())?.parts).toMatchObject([
    { type: "step-start" },
    { type: "text", text: 'I wanted to look at {"at":"sea"}.' },
    { type: "step-start" },
    { type: "text", text: "done" },
  ]);
});

test("what stands for a cut call is asked for again when the turn is cut once more", async () => {
  let runs = 0;
  const kit = await cutting({
    script: ({ index }) => {
      if (index === 0) return { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] };
      return index === 1 ? { text: "Half", hang: true } : "Half and whole.";
    },
    tool: () => {
      runs++;
      return new Promise<never>(() => {});
    },
    repair: () => ({ type: "text", text: "I was looking." }),
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => runs).toBe(1);
  await kit.restart();
  await kit.agent();
  await expect.poll(() => kit.model.calls.length).toBe(2);
  // Its end: the first word is stored before it.
  await expect
    .poll(async () => JSON.stringify(await kit.rows("SELECT chunks FROM perdure_stream")))
    .toContain("text-end");
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect((await kit.last())?.parts).toMatchObject([
    { type: "step-start" },
    { type: "text", text: "I was looking." },
    { type: "step-start" },
    { type: "text", text: "Half" },
    { type: "text", text: " and whole." },
  ]);
  expect(JSON.stringify(await kit.last())).not.toContain("interrupted");
});

test("a question that nobody answered may become an ordinary sentence", async () => {
  const kit = await cutting({
    script: ({ index }) =>
      index === 0
        ? { toolCalls: [{ toolName: "ask_user", input: { prompt: "Which town?" }, toolCallId: "c1" }] }
        : "Oslo it is.",
    repair: (part) => {
      const { prompt } = part.input as { prompt: string };
      return part.type === "tool-ask_user" ? { type: "text", text: prompt } : undefined;
    },
  });
  const client = await kit.connect();
  const ask = { name: "ask_user", description: "Ask.", parameters: { type: "object", properties: {} } };
  client.request("r1", [user("u1")], { clientTools: [ask] });
  await client.done("r1");
  await kit.stable();
  expect((await kit.last())?.parts.at(-1)).toMatchObject({ type: "tool-ask_user", state: "input-available" });
  client.request("r2", [...(await kit.stored()), user("u2", "Oslo.")]);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  expect((await kit.stored())[1]?.parts).toMatchObject([{ type: "step-start" }, { type: "text", text: "Which town?" }]);
  expect(outputsSent(kit.model, 1)).toEqual({});
  expect(sent(kit.model, 1).join()).toContain("Which town?");
});

test("a repairInterruptedToolPart that throws is reported, and the call says that it was interrupted", async () => {
  let runs = 0;
  const kit = await cutting({
    script: ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    tool: () => {
      runs++;
      return new Promise<never>(() => {});
    },
    repair: () => {
      throw new Error("cannot mend");
    },
  });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await expect.poll(() => runs).toBe(1);
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(JSON.stringify(outputsSent(kit.model, 1))).toContain("interrupted");
  expect(kit.takeErrors()).toContain("cannot mend");
});

test("a stored call without a result never reaches the model, and malformed input is made an object", async () => {
  const kit = await cutting({ script: ["Fine."] });
  const broken = [
    { type: "tool-look", toolCallId: "c1", state: "input-available", input: { where: "left" } },
    { type: "tool-look", toolCallId: "c2", state: "input-streaming", input: undefined },
    { type: "tool-look", toolCallId: "c3", state: "output-available", input: '{"where":', output: "mist" },
    { type: "tool-look", toolCallId: "c4", state: "output-available", input: ["left"], output: "sea" },
  ] as unknown as UIMessage["parts"];
  await (await kit.agent()).addMessages([user("u1"), { id: "a1", role: "assistant", parts: broken }]);
  expect(await kit.ask("And?")).toMatchObject({ status: "completed" });
  const prompt = kit.model.calls[0]?.prompt ?? [];
  const calls = prompt.flatMap((message) => (message.role === "assistant" ? message.content : []));
  const outputs = outputsSent(kit.model, 0);
  const asked = calls.flatMap((part) => (part.type === "tool-call" ? [part] : []));
  expect(asked.length).toBeGreaterThan(0);
  for (const { toolCallId, input } of asked) {
    expect(outputs).toHaveProperty(toolCallId);
    expect(input).toBeTypeOf("object");
    expect(Array.isArray(input)).toBe(false);
  }
  expect(JSON.stringify(outputs.c1)).toContain("interrupted");
});

test("a stop holds: after a restart nothing more is asked of the model", async () => {
  const kit = await cutting({ script: halfThenWhole });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Hi.")]);
  await client.said("r1", "Half");
  client.cancel("r1");
  await client.done("r1");
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(kit.model.calls).toHaveLength(1);
  expect(textIn(await kit.last())).toBe("Half");
});
