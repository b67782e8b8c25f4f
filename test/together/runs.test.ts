import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { user } from "../chat/client.ts";
import { outputsSent } from "../think/harness.ts";
import { childClass, heardText, openTogether, runFrames } from "./harness.ts";

test("a tool that is an agent: the child does the work, clients see it, the model reads its answer", async () => {
  const { Researcher, model: childModel } = childClass(["Three sources."]);
  const kit = await openTogether(Researcher, undefined, { tool: { displayName: "Researcher" } });
  const client = await kit.connect();
  client.request("r1", [user("u1", "Research tea.")]);
  await client.done("r1");
  expect(outputsSent(kit.model, 1)).toEqual({ c1: { type: "text", value: "Three sources." } });
  expect(childModel.calls).toHaveLength(1);
  const frames = runFrames(client);
  const [started] = frames;
  expect(started).toMatchObject({
    sequence: 0,
    parentToolCallId: "c1",
    event: {
      kind: "started",
      agentType: "Researcher",
      inputPreview: { query: "tea" },
      display: { name: "Researcher" },
    },
  });
  expect(frames.map(({ sequence }) => sequence)).toEqual(frames.map((_, i) => i));
  expect(heardText(frames)).toBe("Three sources.");
  expect(frames.at(-1)?.event).toMatchObject({ kind: "finished", summary: "Three sources." });
  // One who comes later hears the same, under the same numbers.
  const late = await kit.connect();
  await eventually(() => runFrames(late).length === frames.length, "the replay of a run");
  expect(runFrames(late)).toEqual(frames.map((frame) => ({ ...frame, replay: true })));
});
