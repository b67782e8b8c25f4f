// What children bring back goes to the session that asked for it, whichever is the current one by then.
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { asksOnce, childClass, newGate, openTogether, runsAre } from "../together/harness.ts";

test("a run that a turn of one session left behind is told there", async () => {
  const gate = newGate();
  const { Researcher } = childClass(async () => gate.opened.then(() => "Three."));
  const first = asksOnce as Extract<typeof asksOnce, (...args: never[]) => unknown>;
  const kit = await openTogether(Researcher, (call) => (call.userText === "look it up" ? first(call) : "I heard."), {
    tool: { detached: { notify: true } },
  });
  const agent = await kit.agent();
  const { id } = agent.createSession("Side");
  await agent.runTurn({ input: "look it up", session: id });
  await kit.restart();
  gate.open();
  await eventually(() => kit.model.calls.length === 3, "the turn of its own");
  await kit.stable();
  const again = await kit.agent();
  expect(again.getHistory(null, { session: "main" })).toEqual([]);
  expect(again.getHistory(null, { session: id }).map((message) => textIn(message))).toEqual([
    "look it up",
    "Done.",
    expect.stringContaining("Three."),
    "I heard.",
  ]);
});

test("if that session is gone, nobody is told, and it is not made again", async () => {
  const gate = newGate();
  const { Researcher } = childClass(async () => gate.opened.then(() => "Three."));
  const kit = await openTogether(Researcher, asksOnce, { tool: { detached: { notify: true } } });
  const agent = await kit.agent();
  const { id } = agent.createSession("Side");
  await agent.runTurn({ input: "look it up", session: id });
  agent.deleteSession(id);
  gate.open();
  await runsAre(kit, "completed");
  await kit.stable();
  expect(agent.getSessions()).toEqual([]);
  expect(kit.model.calls).toHaveLength(2);
});
