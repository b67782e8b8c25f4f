import { jsonSchema, Output, type UIMessageChunk } from "ai";
import type { StreamCallback, Think } from "perdure";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, refusal, serverTool } from "./harness.ts";

async function talking(script: Script, options: { readonly manual?: boolean; readonly inside?: Inside } = {}) {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(() => options.inside?.(this) ?? "a boat") };
        }
      },
    { manual: options.manual ?? false },
  );
  return Object.assign(kit, { model });
}

type Inside = (agent: Think) => unknown;

/** A callback that notes all that it is told. */
function listener(more: Partial<StreamCallback> = {}) {
  const log: string[] = [];
  const ids: string[] = [];
  const callback: StreamCallback = {
    onStart: ({ requestId }) => {
      ids.push(requestId);
      log.push("start");
    },
    onEvent: (json) => void log.push((JSON.parse(json) as UIMessageChunk).type),
    onDone: () => void log.push("done"),
    onError: (error) => void log.push(`error: ${error}`),
    onInterrupted: () => void log.push("interrupted"),
    ...more,
  };
  return { log, ids, callback };
}

// chat

test("chat() tells its callback the id, each chunk in order, and the end", async () => {
  const kit = await talking([{ text: ["Hel", "lo."] }]);
  const { log, ids, callback } = listener();
  const end = await (await kit.agent()).chat("Hi.", callback);
  expect(end).toMatchObject({ status: "completed", requestId: ids[0] });
  expect(log).toEqual([
    "start",
    "start",
    "start-step",
    "text-start",
    "text-delta",
    "text-delta",
    "text-end",
    "finish-step",
    "finish",
    "done",
  ]);
});

test("chat() takes a message or several, and a slow callback is waited for", async () => {
  const kit = await talking(({ userText }) => `about ${userText}`);
  const agent = await kit.agent();
  const seen: string[] = [];
  const slow = listener({
    onEvent: async (json) => {
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(json);
    },
  });
  await agent.chat(user("u1", "one"), slow.callback);
  expect(JSON.parse(seen.at(-1) ?? "{}")).toMatchObject({ type: "finish" });
  await agent.chat([user("u2", "two"), user("u3", "three")], listener().callback);
  expect((await kit.stored()).map(textIn)).toEqual(["one", "about one", "two", "three", "about three"]);
});

test("chat() tells of an error once, and resolves", async () => {
  const kit = await talking([{ text: "Half", error: refusal(401), errorAfter: 1 }]);
  const { log, callback } = listener();
  const end = await (await kit.agent()).chat("Hi.", callback);
  expect(end.status).toBe("error");
  expect(log.at(-1)).toBe(`error: ${end.error}`);
  expect(log).not.toContain("done");
});

test("aborting the signal of chat() stops the turn", async () => {
  const kit = await talking([{ text: "Half", hang: true }]);
  const stop = new AbortController();
  const { callback, log } = listener({ onEvent: (json) => void (json.includes("Half") && stop.abort()) });
  expect(await (await kit.agent()).chat("Hi.", callback, { signal: stop.signal })).toMatchObject({ status: "aborted" });
  expect(textIn(await kit.last())).toBe("Half");
  expect(log.at(-1)).toBe("done");
  expect(kit.model.calls[0]?.status).toBe("aborted");
});

test("cancelChat() stops it by its id, from anywhere; a second time there is nothing to stop", async () => {
  const kit = await talking([{ text: "Half", hang: true }]);
  const agent = await kit.agent();
  const started = Promise.withResolvers<string>();
  const turn = agent.chat("Hi.", listener({ onStart: ({ requestId }) => started.resolve(requestId) }).callback);
  const id = await started.promise;
  expect(agent.cancelChat(id, "changed my mind")).toBe(true);
  expect(await turn).toMatchObject({ status: "aborted" });
  expect(agent.cancelChat(id)).toBe(false);
  expect(agent.cancelChat("none")).toBe(false);
});

test("cancelAllChats() stops what runs and what waits", async () => {
  const kit = await talking([{ text: "Half", hang: true }]);
  const agent = await kit.agent();
  const turns = [agent.chat("1", listener().callback), agent.chat("2", listener().callback)];
  await expect.poll(() => kit.model.calls.length).toBe(1);
  agent.cancelAllChats();
  expect((await Promise.all(turns)).map(({ status }) => status)).toEqual(["aborted", "aborted"]);
  expect(kit.model.calls).toHaveLength(1);
});

