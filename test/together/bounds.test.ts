// How deep and how many: agents that start agents, on a real host.
import { agentTool, Think } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { startHost, takeFailures, tempDir } from "../clients/harness.ts";

const inputSchema = z.object({});
const passesOn: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "next", input: {}, toolCallId: "c" }] } : "Done.";

function ring() {
  const model = scriptedModel(passesOn);
  class Ping extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return model;
    }
    override getTools() {
      return { next: agentTool(Pong, { description: "Asks the next.", inputSchema }) };
    }
  }
  class Pong extends Ping {
    override getTools() {
      return { next: agentTool(Ping, { description: "Asks the next.", inputSchema }) };
    }
  }
  return { Ping, Pong, model };
}

/** What was refused while the test ran. */
function refusals() {
  const heard: { reason: string; chain: readonly string[] }[] = [];
  onTestFinished(subscribe("agent_tool:refused", ({ payload }) => void heard.push(payload)));
  return heard;
}

test("two agents that start each other end five deep, with words that name the circle, and an event", async () => {
  const { Ping, Pong, model } = ring();
  const heard = refusals();
  const host = await startHost({ agents: { Ping, Pong } });
  const answer = await host.getAgentByName(Ping, "x").runTurn({ input: "go" });
  expect(answer.status).toBe("completed");
  // Six agents, of which the last was told no.
  expect(model.calls).toHaveLength(12);
  expect(heard).toEqual([
    { ...heard[0], reason: "depth", chain: ["Ping", "Pong", "Ping", "Pong", "Ping", "Pong", "Ping"] },
  ]);
  const said = JSON.stringify(model.calls.flatMap(({ prompt }) => prompt));
  expect(said).toContain("They go in a circle: Ping ↔ Pong.");
  expect(said).toContain("Ping → Pong → Ping → Pong → Ping → Pong → Ping");
});

test("what a child starts later, outside of its run, is as deep as the child is", async () => {
  const tried: string[] = [];
  const model = scriptedModel(() => "Done.");
  class Leaf extends Think {
    override workspaceTools = false as const;
    override maxAgentToolDepth = 1;
    override getModel() {
      return model;
    }
    override getTools() {
      void this.queue("again", {});
      return {};
    }
    async again() {
      tried.push((await this.runAgentTool(Leaf, { input: "again" })).error ?? "started");
    }
  }
  class Root extends Leaf {
    override getTools() {
      return {};
    }
    async begin() {
      return (await this.runAgentTool(Leaf, { input: "go" })).status;
    }
  }
  const host = await startHost({ agents: { Root, Leaf } });
  expect(await host.getAgentByName(Root, "x").begin()).toBe("completed");
  await expect.poll(() => tried).toEqual([expect.stringContaining("Leaf starts itself")]);
});

/** Each asks for `wide` children at once, as deep as it may. */
function tree(wide: number, most: number) {
  const model = scriptedModel(({ step }) =>
    step === 0
      ? { toolCalls: Array.from({ length: wide }, (_, i) => ({ toolName: "next", input: {}, toolCallId: `c${i}` })) }
      : "Done.",
  );
  class Node extends Think {
    override workspaceTools = false as const;
    // Only that of the agent at the root counts.
    override maxAgentToolRuns = 1_000;
    override getModel() {
      return model;
    }
    override getTools() {
      return { next: agentTool(Node, { description: "Asks the next.", inputSchema }) };
    }
  }
  class Top extends Node {
    override maxAgentToolRuns = most;
  }
  return { Node, Top };
}

test("a turn may start so many agents in the whole tree below it, and the next turn as many again", async () => {
  const { Node, Top } = tree(3, 7);
  const heard = refusals();
  let started = 0;
  onTestFinished(subscribe("agent_tool:started", () => void (started += 1)));
  const host = await startHost({ agents: { Node, Top } });
  const top = host.getAgentByName(Top, "x");
  expect((await top.runTurn({ input: "go" })).status).toBe("completed");
  const refused = heard.filter(({ reason }) => reason === "count").length;
  expect(started - heard.length).toBe(7);
  expect(refused).toBeGreaterThan(0);
  expect((await top.runTurn({ input: "again" })).status).toBe("completed");
  expect(started - heard.length).toBe(14);
});

test("the default is a hundred for one turn, and it holds over a restart", async () => {
  const dir = tempDir();
  const made = () => {
    const model = scriptedModel(() => "Done.");
    class Worker extends Think {
      override workspaceTools = false as const;
      override getModel() {
        return model;
      }
    }
    class Boss extends Worker {
      countNow(at: number) {
        return Array.from({ length: 60 }, () => this.countAgentToolRun({ key: "turn", at }).ok).filter(Boolean).length;
      }
    }
    return { Worker, Boss };
  };
  const before = made();
  const first = await startHost({ agents: before, dir });
  const at = Date.now();
  expect(await first.getAgentByName(before.Boss, "x").countNow(at)).toBe(60);
  await first.stop();
  const after = made();
  const second = await startHost({ agents: after, dir });
  expect(await second.getAgentByName(after.Boss, "x").countNow(at)).toBe(40);
});

test("a detached run whose end starts the next one comes to an end too", async () => {
  const heard = refusals();
  const worker = scriptedModel(() => "Done.");
  class Worker extends Think {
    override workspaceTools = false as const;
    override getModel() {
      return worker;
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "work", input: {}, toolCallId: "c" }] } : "Done.",
  );
  class Loop extends Think {
    override workspaceTools = false as const;
    override maxAgentToolRuns = 4;
    override getModel() {
      return model;
    }
    override getTools() {
      return { work: agentTool(Worker, { description: "Works.", inputSchema, detached: true }) };
    }
  }
  const host = await startHost({ agents: { Worker, Loop } });
  const loop = host.getAgentByName(Loop, "x");
  await loop.runTurn({ input: "go" });
  await expect.poll(() => heard.length).toBe(1);
  expect(heard[0]).toMatchObject({ reason: "count" });
  expect(worker.calls).toHaveLength(4);
});

test("a bound that is no number is an error", async () => {
  const model = scriptedModel(() => "Done.");
  class Odd extends Think {
    override maxAgentToolDepth = Number.NaN;
    override getModel() {
      return model;
    }
    async begin() {
      return (await this.runAgentTool(Odd, { input: "go" })).status;
    }
  }
  const host = await startHost({ agents: { Odd } });
  await expect(host.getAgentByName(Odd, "x").begin()).rejects.toMatchObject({ code: "bad_config" });
  takeFailures();
});
