// What one model may cost: calls in a step, and the size of what it streams.
import { subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { user } from "../chat/client.ts";
import { openChat } from "../chat/harness.ts";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";

async function calling(count: number, limit?: number) {
  const ran: string[] = [];
  const events: unknown[] = [];
  onTestFinished(subscribe("chat:calls:refused", ({ payload }) => void events.push(payload)));
  const toolCalls = Array.from({ length: count }, (_, n) => ({ toolName: "look", input: { n }, toolCallId: `c${n}` }));
  const model = scriptedModel(({ step }) => (step === 0 ? { toolCalls } : "Done."));
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool((_input, { toolCallId }) => void ran.push(toolCallId)) };
        }
      },
  );
  if (limit !== undefined) (await kit.agent()).maxToolCallsPerStep = limit;
  const end = await kit.ask("Look.");
  return Object.assign(kit, { ran, events, model, end });
}

test("of the calls of a step at most maxToolCallsPerStep run; the model reads that the others did not", async () => {
  const kit = await calling(5, 3);
  expect(kit.end.status).toBe("completed");
  expect(kit.ran).toEqual(["c0", "c1", "c2"]);
  const sent = outputsSent(kit.model, 1);
  expect(Object.keys(sent)).toEqual(["c0", "c1", "c2", "c3", "c4"]);
  for (const call of ["c3", "c4"]) expect(JSON.stringify(sent[call])).toContain("at most 3");
  expect(kit.events).toMatchObject([{ step: 0, limit: 3, refused: 2 }]);
});

test("by default a step has at most 64 calls", async () => {
  const kit = await calling(70);
  expect(kit.ran).toHaveLength(64);
  expect(kit.events).toMatchObject([{ limit: 64, refused: 6 }]);
});

test("a model that never stops asking is stopped, in words that a user understands", async () => {
  const kit = await calling(200, 2);
  expect(kit.end).toMatchObject({ status: "error", error: expect.stringContaining("tool calls") });
  expect(kit.ran).toEqual([]);
  expect(kit.model.calls).toHaveLength(1);
  expect((await kit.last())?.parts.length).toBeLessThan(60);
});

test("a stream of an AIChatAgent that brings more calls in a step ends the turn with an error", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  const stage = await chat.stage();
  for (let n = 0; n < 70; n++) stage.call(`c${n}`, "look");
  const end = await client.done("r1");
  expect(end).toMatchObject({ error: true, body: expect.stringContaining("at most 64 tool calls") });
  expect((await chat.stored())[1]?.parts.filter((part) => "toolCallId" in part)).toHaveLength(64);
  chat.takeErrors();
});

test.each([
  ["the text of a tool's input", "input"],
  ["one chunk", "chunk"],
])(
  "%s beyond its bound ends the call with an error that the user understands, and is not stored",
  async (_name, what) => {
    const chat = await openChat();
    const client = await chat.connect();
    client.request("r1", [user("u1")]);
    const stage = await chat.stage();
    if (what === "chunk") stage.say("x".repeat(9 * 1024 * 1024));
    else {
      stage.push({ type: "start" }, { type: "tool-input-start", toolCallId: "c1", toolName: "look" });
      const inputTextDelta = `"${"x".repeat(300_000)}`;
      for (let n = 0; n < 5; n++) stage.push({ type: "tool-input-delta", toolCallId: "c1", inputTextDelta });
    }
    const end = await client.done("r1");
    expect(end).toMatchObject({ error: true, body: expect.stringContaining("too large") });
    expect(JSON.stringify(await chat.stored()).length).toBeLessThan(1_500_000);
    chat.takeErrors();
  },
);
