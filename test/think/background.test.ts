import { type BackgroundCall, isBackgroundReceipt } from "perdure/chat";
import type { Script } from "perdure/testing";
import { expect, test } from "vitest";
import { toolParts } from "../../src/message/types.ts";
import { until } from "../support/until.ts";
import { calling, gate, lastOf, openBackground, told } from "./background-kit.ts";
import { outputsSent } from "./harness.ts";

test("the model gets a receipt and ends its turn; the result comes as a message of its own, which it answers", async () => {
  const { work, begun } = gate();
  const kit = await openBackground({ work });
  expect(await kit.ask("go c1")).toMatchObject({ status: "completed" });
  const [part] = toolParts((await kit.last()) ?? { id: "", role: "assistant", parts: [] });
  expect(part).toMatchObject({ state: "output-available", toolCallId: "c1" });
  expect(isBackgroundReceipt(part?.output)).toBe(true);
  expect(JSON.stringify(outputsSent(kit.model, 1))).toContain("goes on in the background as call c1");
  const agent = await kit.agent();
  expect(agent.listBackgroundCalls()).toMatchObject([
    { toolCallId: "c1", toolName: "work", input: {}, sessionId: "main", attempts: 1 } satisfies Partial<BackgroundCall>,
  ]);
  (await begun()).end.resolve({ pages: 3 });
  await kit.ended();
  await kit.stable();
  const output = JSON.stringify({ pages: 3 }, null, 2);
  expect(lastOf(await kit.stored()).slice(2)).toEqual([
    `user: ${told("c1", `is done. Its output:\n\n${output}`)}`,
    `assistant: read: ${told("c1", `is done. Its output:\n\n${output}`)}`,
  ]);
  expect((await kit.stored())[2]?.metadata).toMatchObject({
    backgroundCall: { toolCallId: "c1", toolName: "work", status: "completed" },
  });
  expect(agent.listBackgroundCalls()).toEqual([]);
  expect(kit.events.map(({ type }) => type)).toEqual(["started", "ended"]);
  expect(await kit.rows("SELECT status FROM perdure_tool_call")).toEqual([{ status: "settled" }]);
});

test("with afterMs the turn waits that long: a quick call has its result, a slow one a receipt", async () => {
  const { work, begun } = gate({ background: { afterMs: 1000 } });
  const kit = await openBackground({ work }, { manual: true });
  const quick = kit.ask("go c1");
  (await begun()).end.resolve("at once");
  await quick;
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "at once" } });
  const slow = kit.ask("go c2");
  await begun(2);
  await until(() => kit.model.calls.length === 3);
  await kit.clock.advance(1000);
  expect(await slow).toMatchObject({ status: "completed" });
  expect(JSON.stringify(outputsSent(kit.model, 3).c2)).toContain("goes on in the background as call c2");
  (await begun(2)).end.resolve("later");
  await kit.ended();
  await kit.stable();
  expect(lastOf(await kit.stored()).at(-1)).toBe(`assistant: read: ${told("c2", "is done. Its output:\n\nlater")}`);
});

test("stopping the turn stops the tool before its receipt, and not after it", async () => {
  const { work, begun } = gate({ background: { afterMs: 1000 } });
  const script: Script = (call) =>
    call.step === 1 && call.userText === "go c2" ? { text: "hm", hang: true } : calling(call);
  const kit = await openBackground({ work }, { manual: true, script });
  const first = kit.ask("go c1");
  const { signal } = await begun();
  (await kit.agent()).cancelAllChats();
  expect(await first).toMatchObject({ status: "aborted" });
  expect(signal?.aborted).toBe(true);
  const second = kit.ask("go c2");
  const run = await begun(2);
  await kit.clock.advance(1000);
  await until(() => kit.model.calls.some(({ step, userText }) => step === 1 && userText === "go c2"));
  (await kit.agent()).cancelAllChats();
  expect(await second).toMatchObject({ status: "aborted" });
  expect(run.signal?.aborted).toBe(false);
  run.end.resolve("whole");
  await kit.ended();
  await kit.stable();
  expect(lastOf(await kit.stored()).at(-2)).toBe(`user: ${told("c2", "is done. Its output:\n\nwhole")}`);
});

test("what fails is told as a failure, and a timeout counts from the start of the call", async () => {
  const { work, begun } = gate({ background: true, timeoutMs: 500 });
  const kit = await openBackground({ work }, { manual: true });
  await kit.ask("go c1 c2");
  (await begun(1)).end.reject(new Error("The printer is on fire."));
  const second = await begun(2);
  await kit.ended();
  await kit.clock.advance(500);
  await until(() => kit.events.filter(({ type }) => type === "ended").length === 2);
  await kit.stable();
  expect(second.signal?.aborted).toBe(true);
  const texts = lastOf(await kit.stored());
  expect(texts).toContain(`user: ${told("c1", "failed: The printer is on fire.")}`);
  expect(texts).toContain(
    `user: ${told("c2", 'failed: The tool "work" did not finish within 500 ms and was stopped.')}`,
  );
});

test.for([
  ["safe", "is done. Its output:\n\nsecond life", 2],
  ["never", "was cut off: The tool call was interrupted before it returned a result.", 1],
] as const)("a call of replay %s that the end of the host cuts", async ([replay, how, runs]) => {
  const tool = gate({ background: true, replay });
  const kit = await openBackground({ work: tool.work });
  await kit.ask("go c1");
  const first = await tool.begun();
  await kit.restart();
  expect(first.signal?.aborted).toBe(true);
  if (replay === "safe") (await tool.begun(2)).end.resolve("second life");
  await kit.ended();
  await kit.stable();
  expect(tool.runs).toHaveLength(runs);
  expect(new Set(tool.runs.map(({ key }) => key)).size).toBe(1);
  expect(lastOf(await kit.stored()).at(-2)).toBe(`user: ${told("c1", how)}`);
  // Told once, in whichever life.
  await kit.restart();
  await kit.stable();
  expect(lastOf(await kit.stored()).filter((text) => text.startsWith("user: The call"))).toHaveLength(1);
});
