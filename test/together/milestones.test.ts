import type { AgentToolRunInfo, Think } from "perdure";
import type { AgentToolMilestone, DetachedAgentToolConfig } from "perdure/agent-tools";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { eventually, quiet } from "../host/open-host.ts";
import { serverTool } from "../think/harness.ts";
import { childClass, newGate, openTogether, runsAre, untilTrue } from "./harness.ts";

/** A detached child in a tool that the test works from inside, and a parent that wants to know how far it is. */
async function working(
  onMilestones: DetachedAgentToolConfig["onMilestones"],
  format?: (run: AgentToolRunInfo, milestone: AgentToolMilestone) => string,
) {
  const gate = newGate();
  const begun = newGate();
  const child = childClass(({ step }) => (step === 0 ? { toolCalls: [{ toolName: "work", input: {} }] } : "Three."), {
    work: serverTool(async () => {
      begun.open();
      await gate.opened;
      return "worked";
    }),
  });
  const kit = await openTogether(child.Researcher, ({ userText }) => `Heard: ${userText}`, {
    make: (Base) =>
      format === undefined
        ? Base
        : class extends Base {
            override formatDetachedMilestone(run: AgentToolRunInfo, milestone: AgentToolMilestone) {
              return format(run, milestone);
            }
          },
  });
  const agent = await kit.agent();
  await agent.runAgentTool(child.Researcher, {
    input: "tea",
    runId: "one",
    display: { name: "The researcher" },
    detached: { ...(onMilestones !== undefined && { onMilestones }) },
  });
  await begun.opened;
  const worker = () => child.lives.at(-1) as Think;
  const texts = async () => (await kit.stored()).map((message) => [message.role, textIn(message)]);
  return { ...child, kit, agent, worker, texts, gate };
}

test("milestones are narrated: an answer that no model wrote, once per name", async () => {
  const { kit, worker, texts, gate } = await working(["found", "read"]);
  await worker().reportProgress({ milestone: "found" });
  await worker().reportProgress({ milestone: "other" });
  await worker().reportProgress({ milestone: "found" });
  await worker().reportProgress({ milestone: "read" });
  gate.open();
  await runsAre(kit, "completed");
  expect(await texts()).toEqual([
    ["assistant", "The researcher has reached: found."],
    ["assistant", "The researcher has reached: read."],
  ]);
  expect(kit.model.calls).toHaveLength(0);
});

test("milestones are reacted to: a turn of its own, once per name", async () => {
  const { kit, worker, texts, gate } = await working({ names: ["found"], mode: "react" });
  await worker().reportProgress({ milestone: "found" });
  await worker().reportProgress({ milestone: "found" });
  await eventually(() => kit.model.calls.length === 1, "the turn of its own");
  gate.open();
  await runsAre(kit, "completed");
  await kit.stable();
  expect(await texts()).toEqual([
    ["user", "The researcher has reached: found."],
    ["assistant", "Heard: The researcher has reached: found."],
  ]);
});

test("the class's own words, or none", async () => {
  const { kit, worker, texts, gate } = await working({ names: ["a", "b"] }, (_run, { name, data }) =>
    name === "a" ? "" : `${name}: ${String(data)}`,
  );
  await worker().reportProgress({ milestone: "a" });
  await worker().reportProgress({ milestone: "b", data: 3 });
  gate.open();
  await runsAre(kit, "completed");
  expect(await texts()).toEqual([["assistant", "b: 3"]]);
});

test("words that throw are reported, and hold up neither the child nor its run", async () => {
  const { kit, worker, gate } = await working(["a"], () => {
    throw new Error("No words.");
  });
  await worker().reportProgress({ milestone: "a" });
  gate.open();
  await runsAre(kit, "completed");
  expect(kit.takeErrors()).toEqual(["No words."]);
});

test("through a restart each is told once", async () => {
  const { kit, worker, texts, gate, Researcher, lives } = await working(["found"]);
  await worker().reportProgress({ milestone: "found" });
  await untilTrue(async () => (await texts()).length === 1, "the narration");
  (await kit.agent()).abortSubAgent(Researcher, "one");
  await kit.restart();
  gate.open();
  await runsAre(kit, "completed");
  await quiet();
  expect(await texts()).toEqual([["assistant", "The researcher has reached: found."]]);
  expect(lives.length).toBeGreaterThan(1);
});
