import { jsonSchema } from "ai";
import { agent as declare, agentTool, Think } from "perdure";
import type { LiveState } from "perdure/context";
import { createHost, memoryStorage } from "perdure/node";
import { type ScriptedCall, scriptedModel } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { user } from "../chat/client.ts";
import { openThink, refusal } from "../think/harness.ts";
import { fill, isSummary, long, openSmall, reader, shown } from "./compacting.ts";

test("a turn that is stopped while it is compacted ends at once, and nothing has changed", async () => {
  const kit = await openSmall({ summary: () => ({ hang: "before" }) });
  await fill(kit, 3);
  const client = await kit.connect();
  client.request("r1", [...(await kit.stored()), user("u4", long("question 4", 1_000))]);
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "started" }]);
  client.cancel("r1");
  await client.done("r1");
  await kit.stable();
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "failed", error: "It was stopped." }]);
  expect((await kit.agent()).listUsage({ purpose: "compaction" })).toMatchObject([{ status: "cut" }]);
  expect(kit.turns()).toHaveLength(3);
});

test("a silent summary does not let the turn stall", async () => {
  let release = () => {};
  const waiting = new Promise<void>((resolve) => (release = resolve));
  const kit = await openSmall({
    manual: true,
    settings: { chatStreamStallTimeoutMs: 1_000 } as never,
    summary: async () => {
      await waiting;
      return "## Goal\nBe short.";
    },
  });
  await fill(kit, 3);
  const turn = kit.ask(long("question 4", 1_000));
  await expect.poll(() => kit.compactions()).toMatchObject([{ status: "started" }]);
  await kit.clock.advance(10_000);
  release();
  expect(await turn).toMatchObject({ status: "completed" });
  expect(await kit.compactions()).toMatchObject([{ status: "done" }]);
});

test("a passing trouble of the provider is waited for, and each try is on the books", async () => {
  let failures = 1;
  const kit = await openSmall({
    summary: () => (failures-- > 0 ? { error: refusal(503, "busy", { "retry-after-ms": "5" }) } : "## Goal\nBe short."),
  });
  await fill(kit, 4);
  expect(await kit.compactions()).toMatchObject([{ status: "done" }]);
  const tries = (await kit.agent()).listUsage({ purpose: "compaction" }).toReversed();
  expect(tries[0]).toMatchObject({ status: "error", errorClass: "transient", attempt: 1 });
  expect(tries[1]).toMatchObject({ status: "ok", attempt: 2 });
});

test("a budget holds for summaries too", async () => {
  const kit = await openSmall();
  await fill(kit, 3);
  const agent = await kit.agent();
  const { tokens } = agent.usage();
  agent.budgets = { agent: { maxTokens: tokens + 100 } };
  await expect(agent.compact()).rejects.toMatchObject({ message: expect.stringContaining("budget") as string });
  expect(kit.summaries()).toEqual([]);
  expect(await kit.compactions()).toMatchObject([{ status: "failed" }]);
  expect(agent.usage()).toMatchObject({ tokens, reservedTokens: 0 });
});

test("what a child uses for summaries counts in the ledger of the agent above", async () => {
  const say = (call: ScriptedCall) => {
    if (isSummary(call)) return "## State of the work\nSome was read.";
    const results = call.prompt.filter(({ role }) => role === "tool").length;
    const known = JSON.stringify(call.prompt).includes("Some was read.");
    return results + (known ? 3 : 0) >= 5
      ? "Read."
      : { toolCalls: [{ toolName: "read", input: { tokens: 1_200, name: `file-${results}` } }] };
  };
  const small = scriptedModel(say);
  class Reader extends Think {
    override workspaceTools = false as const;
    override modelLimits = { "scripted/*": { window: 100_000, input: 4_000 } };
    override getModel() {
      return small;
    }
    override getTools() {
      return { read: reader };
    }
  }
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "below", input: { query: "read" } }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { below: agentTool(Reader, { description: "reads", inputSchema: jsonSchema({ type: "object" }) }) };
        }
      },
    { children: { Reader } },
  );
  expect(await kit.ask("go")).toMatchObject({ status: "completed" });
  const summaries = small.calls.filter(isSummary);
  expect(summaries.length).toBeGreaterThan(0);
  const paid = (await kit.agent()).listUsage({ purpose: "agent-tool" });
  expect(paid).toHaveLength(small.calls.length);
  expect(paid.every(({ status }) => status === "ok")).toBe(true);
});

test("each session is compacted for itself", async () => {
  const kit = await openSmall();
  await fill(kit, 3);
  const agent = await kit.agent();
  const other = agent.createSession("other");
  await expect(agent.compact({ session: other.id })).rejects.toMatchObject({ code: "bad_state" });
  const made = await agent.compact({ session: "main" });
  expect(agent.listCompactions({ session: other.id })).toEqual([]);
  agent.switchSession(other.id);
  await kit.ask("hello there");
  expect(shown(kit.turns().at(-1))).not.toContain("Be short.");
  agent.switchSession("main");
  await kit.ask("and here");
  expect(shown(kit.turns().at(-1))).toContain("Be short.");
  expect(agent.listCompactions()).toMatchObject([{ id: made.id, inEffect: true }]);
});

test("what the user says into a turn that is compacted is not lost", async () => {
  let said = false;
  const kit = await openSmall({
    settings: { maxSteps: 20, messageConcurrency: "steer" } as never,
    tools: { read: reader },
    answer: ({ prompt }) => {
      const text = JSON.stringify(prompt);
      const results = prompt.filter(({ role }) => role === "tool").length;
      const covered = text.includes("Some was read.") ? 3 : 0;
      if (results + covered >= 6) return "All read.";
      return { toolCalls: [{ toolName: "read", input: { tokens: 900, name: `file-${results}` } }] };
    },
    summary: () => "## State of the work\nSome was read.",
    extend: (Base) =>
      class extends Base {
        override async onStepFinish() {
          if (said) return;
          said = true;
          void this.submitMessages([user("s1", "And mind HERON-9.")]);
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      },
  });
  expect(await kit.ask("Read the files.")).toMatchObject({ status: "completed" });
  await kit.stable();
  expect((await kit.compactions()).some(({ status }) => status === "done")).toBe(true);
  for (const call of kit.turns().slice(-1)) expect(shown(call)).toContain("HERON-9");
});

test("an agent without a class has the same settings", async () => {
  const model = scriptedModel((call) => (isSummary(call) ? "Short." : "Yes."));
  const live: LiveState = { plan: "First the hull." };
  const Declared = declare({
    workspaceTools: false,
    model,
    instructions: "You help.",
    modelLimits: { "scripted/*": { window: 100_000, input: 3_000 } },
    contextOverflow: { proactive: { maxCompactions: 2 } },
    getLiveState: () => live,
  });
  const host = createHost({ agents: { Declared }, storage: memoryStorage() });
  onTestFinished(() => host.stop());
  const stub = host.getAgentByName(Declared, "one");
  for (let i = 0; i < 4; i++) {
    expect(await stub.runTurn({ input: long(`question ${i}`, 900) })).toMatchObject({ status: "completed" });
  }
  expect(shown(model.calls.findLast((call) => !isSummary(call)))).toContain("First the hull.");
});
