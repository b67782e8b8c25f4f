import { createUIMessageStreamResponse, simulateReadableStream, streamText, type UIMessageChunk } from "ai";
import type { ChatTurnOptions } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, serverTool } from "./harness.ts";

test("onChatMessage gives full control: there are no steps and no ledger", async () => {
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override onChatMessage() {
          const chunks: UIMessageChunk[] = [
            { type: "start" },
            { type: "text-start", id: "t" },
            { type: "text-delta", id: "t", delta: "my own" },
            { type: "text-end", id: "t" },
            { type: "finish" },
          ];
          return createUIMessageStreamResponse({ stream: simulateReadableStream({ chunks }) });
        }
      },
  );
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("my own");
  expect((await kit.agent()).usage().calls).toBe(0);
});

test("an onChatMessage that calls super runs the ordinary steps, and goes on with them after a restart", async () => {
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : { text: "Half", hang: hangs },
  );
  let hangs = true;
  let looks = 0;
  const asked: ChatTurnOptions[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => ++looks) };
        }
        override async onChatMessage(options: ChatTurnOptions) {
          asked.push(options);
          return super.onChatMessage(options);
        }
      },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "Half");
  hangs = false;
  await kit.restart();
  await kit.agent();
  await kit.stable();
  expect(looks).toBe(1);
  expect(asked.map(({ requestId }) => requestId)).toEqual(["r1", "r1"]);
  const parts = (await kit.last())?.parts ?? [];
  expect(parts.map(({ type }) => type)).toEqual(["step-start", "tool-look", "step-start", "text"]);
  expect((await kit.agent()).usage().calls).toBe(3);
});

test("onChatMessage may return what streamText returns", async () => {
  const model = scriptedModel(["Streamed.", { error: new Error("model is gone") }]);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override onChatMessage({ abortSignal }: ChatTurnOptions) {
          return streamText({ model, prompt: "Hi.", abortSignal, maxRetries: 0, onError: () => {} });
        }
      },
  );
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(textIn(await kit.last())).toBe("Streamed.");
  expect(await kit.ask("Hi again.")).toMatchObject({ status: "error", error: "model is gone" });
});

test.each<[string, unknown]>([
  ["a text", "Hello."],
  ["a number", 5],
  ["null", null],
  ["text, toolCalls", { text: "Hello.", toolCalls: [] }],
])("what onChatMessage returns by mistake (%s) is told with what to return", async (words, answer) => {
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override onChatMessage() {
          return answer as Response;
        }
      },
  );
  const { status, error } = await kit.ask("Hi.");
  expect(status).toBe("error");
  expect(error).toContain("onChatMessage() returned no answer: return a Response, what streamText() returns");
  expect(error).toContain(words);
  expect(kit.takeErrors()).toEqual([error]);
});
