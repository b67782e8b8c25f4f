import type { AgentEvent, ChatRecoveryConfig, ChatRecoveryContext } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, serverTool } from "./harness.ts";

const STALL_MS = 1000;

/** An agent on a manual clock whose model falls silent, and what was told of it. */
async function stalling(script: Script, chatRecovery: ChatRecoveryConfig, recover?: () => { continue: boolean }) {
  const model = scriptedModel(script);
  const events: Extract<AgentEvent, { type: `chat:${string}` }>[] = [];
  onTestFinished(subscribe("chat", (event) => void events.push(event)));
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override chatStreamStallTimeoutMs = STALL_MS;
        override chatRecovery = chatRecovery;
        override getModel() {
          return model;
        }
        override onChatRecovery() {
          return recover?.();
        }
      },
    { manual: true },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  /** Waits for a call of the model, and for nothing more to come of it. */
  const stall = async (call: number) => {
    await expect.poll(() => model.calls.length).toBe(call);
    await expect.poll(() => kit.clock.pending()).toBeGreaterThan(0);
    await kit.clock.advance(STALL_MS);
  };
  const types = () => events.map(({ type }) => type.replace("chat:", ""));
  return Object.assign(kit, { model, events, client, stall, types });
}

test("what happens to a turn that falls silent is told step by step, each with the same incident", async () => {
  const kit = await stalling(({ index }) => (index === 0 ? { text: "Half", hang: true } : "Half and whole."), {});
  await kit.stall(1);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.clock.advance(100);
  expect(await kit.client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(kit.types()).toEqual(["stream:stalled", "recovery:detected", "recovery:attempt", "recovery:completed"]);
  const incident = { incidentId: "r1:1", requestId: "r1", attempt: 1, maxAttempts: 10, recoveryKind: "continue" };
  expect(kit.events.slice(1).map(({ payload }) => payload)).toEqual([incident, incident, incident]);
});

test("tries that bring nothing new are bounded by themselves, and the event names the bound", async () => {
  const exhausted: ChatRecoveryContext[] = [];
  const kit = await stalling(() => ({ text: "Half", hang: true }), {
    maxNoProgressAttempts: 1,
    terminalMessage: "Nothing new.",
    onExhausted: (context) => void exhausted.push(context),
  });
  for (const call of [1, 2, 3]) await kit.stall(call);
  expect(await kit.client.done("r1")).toMatchObject({ error: true, body: "Nothing new." });
  expect(exhausted).toMatchObject([{ attempt: 3, recoveryKind: "continue", partialText: "Half" }]);
  expect(kit.events.find(({ type }) => type === "chat:recovery:exhausted")?.payload).toMatchObject({
    reason: "max_no_progress_attempts",
    attempt: 3,
  });
  expect(kit.types().at(-1)).toBe("request:failed");
});

test("anything new begins the count of fruitless tries anew", async () => {
  const words = ["one", " two", " three", " four", " five"];
  const kit = await stalling(({ index }) => ({ text: words[index] ?? "", hang: index < 4 }), {
    maxNoProgressAttempts: 0,
  });
  for (const call of [1, 2, 3, 4]) await kit.stall(call);
  await expect.poll(() => kit.model.calls.length).toBe(5);
  await kit.clock.advance(100);
  expect(await kit.client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(textIn(await kit.last())).toBe("one two three four five");
});

test("time without anything new is bounded, from the first try to carry on", async () => {
  const kit = await stalling(() => ({ text: "Half", hang: true }), { noProgressTimeoutMs: 1500 });
  for (const call of [1, 2, 3]) await kit.stall(call);
  expect(await kit.client.done("r1")).toMatchObject({ error: true });
  expect(kit.model.calls).toHaveLength(3);
  expect(kit.events.find(({ type }) => type === "chat:recovery:exhausted")?.payload).toMatchObject({
    reason: "no_progress_timeout",
  });
});

test("an app that declines is told as such", async () => {
  const kit = await stalling(
    () => ({ text: "Half", hang: true }),
    {},
    () => ({ continue: false }),
  );
  await kit.stall(1);
  expect(await kit.client.done("r1")).toMatchObject({ outcome: "aborted" });
  expect(kit.types()).toEqual(["stream:stalled", "recovery:detected", "recovery:skipped"]);
});

test("onChatRecovery is told what the turn had stashed, and the tools of the client", async () => {
  const model = scriptedModel(({ index }) =>
    index === 0 ? { toolCalls: [{ toolName: "dig", input: {}, toolCallId: "c1" }] } : "Done.",
  );
  const seen: ChatRecoveryContext[] = [];
  let digging = false;
  const kit = await openThink((Base) => {
    return class extends Base {
      override getModel() {
        return model;
      }
      override beforeToolCall() {
        this.stash({ at: "first" });
        this.stash({ at: "digging" });
        digging = true;
        return new Promise<never>(() => {});
      }
      override getTools() {
        return { dig: serverTool(() => "earth") };
      }
      override onChatRecovery(context: ChatRecoveryContext) {
        seen.push(context);
      }
    };
  });
  const agent = await kit.agent();
  expect(() => agent.stash("outside")).toThrow(/Call this inside/);
  const client = await kit.connect();
  const locate = { name: "locate", description: "Where.", parameters: { type: "object", properties: {} } };
  client.request("r1", [user("u1")], { clientTools: [locate] });
  await expect.poll(() => digging).toBe(true);
  await kit.restart();
  await kit.agent();
  await expect.poll(() => seen.length).toBe(1);
  expect(seen).toMatchObject([
    { recoveryKind: "continue", recoveryData: { at: "digging" }, clientTools: [{ name: "locate" }] },
  ]);
  expect(await kit.rows("SELECT stash FROM perdure_turn")).toEqual([{ stash: '{"at":"digging"}' }]);
});
