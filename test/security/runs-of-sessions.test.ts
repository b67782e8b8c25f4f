// What a child says is for the conversation that asked for it.
import { expect, test } from "vitest";
import { connectTo, user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { childClass, heardText, openTogether, runFrames, runsAre } from "../together/harness.ts";

test("what a child does for one conversation is told in no other, neither live nor to who comes later", async () => {
  const { Researcher } = childClass(() => "Tea is secret.");
  const kit = await openTogether(Researcher);
  const agent = await kit.agent();
  agent.createSession({ id: "ben", name: "Ben" });
  const ben = await connectTo(`${kit.url}?_session=ben`);
  const anna = await kit.connect();
  anna.request("r1", [user("u1")]);
  await anna.done("r1");
  await runsAre(kit, "completed");
  expect(heardText(runFrames(anna))).toBe("Tea is secret.");
  const late = await connectTo(`${kit.url}?_session=ben`);
  const alike = await kit.connect();
  await eventually(() => runFrames(alike).at(-1)?.event.kind === "finished", "the run for who comes later");
  await ben.flushed();
  await late.flushed();
  expect([...ben.frames, ...late.frames].filter((frame) => JSON.stringify(frame).includes("secret"))).toEqual([]);
  expect([...runFrames(ben), ...runFrames(late)]).toEqual([]);
  // The turn may be forgotten by now: what was its conversation is not.
  await kit.rows("DELETE FROM perdure_turn");
  const later = await connectTo(`${kit.url}?_session=ben`);
  await later.flushed();
  expect(runFrames(later)).toEqual([]);
});

test("who goes to another conversation is told of its runs, and hears those that are under way to their end", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { Researcher } = childClass(() => promise.then(() => "Tea is green."));
  const kit = await openTogether(Researcher);
  const agent = await kit.agent();
  agent.createSession({ id: "ben", name: "Ben" });
  const client = await connectTo(`${kit.url}?_session=ben`);
  void agent.saveMessages([user("u1")]);
  await runsAre(kit, "running");
  client.send({ type: "perdure_session", id: "q", op: "attach", session: "main" });
  await eventually(() => runFrames(client).at(-1)?.event.kind === "started", "the run that is under way");
  resolve();
  await eventually(() => runFrames(client).at(-1)?.event.kind === "finished", "its end");
  expect(heardText(runFrames(client))).toBe("Tea is green.");
});

test("runs that code asks for outside of turns are told to all clients, whatever conversation they are in", async () => {
  const { Researcher } = childClass(() => "Tea is green.");
  const kit = await openTogether(Researcher);
  const agent = await kit.agent();
  agent.createSession({ id: "ben", name: "Ben" });
  const client = await connectTo(`${kit.url}?_session=ben`);
  await agent.runAgentTool(Researcher, { input: "tea", runId: "tea" });
  await eventually(() => runFrames(client).at(-1)?.event.kind === "finished", "the end of the run");
});
