import { convertToModelMessages, isStepCount, streamText, type ToolSet, type UIMessage } from "ai";
import { Agent, type AgentHost, agentTool, AIChatAgent, type ChatTurnOptions, type Think } from "perdure";
import { memoryStorage } from "perdure/node";
import { type Script, type ScriptedModel, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { textIn, user } from "../chat/client.ts";
import { newNotes, noteError, openAgent } from "../chat/open-agent.ts";
import { eventually, openHost } from "../host/open-host.ts";
import { asksOnce, childClass, given, heardText, newGate, passUntil, runFrames, storedRuns } from "./harness.ts";

/** Answers with the AI SDK's own loop. */
async function answer(model: ScriptedModel, messages: UIMessage[], tools: ToolSet, { abortSignal }: ChatTurnOptions) {
  const result = streamText({
    model,
    tools,
    messages: await convertToModelMessages(messages, { tools }),
    stopWhen: isStepCount(5),
    abortSignal,
    maxRetries: 0,
  });
  return result.toUIMessageStreamResponse();
}

async function opened(
  Researcher: new (host: AgentHost) => Think | AIChatAgent,
  script: Script = asksOnce,
  manual = false,
) {
  const model = scriptedModel(script);
  const notes = newNotes<AIChatAgent>();
  class Talk extends AIChatAgent {
    constructor(host: AgentHost) {
      super(host);
      notes.port = host;
      notes.lives.push(this);
    }
    override onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
      const inputSchema = z.object({ query: z.string() });
      const tools = { research: agentTool(Researcher, { description: "Research.", inputSchema }) };
      return answer(model, this.messages, tools, options);
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }
  const kit = await openAgent(Talk, notes, { children: { Researcher }, manual });
  return Object.assign(kit, { model });
}

test("an AIChatAgent has a Think do the work", async () => {
  const { Researcher } = childClass(["Three sources."]);
  const kit = await opened(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.done("r1");
  expect(given(kit.model, 1)).toBe("Three sources.");
  expect(textIn((await kit.stored()).at(-1))).toBe("Done.");
  const frames = runFrames(client);
  expect(frames[0]).toMatchObject({ parentToolCallId: "c1", event: { kind: "started" } });
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
  expect(heardText(frames)).toBe("Three sources.");
});

test("an AIChatAgent does the work: its last answer is what it brings", async () => {
  const child = scriptedModel(({ userText }) => `Read: ${userText}`);
  class Researcher extends AIChatAgent {
    override onChatMessage(_onFinish: unknown, options: ChatTurnOptions) {
      return answer(child, this.messages, {}, options);
    }
  }
  const kit = await opened(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.done("r1");
  expect(given(kit.model, 1)).toContain('"query": "tea"');
  const frames = runFrames(client);
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
  expect(frames.at(-1)?.event).toMatchObject({ kind: "finished" });
  const late = await kit.connect();
  await eventually(() => runFrames(late).length === frames.length, "the replay of a run");
  expect(heardText(runFrames(late))).toBe(heardText(frames));
});

test("an AIChatAgent that answers nothing, or fails, as a child", async () => {
  class Researcher extends AIChatAgent {
    override onChatMessage(): undefined {
      if (this.messages.some((message) => textIn(message).includes("bad"))) throw new Error("No.");
      return undefined;
    }
    override onError() {}
  }
  const kit = await opened(Researcher);
  const agent = await kit.agent();
  expect(await agent.runAgentTool(Researcher, { input: "tea" })).toMatchObject({ status: "completed", output: "" });
  expect(await agent.runAgentTool(Researcher, { input: "bad" })).toMatchObject({
    status: "error",
    error: expect.stringMatching(/^Something went wrong on the server/),
  });
});

test("stopping the turn of an AIChatAgent stops the child", async () => {
  const { Researcher, model } = childClass([{ text: ["One "], hang: true }]);
  const kit = await opened(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => heardText(runFrames(client)) === "One ", "the child's words");
  client.cancel("r1");
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  await eventually(() => model.calls[0]?.status === "aborted", "the end of the child's call");
  await eventually(() => runFrames(client).at(-1)?.event.kind === "aborted", "the end of the run");
  expect(await storedRuns(kit)).toMatchObject([{ status: "aborted" }]);
});

test("a turn of an AIChatAgent that stalls does not stop the child: carried on, it joins the same run", async () => {
  const gate = newGate();
  const { Researcher, model, lives } = childClass(async () => gate.opened.then(() => "Three."));
  // The model asks for the same again: the first call has no result.
  const script: Script = ({ index }) =>
    index < 2 ? { toolCalls: [{ toolName: "research", input: { query: "tea" }, toolCallId: "c1" }] } : "Done.";
  const kit = await opened(Researcher, script, true);
  (await kit.agent()).chatStreamStallTimeoutMs = 1000;
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await passUntil(kit.clock, () => model.calls.length === 1, "the child's call");
  await kit.clock.advance(1100);
  await passUntil(kit.clock, () => kit.model.calls.length === 2, "the turn, carried on");
  gate.open();
  await passUntil(kit.clock, () => client.of("r1").some(({ done }) => done === true), "the end");
  expect(model.calls.map(({ status }) => status)).toEqual(["finished"]);
  expect(lives).toHaveLength(1);
  expect(await storedRuns(kit)).toMatchObject([{ status: "completed" }]);
});

test("a turn that is carried on and does without the run: it is stopped when the turn is over", async () => {
  const { Researcher, model } = childClass(() => ({ hang: "before" }));
  const kit = await opened(Researcher, asksOnce, true);
  (await kit.agent()).chatStreamStallTimeoutMs = 1000;
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await passUntil(kit.clock, () => model.calls.length === 1, "the child's call");
  await kit.clock.advance(1100);
  await passUntil(kit.clock, () => client.of("r1").some(({ done }) => done === true), "the end");
  await passUntil(kit.clock, () => model.calls[0]?.status === "aborted", "the end of the child's call");
  await passUntil(kit.clock, () => runFrames(client).at(-1)?.event.kind === "aborted", "the end of the run");
  expect(await storedRuns(kit)).toMatchObject([{ status: "aborted" }]);
});

test("the work of a tool that is an agent belongs to a turn of an agent", async () => {
  const { Researcher } = childClass(["unused"]);
  const research = agentTool(Researcher, { description: "Research.", inputSchema: z.object({ query: z.string() }) });
  const outside = research.execute?.({ query: "tea" }, { toolCallId: "c1", messages: [], context: undefined });
  await expect(outside).rejects.toMatchObject({ code: "bad_state" });
});

test("outside of a turn each call is a run of its own, whatever the provider calls it", async () => {
  const { Researcher } = childClass(({ userText }) => `Read ${userText}.`);
  const research = agentTool(Researcher, { description: "Research.", inputSchema: z.object({ query: z.string() }) });
  const outputs: unknown[] = [];
  class Desk extends Agent {
    async work(query: string) {
      outputs.push(await research.execute?.({ query }, { toolCallId: "call_0", messages: [], context: undefined }));
      return this.listAgentToolRuns().map(({ status }) => status);
    }
  }
  const host = await openHost({ agents: { Desk, Researcher }, storage: memoryStorage() });
  const desk = host.getAgentByName(Desk, "one");
  await desk.work("tea");
  expect(await desk.work("coffee")).toEqual(["completed", "completed"]);
  expect(outputs).toEqual([expect.stringContaining("tea"), expect.stringContaining("coffee")]);
});

test("a Think child below an AIChatAgent asks for the same input twice in a conversation: two runs", async () => {
  const { Researcher } = childClass(() => "Three.");
  const kit = await opened(Researcher);
  const client = await kit.connect();
  for (const id of ["r1", "r2"]) {
    client.request(id, [...(await kit.stored()), user(`u-${id}`)]);
    await client.done(id);
  }
  expect((await storedRuns(kit)).map(({ status }) => status)).toEqual(["completed", "completed"]);
});
