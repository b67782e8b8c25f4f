// A tool in the background that has other agents work: their runs outlive the turn, and are paid for by it.
import { durableTool, Think } from "perdure";
import { jsonSchema, tool } from "ai";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { startHost } from "../clients/harness.ts";
import { until } from "../support/until.ts";

test("a run goes on when the turn has ended, and counts for the turn and the session that began it", async () => {
  const gate = Promise.withResolvers<void>();
  const child = scriptedModel(async () => {
    await gate.promise;
    return { text: "found", usage: { inputTokens: 70, outputTokens: 7 } };
  });
  const model = scriptedModel(({ step, userText }) =>
    step === 0 && userText === "go"
      ? { toolCalls: [{ toolName: "ask", input: {}, toolCallId: "c1" }] }
      : { text: "ok", usage: { inputTokens: 1, outputTokens: 1 } },
  );
  class Child extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return child;
    }
  }
  const lives: Parent[] = [];
  class Parent extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return model;
    }
    override onStart() {
      lives.push(this);
    }
    override getTools() {
      const ask = tool({
        inputSchema: jsonSchema<object>({ type: "object" }),
        execute: async () => (await this.runAgentTool(Child, { input: "look" })).output,
      });
      return { ask: durableTool(ask, { background: true }) };
    }
  }
  const host = await startHost({ agents: { Parent, Child } });
  await host.getAgentByName(Parent, "x").waitUntilStable();
  const parent = await until(() => lives[0]);
  const other = parent.createSession({ name: "other" }).id;
  const { requestId } = await parent.runTurn({ input: "go", session: other });
  await until(() => child.calls.length === 1);
  // The turn is over, and another one is said elsewhere meanwhile.
  await parent.runTurn({ input: "hello" });
  expect(parent.listAgentToolRuns()).toMatchObject([{ status: "running" }]);
  gate.resolve();
  await until(() => parent.listBackgroundCalls().length === 0);
  await parent.waitUntilStable();
  expect(parent.listAgentToolRuns()).toMatchObject([{ status: "completed" }]);
  const paid = parent.listUsage().filter(({ purpose }) => purpose === "agent-tool");
  expect(paid).toMatchObject([{ turnId: requestId, session: other, tokens: 77 }]);
  expect(JSON.stringify(parent.getHistory(undefined, { session: other }))).toContain("found");
});
