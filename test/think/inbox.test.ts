import { type Script, scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, serverTool } from "./harness.ts";

async function talking(script: Script, look: () => unknown = () => "a boat") {
  const model = scriptedModel(script);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { look: serverTool(look) };
        }
      },
  );
  return Object.assign(kit, { model });
}

test("submissions are accepted once per key, can be looked at, listed, and forgotten when they are over", async () => {
  const kit = await talking(({ userText }) => `about ${userText}`);
  const agent = await kit.agent();
  const options = { idempotencyKey: "k1", metadata: { from: "mail" } };
  const first = await agent.submitMessages([user("s1", "one")], options);
  expect(first).toMatchObject({ accepted: true });
  expect(await agent.submitMessages([user("s9", "one")], options)).toMatchObject({
    accepted: false,
    submissionId: first.submissionId,
  });
  await expect(agent.submitMessages([user("s1", "another")], options)).rejects.toMatchObject({ code: "conflict" });
  await agent.submitMessages([user("s2", "two")], { submissionId: "mine" });
  await kit.stable();
  expect(agent.inspectSubmission(first.submissionId)).toMatchObject({
    status: "completed",
    metadata: { from: "mail" },
    requestId: first.requestId,
  });
  expect(agent.listSubmissions({ status: "completed" }).map(({ submissionId }) => submissionId)).toEqual([
    "mine",
    first.submissionId,
  ]);
  expect(agent.listSubmissions({ limit: 1 })).toHaveLength(1);
  expect(agent.deleteSubmission("mine")).toBe(true);
  expect(agent.deleteSubmission("mine")).toBe(false);
  expect(agent.deleteSubmissions({ olderThan: Date.now() + 1 })).toBe(1);
  expect(agent.listSubmissions()).toEqual([]);
  // The conversation has nothing to do with that.
  expect((await kit.stored()).map(textIn)).toEqual(["one", "about one", "two", "about two"]);
});

test("a submission is cancelled whether it runs or waits, with its reason; one that is over is not", async () => {
  const kit = await talking([{ text: "Half", hang: true }]);
  const agent = await kit.agent();
  const running = await agent.submitMessages([user("s1", "one")]);
  const waiting = await agent.submitMessages([user("s2", "two")]);
  await expect.poll(() => kit.model.calls.length).toBe(1);
  expect(agent.inspectSubmission(running.submissionId)?.status).toBe("running");
  expect(agent.cancelSubmission(waiting.submissionId, "not needed")).toBe(true);
  expect(agent.cancelSubmission(running.submissionId)).toBe(true);
  await kit.stable();
  expect(agent.inspectSubmission(waiting.submissionId)).toMatchObject({ status: "aborted", error: "not needed" });
  expect(agent.inspectSubmission(running.submissionId)).toMatchObject({ status: "aborted" });
  expect(agent.cancelSubmission(running.submissionId)).toBe(false);
  expect(agent.cancelSubmission("none")).toBe(false);
  expect(kit.model.calls).toHaveLength(1);
});

test("what waits is listed, and can be changed, moved and taken back", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await talking(({ userText, index }) => (index === 0 ? gate.promise : `about ${userText}`));
  const client = await kit.connect();
  client.request("r0", [user("u0", "zero")]);
  await expect.poll(() => kit.model.calls.length).toBe(1);
  for (const n of [1, 2, 3]) client.request(`r${n}`, [user(`u${n}`, `number ${n}`)]);
  await client.flushed();
  const agent = await kit.agent();
  expect(agent.listInbox().map(({ requestId }) => requestId)).toEqual(["r1", "r2", "r3"]);
  expect(agent.editInbox("r1", "number one")).toBe("edited");
  expect(agent.moveInbox("r3", "r1")).toBe("moved");
  expect(agent.withdrawInbox("r2")).toMatchObject({ kind: "withdrawn" });
  expect(agent.editInbox("r0", "too late")).toBe("started");
  expect(agent.withdrawInbox("r0")).toMatchObject({ kind: "started" });
  gate.resolve("about zero");
  await kit.stable();
  expect((await kit.stored()).map(textIn)).toEqual([
    "zero",
    "about zero",
    "number 3",
    "about number 3",
    "number one",
    "about number one",
  ]);
});

test("a message that is steered into a running turn has a receipt of the call that read it", async () => {
  const gate = Promise.withResolvers<string>();
  const kit = await talking(
    ({ index }) => (index === 0 ? { toolCalls: [{ toolName: "look", input: {} }] } : "done"),
    () => gate.promise,
  );
  const agent = await kit.agent();
  agent.messageConcurrency = "steer";
  const client = await kit.connect();
  client.request("r1", [user("u1", "Look.")]);
  await expect.poll(() => kit.model.calls.length).toBe(1);
  client.request("r2", [user("u2", "Left, please.")]);
  await client.flushed();
  expect(agent.steerReceipt("r2")).toBeUndefined();
  gate.resolve("a boat");
  await client.done("r1");
  await kit.stable();
  const receipt = agent.steerReceipt("r2");
  expect(receipt).toMatchObject({ turnId: "r1", step: 1 });
  expect(agent.listUsage().find(({ id }) => id === receipt?.callId)).toMatchObject({ step: 1, status: "ok" });
  expect(JSON.stringify(kit.model.calls[1]?.prompt)).toContain("Left, please.");
  expect(kit.model.calls).toHaveLength(2);
});
