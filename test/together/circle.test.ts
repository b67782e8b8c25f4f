// Agents that wait for each other's turns.
import { jsonSchema, tool } from "ai";
import { Think } from "perdure";
import { type ServedHost, subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { startHost } from "../clients/harness.ts";

const inputSchema = jsonSchema<object>({ type: "object" });

test("agents whose turns wait for each other are told of the circle, and end", async () => {
  const heard: string[][] = [];
  onTestFinished(subscribe("agent:circle", ({ payload }) => void heard.push(payload.agents)));
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "ask", input: {}, toolCallId: "c" }] } : "Done.",
  );
  class Ann extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return model;
    }
    override getTools() {
      const execute = async () => (await host.getAgentByName(Ben, "b").runTurn({ input: "Ask Ann." })).status;
      return { ask: tool({ inputSchema, execute }) };
    }
  }
  class Ben extends Ann {
    override getTools() {
      const execute = async () => (await host.getAgentByName(Ann, "a").runTurn({ input: "Ask Ben." })).status;
      return { ask: tool({ inputSchema, execute }) };
    }
  }
  const host: ServedHost = await startHost({ agents: { Ann, Ben } });
  expect(await host.getAgentByName(Ann, "a").runTurn({ input: "Ask Ben." })).toMatchObject({ status: "completed" });
  expect(heard).toEqual([["Ann/a", "Ben/b", "Ann/a"]]);
  expect(JSON.stringify(model.calls.map(({ prompt }) => prompt))).toContain("Ann/a → Ben/b → Ann/a");
});

test("an agent that was asked may ask back when nobody waits for it", async () => {
  const heard: string[][] = [];
  onTestFinished(subscribe("agent:circle", ({ payload }) => void heard.push(payload.agents)));
  const model = scriptedModel(() => "Done.");
  class Ann extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return model;
    }
    async ask(): Promise<string> {
      return await host.getAgentByName(Ben, "b").askBack();
    }
  }
  class Ben extends Ann {
    async askBack(): Promise<string> {
      return (await host.getAgentByName(Ann, "a").runTurn({ input: "Hello." })).status;
    }
  }
  const host: ServedHost = await startHost({ agents: { Ann, Ben } });
  expect(await host.getAgentByName(Ann, "a").ask()).toBe("completed");
  expect(heard).toEqual([]);
});