test("what a callback throws stops the turn", async () => {
  const kit = await talking([{ text: ["One", "Two"], hang: true }]);
  const broken = listener({
    onEvent: (json) => {
      if (json.includes("One")) throw new Error("gone");
    },
  });
  await expect((await kit.agent()).chat("Hi.", broken.callback)).rejects.toThrow("gone");
  await kit.stable();
  expect(kit.model.calls[0]?.status).toBe("aborted");
});

test.each<[string, () => void | Promise<void>]>([
  [
    "throws",
    () => {
      throw new Error("gone");
    },
  ],
  ["rejects", () => Promise.reject(new Error("gone"))],
])("an onStart that %s stops the turn too, and nothing is left unheard", async (_what, onStart) => {
  const kit = await talking([{ hang: "before" }]);
  const broken = listener({ onStart });
  await expect((await kit.agent()).chat("Hi.", broken.callback)).rejects.toThrow("gone");
  await kit.stable();
  expect(broken.log).not.toContain("done");
});

test("tools and settings that chat() brings along are for that turn alone", async () => {
  const kit = await talking(({ step, turn }) =>
    turn === 0 && step === 0 ? { toolCalls: [{ toolName: "extra", input: {}, toolCallId: "c1" }] } : "done",
  );
  const agent = await kit.agent();
  const extra = serverTool(() => "from the caller");
  await agent.chat("Hi.", listener().callback, { tools: { extra }, config: { temperature: 0.3 } });
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "from the caller" } });
  expect(kit.model.calls[0]?.options.temperature).toBe(0.3);
  await agent.chat("Again.", listener().callback);
  expect(kit.model.calls[2]?.tools.map(({ name }) => name)).toEqual(["look"]);
  expect(kit.model.calls[2]?.options.temperature).toBeUndefined();
});

test("a stall is told as an interruption: neither done nor failed", async () => {
  const kit = await talking(({ index }) => (index === 0 ? { text: "Half", hang: true } : "Half and whole."), {
    manual: true,
  });
  const agent = await kit.agent();
  agent.chatStreamStallTimeoutMs = 1000;
  const { log, callback } = listener();
  const turn = agent.chat("Hi.", callback);
  await expect.poll(() => log).toContain("text-delta");
  await kit.clock.advance(1000);
  expect(await turn).toMatchObject({ status: "completed" });
  expect(log.filter((one) => one === "interrupted")).toHaveLength(1);
  expect(log.indexOf("interrupted")).toBeGreaterThan(log.indexOf("text-delta"));
  expect(log.at(-1)).toBe("done");
  expect(textIn(await kit.last())).toBe("Half and whole.");
});

// runTurn

test("runTurn waits for the answer by default, and gives structured output its type", async () => {
  const kit = await talking(['{"port":"Kiel"}']);
  const schema = jsonSchema<{ port: string }>({ type: "object", properties: { port: { type: "string" } } });
  const { status, output } = await (
    await kit.agent()
  ).runTurn({ input: "Where?", config: { output: Output.object({ schema }) } });
  expect([status, output?.port]).toEqual(["completed", "Kiel"]);
});

test("runTurn in mode stream tells a callback", async () => {
  const kit = await talking(["Hello."]);
  const { log, callback } = listener();
  const end = await (await kit.agent()).runTurn({ mode: "stream", input: "Hi.", callback });
  expect(end.status).toBe("completed");
  expect(log.at(0)).toBe("start");
  expect(log.at(-1)).toBe("done");
});

test("runTurn in mode submit returns once it is accepted", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await talking(() => gate.promise);
  const agent = await kit.agent();
  const { submissionId, accepted } = await agent.runTurn({ mode: "submit", input: "Hi.", idempotencyKey: "k" });
  expect(accepted).toBe(true);
  expect((await agent.runTurn({ mode: "submit", input: "Hi.", idempotencyKey: "k" })).submissionId).toBe(submissionId);
  gate.resolve("Hello.");
  await kit.stable();
  expect(agent.inspectSubmission(submissionId)?.status).toBe("completed");
  expect(kit.model.calls).toHaveLength(1);
});

test("a submission without a message is refused", async () => {
  const kit = await talking([]);
  const options = { mode: "submit" } as Parameters<Think["runTurn"]>[0];
  await expect((await kit.agent()).runTurn(options)).rejects.toMatchObject({ code: "bad_input" });
});

