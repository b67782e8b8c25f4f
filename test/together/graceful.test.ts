import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { eventually } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { childClass, given, newGate, openTogether, runsAre, storedRuns } from "./harness.ts";

test("a host that stops while a turn is between two runs: the second is done at the next start, once", async () => {
  const gate = newGate();
  const { Researcher, model } = childClass(async ({ userText }) => {
    if (userText.includes("first")) await gate.opened;
    return `About ${userText.includes("first") ? "first" : "second"}.`;
  });
  const kit = await openTogether(
    Researcher,
    ({ step }) =>
      step < 2
        ? { toolCalls: [{ toolName: "research", input: { query: ["first", "second"][step] }, toolCallId: `c${step}` }] }
        : "Done.",
    { host: { graceMs: 500 } },
  );
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => model.calls.length === 1, "the child's call");
  const again = kit.restart();
  gate.open();
  await again;
  await kit.agent();
  await eventually(() => kit.model.calls.some(({ step }) => step === 2), "the last call");
  await kit.stable();
  const last = kit.model.calls.length - 1;
  expect(given(kit.model, last, "c0")).toBe("About first.");
  expect(given(kit.model, last, "c1")).toBe("About second.");
  expect((await storedRuns(kit)).map(({ status }) => status)).toEqual(["completed", "completed"]);
});

test("a host that stops while a child is between two steps: it goes on at the next start", async () => {
  const gate = newGate();
  const { Researcher, model } = childClass(
    ({ step }) => (step === 0 ? { toolCalls: [{ toolName: "work", input: {}, toolCallId: "w" }] } : "Three."),
    { work: serverTool(async () => gate.opened.then(() => "worked")) },
  );
  const kit = await openTogether(Researcher, undefined, { host: { graceMs: 500 } });
  const client = await kit.connect();
  client.request("r1", [user("u1")]);
  await eventually(() => model.calls.length === 1, "the child's call");
  await runsAre(kit, "running");
  const again = kit.restart();
  gate.open();
  await again;
  await kit.agent();
  await eventually(() => kit.model.calls.length === 2, "the last call");
  await kit.stable();
  expect(given(kit.model, 1)).toBe("Three.");
});
