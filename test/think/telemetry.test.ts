import type { Telemetry, TelemetryOptions } from "ai";
import { registerTelemetry } from "ai";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { user } from "../chat/client.ts";
import { openThink, refusal, serverTool } from "./harness.ts";

/** An integration that notes what it is told. */
function watcher(more: Partial<Telemetry> = {}) {
  const log: string[] = [];
  const events: Record<string, unknown>[] = [];
  const note = (name: string) => (event: unknown) => {
    log.push(name);
    events.push(event as Record<string, unknown>);
  };
  const integration: Telemetry = {
    onStart: note("start"),
    onStepStart: note("step start"),
    onLanguageModelCallStart: note("call start"),
    onLanguageModelCallEnd: note("call end"),
    onToolExecutionStart: note("tool start"),
    onToolExecutionEnd: note("tool end"),
    onStepEnd: note("step end"),
    onEnd: note("end"),
    onAbort: note("abort"),
    onError: note("error"),
    executeLanguageModelCall: async ({ execute }) => (log.push("in call"), execute()),
    executeTool: async ({ execute }) => (log.push("in tool"), execute()),
    ...more,
  };
  return { log, events, integration };
}

const lookThenSay: Script = ({ step }) =>
  step === 0
    ? { toolCalls: [{ toolName: "look", input: { where: "left" } }], usage: { inputTokens: 10, outputTokens: 2 } }
    : { text: "A boat.", usage: { inputTokens: 20, outputTokens: 3 } };

async function traced(telemetry: TelemetryOptions | undefined, script: Script = lookThenSay) {
  const model = scriptedModel(script);
  let looks = 0;
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => ({ looks: ++looks })) };
        }
        override beforeTurn() {
          return { experimental_telemetry: telemetry, experimental_context: { who: "anna", key: "secret" } };
        }
      },
  );
  return Object.assign(kit, { model });
}

test("an integration hears of the turn, its steps, its model calls and its tools, all under the turn's id", async () => {
  const { log, events, integration } = watcher();
  const kit = await traced({ integrations: integration, functionId: "look-out" });
  const { requestId } = await kit.ask("What is there?");
  expect(log).toEqual([
    ...["start", "step start", "call start", "in call", "call end", "tool start", "in tool", "tool end", "step end"],
    ...["step start", "call start", "in call", "call end", "step end", "end"],
  ]);
  expect(new Set(events.map(({ callId }) => callId))).toEqual(new Set([requestId]));
  expect(events.every(({ functionId }) => functionId === "look-out")).toBe(true);
  expect(events[0]).toMatchObject({ operationId: "ai.streamText", modelId: "scripted", messages: [{ role: "user" }] });
  const tool = events[log.filter((one) => !one.startsWith("in ")).indexOf("tool end")];
  expect(tool).toMatchObject({
    toolCall: { toolName: "look" },
    toolOutput: { type: "tool-result", output: { looks: 1 } },
  });
  expect(events.at(-1)).toMatchObject({ text: "A boat.", usage: { inputTokens: 30, outputTokens: 5 } });
});

test("what is not to be recorded is left out, and so is the context that nobody named", async () => {
  const { events, integration } = watcher();
  const kit = await traced({
    integrations: [integration],
    recordInputs: false,
    recordOutputs: false,
    includeRuntimeContext: { who: true },
  });
  await kit.ask("A secret question?");
  const all = JSON.stringify(events);
  expect(all).not.toContain("secret question");
  expect(all).not.toContain("A boat.");
  expect(all).not.toContain("left");
  expect(all).not.toContain('"key":"secret"');
  expect(events[0]).toMatchObject({ runtimeContext: { who: "anna" } });
});

test("isEnabled: false tells nobody", async () => {
  const { log, integration } = watcher();
  const kit = await traced({ isEnabled: false, integrations: integration });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect(log).toEqual([]);
});

test("integrations that are registered for the whole process hear of it without any setting", async () => {
  const { log, integration } = watcher();
  registerTelemetry(integration);
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "AI_SDK_TELEMETRY_INTEGRATIONS"));
  const kit = await traced(undefined);
  await kit.ask("Hi.");
  expect(log.at(0)).toBe("start");
  expect(log.at(-1)).toBe("end");
});

test("a failed turn ends with the error, a stopped one with an abort", async () => {
  const failed = watcher();
  const kit = await traced({ integrations: failed.integration }, [{ error: refusal(401, "no such key") }]);
  await kit.ask("Hi.");
  expect(failed.log.at(-1)).toBe("error");
  expect(failed.events.at(-1)).toMatchObject({ error: { message: "no such key" } });
  const stopped = watcher();
  const other = await traced({ integrations: stopped.integration }, [{ text: "Half", hang: true }]);
  const client = await other.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "Half");
  client.cancel("r1");
  await client.done("r1");
  await expect.poll(() => stopped.log.at(-1)).toBe("abort");
});

test("an integration that throws changes nothing: the tool runs once and its result counts", async () => {
  const broken = () => {
    throw new Error("no collector");
  };
  const { integration } = watcher({
    onStart: broken,
    onStepEnd: broken,
    onToolExecutionStart: broken,
    executeTool: broken,
  });
  const kit = await traced({ integrations: integration });
  expect(await kit.ask("Hi.")).toMatchObject({ status: "completed" });
  expect((await kit.last())?.parts).toMatchObject([{}, { output: { looks: 1 } }, {}, { text: "A boat." }]);
});