test("runTurn with a continuation goes on with the last answer; without one it is skipped", async () => {
  const kit = await talking(({ index }) => (index === 0 ? "One." : " Two."));
  const agent = await kit.agent();
  expect(await agent.runTurn({ continuation: true })).toEqual({ requestId: "", status: "skipped" });
  await agent.runTurn({ input: "Count." });
  expect(await agent.runTurn({ continuation: true })).toMatchObject({ status: "completed" });
  expect(await agent.runTurn({})).toMatchObject({ status: "completed" });
  const messages = await kit.stored();
  expect(messages).toHaveLength(2);
  expect(textIn(messages[1])).toBe("One. Two. Two.");
});

test.each<[string, Inside]>([
  ["runTurn", (agent) => agent.runTurn({ input: "Inner." })],
  ["chat", (agent) => agent.chat("Inner.", listener().callback)],
])("%s inside a turn of the same agent is refused: it would wait for itself", async (_name, inside) => {
  const kit = await talking(
    ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "c1" }] } : "done"),
    { inside },
  );
  expect(await kit.ask("Go.")).toMatchObject({ status: "completed" });
  expect(JSON.stringify(outputsSent(kit.model, 1).c1)).toContain("submitMessages");
});

test("a submission inside a turn is accepted, and runs after it", async () => {
  const kit = await talking(
    ({ step, userText }) =>
      userText === "Go." && step === 0 ? { toolCalls: [{ toolName: "look", input: {} }] } : `after ${userText}`,
    { inside: async (agent) => (await agent.runTurn({ mode: "submit", input: "Inner." })).status },
  );
  await kit.ask("Go.");
  await kit.stable();
  expect((await kit.stored()).map(textIn)).toEqual(["Go.", "after Go.", "Inner.", "after Inner."]);
});

// Messages without a turn

test("addMessages replaces those of the same id, or with append leaves them", async () => {
  const kit = await talking([]);
  const agent = await kit.agent();
  await agent.addMessages([user("u1", "one")]);
  await agent.addMessages([user("u1", "other"), user("u2", "two")], { mode: "append" });
  expect((await kit.stored()).map(textIn)).toEqual(["one", "two"]);
  await agent.addMessages([user("u1", "other")], { mode: "upsert" });
  await agent.addMessages((messages) => [user("u3", `after ${messages.length}`)]);
  expect((await kit.stored()).map(textIn)).toEqual(["other", "two", "after 2"]);
  expect(kit.model.calls).toHaveLength(0);
});

test("addMessages is seen by connected clients, and is there after a restart", async () => {
  const kit = await talking([]);
  const client = await kit.connect();
  await (await kit.agent()).addMessages([user("u1", "one")]);
  await client.frame(({ messages }) => messages?.some(({ id }) => id === "u1") === true);
  await kit.restart();
  expect((await kit.stored()).map(textIn)).toEqual(["one"]);
});

// Looking and waiting

test("abortRequest stops one turn; waitUntilStable says when nothing runs or waits", async () => {
  const kit = await talking([{ text: "Half", hang: true }, "whole"], { manual: true });
  const agent = await kit.agent();
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await client.said("r1", "Half");
  const early = agent.waitUntilStable({ timeout: 100 });
  await kit.clock.advance(100);
  expect(await early).toBe(false);
  expect(agent.abortRequest("none")).toBe(false);
  expect(agent.abortRequest("r1")).toBe(true);
  expect(await agent.waitUntilStable()).toBe(true);
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
});

test("hasPendingInteraction: a client's tool waits for its answer", async () => {
  const kit = await talking(({ index }) =>
    index === 0 ? { toolCalls: [{ toolName: "locate", input: {}, toolCallId: "c1" }] } : "Kiel.",
  );
  const agent = await kit.agent();
  const client = await kit.connect();
  expect(agent.hasPendingInteraction()).toBe(false);
  client.request("r1", [user("u1", "Where am I?")], {
    clientTools: [{ name: "locate", description: "", parameters: { type: "object" } }],
  });
  await client.done("r1");
  expect(agent.hasPendingInteraction()).toBe(true);
  expect(agent.pendingApprovals()).toEqual([]);
  expect(agent.answerToolCall("c1", "54° north")).toBe(true);
  expect(agent.answerToolCall("c1", "elsewhere")).toBe(false);
  await expect.poll(() => kit.model.calls.length).toBe(2);
  await kit.stable();
  expect(agent.hasPendingInteraction()).toBe(false);
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "54° north" } });
  expect(textIn(await kit.last())).toBe("Kiel.");
});
