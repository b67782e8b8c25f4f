// Some providers count calls from zero in every answer: the same id in several conversations of an agent.
import type { DurableExecutionOptions } from "perdure";
import { scriptedModel } from "perdure/testing";
import { park } from "perdure/tools";
import { expect, test } from "vitest";
import { openThink, serverTool } from "./harness.ts";

test("two conversations whose calls have the same id: an answer is for its own", async () => {
  const model = scriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === "user"
      ? { toolCalls: [{ toolName: "travel", input: { to: "Rome" }, toolCallId: "call_0" }] }
      : "Done.",
  );
  const resumed: unknown[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          const session = this.getCurrentSessionId();
          const travel = serverTool((_input, options: DurableExecutionOptions) => {
            if (options.resumed === undefined)
              return park({ tool: "book", input: {}, state: new TextEncoder().encode(session) });
            return resumed.push(new TextDecoder().decode(options.resumed.state));
          });
          return { travel };
        }
      },
  );
  const agent = await kit.agent();
  await kit.ask("Rome.");
  const first = agent.getCurrentSessionId();
  agent.switchSession(agent.createSession("Other").id);
  await kit.ask("Rome.");
  const [one, two] = agent.pendingApprovals();
  expect(one?.toolCallId).toBe("call_0");
  expect(two?.toolCallId).toMatch(/^call_0-t/);
  expect(agent.answerApproval("call_0", true, { session: agent.getCurrentSessionId() })).toBe(false);
  expect(agent.answerApproval("call_0", true, { session: first })).toBe(true);
  await expect.poll(() => resumed).toEqual([first]);
  await kit.stable();
  expect(agent.pendingApprovals()).toHaveLength(1);
  expect(await kit.rows("SELECT status FROM perdure_tool_call ORDER BY seq")).toEqual([
    { status: "settled" },
    { status: "asked" },
  ]);
});

test("calls of one id in several conversations: each question has its own time", async () => {
  const model = scriptedModel(({ prompt }) =>
    prompt.at(-1)?.role === "user" ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "call_0" }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override approvalTimeoutMs = 60_000;
        override getModel() {
          return model;
        }
        override getTools() {
          return { pay: serverTool(() => "paid", { needsApproval: true }) };
        }
      },
    { manual: true },
  );
  const agent = await kit.agent();
  const sessions = ["main", agent.createSession("b").id, agent.createSession("c").id];
  for (const session of sessions) {
    agent.switchSession(session);
    await kit.ask("Pay.");
    await kit.clock.advance(15_000);
  }
  const statuses = async () =>
    (await kit.rows<{ status: string }>("SELECT status FROM perdure_tool_call ORDER BY seq")).map((row) => row.status);
  expect(await statuses()).toEqual(["asked", "asked", "asked"]);
  await kit.clock.advance(15_000);
  await expect.poll(statuses).toEqual(["expired", "asked", "asked"]);
  const asked = agent.pendingApprovals()[0]?.toolCallId ?? "";
  expect(agent.answerApproval(asked, false, { session: sessions[1] ?? "" })).toBe(true);
  await kit.clock.advance(30_000);
  await expect.poll(statuses).toEqual(["expired", "denied", "expired"]);
  await kit.clock.advance(1_000);
  await kit.stable();
});
