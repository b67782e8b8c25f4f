import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { childClass, connectChild, given, heardText, openTogether, runFrames, runsAre, storedRuns } from "./harness.ts";

/** A child that must ask before it pays. */
function payer() {
  const paid: number[] = [];
  const { Researcher, model, lives } = childClass(
    ({ step }) =>
      step === 0
        ? { text: "I have to pay. ", toolCalls: [{ toolName: "pay", input: { amount: 5 }, toolCallId: "p1" }] }
        : "Paid for it.",
    {
      pay: serverTool<{ amount: number }>(
        ({ amount }) => {
          paid.push(amount);
          return "paid";
        },
        { needsApproval: true },
      ),
    },
  );
  return { Researcher, model, lives, paid };
}

async function waiting() {
  const parts = payer();
  const kit = await openTogether(parts.Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(
    () => runFrames(client).some(({ event }) => event.body?.includes("tool-approval-request")),
    "the child's question",
  );
  const [run] = await runsAre(kit, "running");
  const runId = run?.runId ?? "";
  await eventually(() => parts.lives[0]?.hasPendingInteraction(), "a child that waits");
  return { ...parts, kit, client, runId };
}

test("a child asks a person: the run waits, the answer is given at the child's own address", async () => {
  const { kit, client, runId, paid, lives } = await waiting();
  await lives[0]?.waitUntilStable();
  await quiet();
  expect(await storedRuns(kit)).toMatchObject([{ status: "running" }]);
  const child = await connectChild(kit, runId);
  child.approve("p1", true);
  expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
  expect(paid).toEqual([5]);
  expect(given(kit.model, 1)).toBe("Paid for it.");
  const frames = runFrames(client);
  // What the second turn says has the next numbers.
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
  expect(heardText(frames)).toBe("I have to pay. Paid for it.");
  expect(frames.at(-1)?.event).toMatchObject({ kind: "finished", summary: "Paid for it." });
  const late = await kit.connect();
  await eventually(() => runFrames(late).length === frames.length, "the replay of a run");
  expect(runFrames(late)).toEqual(frames.map((frame) => ({ ...frame, replay: true })));
});

test("a person says no: the child goes on without it", async () => {
  const { kit, client, runId, paid, model } = await waiting();
  const child = await connectChild(kit, runId);
  child.approve("p1", false);
  await client.done("r1");
  expect(paid).toEqual([]);
  expect(model.calls).toHaveLength(2);
  expect(given(kit.model, 1)).toBe("Paid for it.");
});

test("who connects while the child waits is told of the question, and then of the rest", async () => {
  const { kit, client, runId } = await waiting();
  const late = await kit.connect();
  await eventually(
    () => runFrames(late).some(({ event }) => event.body?.includes("tool-approval-request")),
    "the question, replayed",
  );
  const child = await connectChild(kit, runId);
  child.approve("p1", true);
  await client.done("r1");
  await eventually(() => runFrames(late).at(-1)?.event.kind === "finished", "the end");
  expect(runFrames(late).map(({ sequence, event }) => [sequence, event])).toEqual(
    runFrames(client).map(({ sequence, event }) => [sequence, event]),
  );
});

test("the parent's turn is stopped while the child waits", async () => {
  const { kit, client, runId, lives, model, paid } = await waiting();
  client.cancel("r1");
  expect(await client.done("r1")).toMatchObject({ outcome: "aborted" });
  await runsAre(kit, "aborted");
  expect(lives[0]?.inspectAgentToolRun(runId)).toMatchObject({ status: "aborted" });
  // An answer that comes later is for nobody.
  const child = await connectChild(kit, runId);
  child.approve("p1", true);
  await child.flushed();
  await lives[0]?.waitUntilStable();
  expect(await storedRuns(kit)).toMatchObject([{ status: "aborted" }]);
  expect(paid.length + model.calls.length).toBeLessThanOrEqual(3);
});

test("a run that waits is stopped by its id", async () => {
  const { kit, client, runId } = await waiting();
  await (await kit.agent()).cancelAgentTool(runId, "Too expensive.");
  await client.done("r1");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "aborted", error: "Too expensive." });
});

test("both sides leave memory while the child waits, and come back for the answer", async () => {
  const { kit, runId, paid } = await waiting();
  await kit.restart();
  const again = await kit.connect();
  const child = await connectChild(kit, runId);
  child.approve("p1", true);
  await runsAre(kit, "completed");
  await eventually(() => kit.model.calls.length === 2, "the parent's next call");
  await kit.stable();
  expect(paid).toEqual([5]);
  expect(given(kit.model, 1)).toBe("Paid for it.");
  await eventually(() => runFrames(again).at(-1)?.event.kind === "finished", "the end");
  expect(heardText(runFrames(again))).toBe("I have to pay. Paid for it.");
});

test("a tool that a client runs: its result is given at the child's own address", async () => {
  const look = { look: tool({ inputSchema: jsonSchema({ type: "object" }) }) };
  const { Researcher } = childClass(
    ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "look", input: {}, toolCallId: "l1" }] } : "I saw it."),
    look,
  );
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => runFrames(client).some(({ event }) => event.body?.includes('"finish"')), "the first turn");
  const [run] = await runsAre(kit, "running");
  const child = await connectChild(kit, run?.runId ?? "");
  child.result("l1", { seen: "a cat" });
  await client.done("r1");
  expect(given(kit.model, 1)).toBe("I saw it.");
  const frames = runFrames(client);
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
});

test("the child's conversation is cleared while it waits", async () => {
  const { kit, client, runId } = await waiting();
  const child = await connectChild(kit, runId);
  child.clear();
  await client.done("r1");
  expect(given(kit.model, 1)).toMatchObject({ ok: false, status: "aborted", retryable: false });
});

test("somebody asks the waiting child for something else instead", async () => {
  const { kit, client, runId, paid } = await waiting();
  const child = await connectChild(kit, runId);
  child.request("x1", [user("x", "Never mind. What time is it?")]);
  await child.done("x1");
  await client.done("r1");
  expect(paid).toEqual([]);
  // The question is closed, so the run is at its end: with what it had said itself.
  const [run] = await storedRuns(kit);
  expect(run?.status).toBe("completed");
  expect(given(kit.model, 1)).toBe("I have to pay. ");
});

test("the waiting child answers its message anew: the run goes on to that answer", async () => {
  const { kit, client, runId, lives } = await waiting();
  const child = await connectChild(kit, runId);
  const [asked] = lives[0]?.messages ?? [];
  child.request("x1", [asked], { trigger: "regenerate-message" });
  await eventually(() => lives[0]?.hasPendingInteraction(), "a child that waits");
  await child.done("x1");
  await quiet();
  const status = (await storedRuns(kit))[0]?.status;
  // The new answer's call is another one, and has an id of its own.
  const call = lives[0]?.messages.at(-1)?.parts.find((part) => "toolCallId" in part);
  child.approve(call !== undefined && "toolCallId" in call ? call.toolCallId : "", true);
  await client.done("r1");
  expect([status, textIn(lives[0]?.messages.at(-1))]).toEqual(["running", "I have to pay. Paid for it."]);
  expect(given(kit.model, 1)).toBe("Paid for it.");
});
