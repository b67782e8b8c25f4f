import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { childClass, connectChild, given, heardText, newGate, openTogether, runFrames, runsAre } from "./harness.ts";

/** A child that works until the test lets it go on; what it is asked after that it answers at once. */
async function working() {
  const gate = newGate();
  const child = childClass(async ({ userText }) => {
    if (!userText.includes("query")) return `You said: ${userText}`;
    await gate.opened;
    return "Three sources.";
  });
  const kit = await openTogether(child.Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => child.model.calls.length === 1, "the child's call");
  const [run] = await runsAre(kit, "running");
  const runId = run?.runId ?? "";
  const own = await connectChild(kit, runId);
  return { ...child, gate, kit, client, own, runId };
}

test("the child's conversation is cleared while it works: the run is stopped", async () => {
  const { own, client, kit, model } = await working();
  own.clear();
  await client.done("r1");
  expect(given(kit.model, 1)).toMatchObject({
    ok: false,
    status: "aborted",
    error: expect.stringContaining("cleared"),
  });
  expect(model.calls.map(({ status }) => status)).toEqual(["aborted"]);
});

test("the child's conversation is cleared after its words were heard: numbers stay as they were", async () => {
  const { Researcher } = childClass([{ text: ["One ", "two "], hang: true }]);
  const kit = await openTogether(Researcher);
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => heardText(runFrames(client)) === "One two ", "the child's words");
  const [run] = await runsAre(kit, "running");
  const own = await connectChild(kit, run?.runId ?? "");
  own.clear();
  await client.done("r1");
  await eventually(() => runFrames(client).at(-1)?.event.kind === "aborted", "the end of the run");
  const numbers = runFrames(client).map(({ sequence }) => sequence);
  expect(numbers).toEqual(numbers.map((_, i) => i));
});

test("somebody else asks the child while it works: that waits, and is not what the run brings", async () => {
  const { own, client, kit, gate, lives, model } = await working();
  own.request("x1", [user("x", "Hello?")]);
  await own.flushed();
  gate.open();
  await client.done("r1");
  expect(given(kit.model, 1)).toBe("Three sources.");
  expect(await own.done("x1")).toMatchObject({ outcome: "completed" });
  expect(model.calls).toHaveLength(2);
  expect(lives[0]?.messages.map((message) => textIn(message)).slice(1)).toEqual([
    "Three sources.",
    "Hello?",
    "You said: Hello?",
  ]);
  expect(heardText(runFrames(client))).toBe("Three sources.");
});

test("the child is asked more after the run: its words stay with it, and are not told as the run's", async () => {
  const { own, client, kit, gate, lives } = await working();
  gate.open();
  await client.done("r1");
  const before = runFrames(client).length;
  for (const text of ["one", "two", "three"]) {
    own.request(text, [...(lives[0]?.messages ?? []), user(`u-${text}`, text)]);
    await own.done(text);
  }
  await quiet();
  expect(runFrames(client)).toHaveLength(before);
  const late = await kit.connect();
  await eventually(() => runFrames(late).length === before, "the replay of a run");
  expect(heardText(runFrames(late))).toBe("Three sources.");
});

test("words of a run are kept, those of other turns are not", async () => {
  const { Researcher, lives, hosts } = childClass(({ userText }) => `Said ${userText}.`);
  const kit = await openTogether(Researcher, ["unused"]);
  const agent = await kit.agent();
  await agent.runAgentTool(Researcher, { input: "run", runId: "one" });
  const own = await connectChild(kit, "one");
  for (const text of ["first", "second"]) {
    own.request(text, [...(lives[0]?.messages ?? []), user(`u-${text}`, text)]);
    await own.done(text);
  }
  await kit.restart();
  const stub = await (await kit.agent()).subAgent(Researcher, "one");
  const chunks = await stub.getAgentToolChunks("one");
  expect(chunks.map(({ body }) => body).join()).toContain("Said run.");
  expect(chunks.map(({ sequence }) => sequence)).toEqual(chunks.map((_, i) => i));
  expect(await stub.getAgentToolChunks("one", { from: 3 })).toEqual(chunks.slice(3));
  const inspected = await stub.inspectAgentToolRun("one");
  expect(inspected).toMatchObject({ status: "completed", chunks: chunks.length, output: "Said run." });
  const rows = hosts.at(-1)?.sql<{ chunks: string }>("SELECT chunks FROM perdure_stream") ?? [];
  const kept = rows.map(({ chunks: words }) => words).join();
  expect(kept).toContain("Said run.");
  expect(kept).not.toContain("Said first.");
});

test("the child answers its message anew after the run: the run stays as it is", async () => {
  const { own, client, kit, gate, runId, lives } = await working();
  gate.open();
  await client.done("r1");
  const [asked] = lives[0]?.messages ?? [];
  own.request("x1", [asked], { trigger: "regenerate-message" });
  await own.done("x1");
  await quiet();
  expect(lives[0]?.inspectAgentToolRun(runId)).toMatchObject({ status: "completed", output: "Three sources." });
  expect(heardText(runFrames(client))).toBe("Three sources.");
  expect(kit.model.calls).toHaveLength(2);
});

test("the child is asked to answer anew while it works: first the run, then that", async () => {
  const { own, client, gate, kit, lives, model } = await working();
  const [asked] = lives[0]?.messages ?? [];
  own.request("x1", [asked], { trigger: "regenerate-message" });
  await own.flushed();
  gate.open();
  await client.done("r1");
  await own.done("x1");
  expect(given(kit.model, 1)).toBe("Three sources.");
  expect(model.calls).toHaveLength(2);
  const numbers = runFrames(client).map(({ sequence }) => sequence);
  expect(numbers).toEqual(numbers.map((_, i) => i));
});

test("a run that a child does not know: nothing to inspect, follow or stop", async () => {
  const { Researcher } = childClass(["unused"]);
  const kit = await openTogether(Researcher, ["unused"]);
  const stub = await (await kit.agent()).subAgent(Researcher, "helper");
  expect(await stub.inspectAgentToolRun("nothing")).toBeNull();
  expect(await stub.getAgentToolChunks("nothing")).toEqual([]);
  const listener = { chunks: () => {}, milestone: () => {} };
  expect(await stub.tailAgentToolRun("nothing", { listener })).toBeNull();
  // A stop that comes before the work is remembered.
  await stub.cancelAgentToolRun("early", "Never mind.");
  expect(await stub.startAgentToolRun("tea", { runId: "early" })).toMatchObject({
    status: "aborted",
    error: "Never mind.",
  });
});

test("two runs in one child, asked for by its own parent's code, do not mix", async () => {
  const { Researcher, model } = childClass(({ userText }) => `About ${userText}.`);
  const kit = await openTogether(Researcher, ["unused"]);
  const stub = await (await kit.agent()).subAgent(Researcher, "helper");
  const said: Record<string, string[]> = { a: [], b: [] };
  const follow = (runId: string) =>
    stub.tailAgentToolRun(runId, {
      listener: { chunks: (chunks) => said[runId]?.push(...chunks.map(({ body }) => body)), milestone: () => {} },
    });
  await stub.startAgentToolRun("tea", { runId: "a" });
  await stub.startAgentToolRun("coffee", { runId: "b" });
  const ends = await Promise.all([follow("a"), follow("b")]);
  // Its parent knows nothing of these runs, so it wants none of them.
  expect(ends.map((end) => end?.status)).toEqual(["aborted", "aborted"]);
  expect(model.calls).toHaveLength(0);
});
