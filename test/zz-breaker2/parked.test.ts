import type { ToolSet, UIMessage } from "ai";
import { type DurableExecutionOptions, park } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";

const enc = (v: unknown) => new TextEncoder().encode(JSON.stringify(v));
const dec = (b: Uint8Array) => JSON.parse(new TextDecoder().decode(b)) as { booked: string[] };

async function travelling(o: { needs?: string[]; ids?: string[]; manual?: boolean; timeout?: number; input?: unknown } = {}) {
  const needs = o.needs ?? ["flight", "hotel"];
  const model = scriptedModel(({ step, prompt }) => {
    const last = prompt.at(-1);
    const t = JSON.stringify(last);
    if (last?.role === "user" && !t.includes("plain"))
      return { toolCalls: (o.ids ?? ["c1"]).map((id) => ({ toolName: "travel", input: { to: "Rome", id }, toolCallId: id })) };
    return step === 0 && last?.role === "user" ? "Plain." : "Done.";
  });
  const booked: string[] = [];
  const kit = await openThink((Base) => {
    class Talk extends Base {
      override approvalTimeoutMs = o.timeout ?? 0;
      override getModel() { return model; }
      override getTools(): ToolSet {
        return { travel: serverTool<{ id: string }>((input, options: DurableExecutionOptions) => {
          const { resumed } = options;
          const state = resumed === undefined ? { booked: [] } : dec(resumed.state);
          const next = needs[state.booked.length];
          if (resumed !== undefined && next !== undefined) { booked.push(`${input.id}:${next}`); state.booked.push(next); }
          const then = needs[state.booked.length];
          if (then === undefined) return state.booked.join(" and ");
          return park({ tool: "book", input: o.input ?? { what: then }, summary: `Book the ${then}?`, state: enc(state) });
        }) };
      }
    }
    return Talk;
  }, { manual: o.manual ?? false });
  return Object.assign(kit, { model, booked, calls: () => kit.rows("SELECT message_id, tool_call_id, status, approver, reason, state IS NULL AS gone, attempts FROM perdure_tool_call ORDER BY seq") });
}
const until = async (f: () => unknown) => expect.poll(f).toBeTruthy();

test("same call id in two sessions: the answer goes to its own", async () => {
  const kit = await travelling({ needs: ["flight"] });
  await kit.ask("Rome.");
  const agent = await kit.agent();
  const main = agent.getCurrentSessionId();
  const { id } = agent.createSession("Side");
  agent.switchSession(id);
  await kit.ask("Rome2.");
  expect(agent.pendingApprovals()).toHaveLength(2);
  expect(agent.answerApproval("c1", true, { session: main, approver: "anna" })).toBe(true);
  await new Promise((r) => setTimeout(r, 300));
  await kit.stable();
  console.log(JSON.stringify(await kit.calls()), kit.booked, JSON.stringify(agent.pendingApprovals()));
  expect(kit.booked).toEqual(["c1:flight"]);
});

test("stop while parked second time; approvals audit", async () => {
  const kit = await travelling();
  await kit.ask("Rome.");
  const agent = await kit.agent();
  agent.answerApproval("c1", true, { approver: "anna" });
  await until(() => kit.booked.length === 1);
  await kit.stable();
  expect(agent.pendingApprovals()).toHaveLength(1);
  // the next message of the user
  await kit.ask("plain instead");
  console.log("AUDIT", JSON.stringify(agent.listApprovals?.() ?? (agent as any).approvals?.()), JSON.stringify(agent.pendingApprovals()), JSON.stringify(await kit.calls()), JSON.stringify((await kit.stored()).map((m: UIMessage) => m.parts)));
});

test("expired while parked", async () => {
  const kit = await travelling({ manual: true, timeout: 60_000 });
  await kit.ask("Rome.");
  const agent = await kit.agent();
  agent.answerApproval("c1", true, { approver: "anna" });
  for (let i = 0; i < 10 && kit.booked.length === 0; i++) { await kit.clock.advance(100); await new Promise((r) => setTimeout(r, 30)); }
  await new Promise((r) => setTimeout(r, 100));
  console.log("PENDING", JSON.stringify(agent.pendingApprovals()));
  await kit.clock.advance(61_000);
  for (let i = 0; i < 10; i++) { await kit.clock.advance(100); await new Promise((r) => setTimeout(r, 30)); }
  console.log("EXPIRED", JSON.stringify(await kit.calls()), JSON.stringify((await kit.stored()).at(-1)?.parts), kit.booked);
  expect(agent.answerApproval("c1", true)).toBe(false);
  console.log(JSON.stringify(outputsSent(kit.model, 1)));
});

test("clear while parked", async () => {
  const kit = await travelling();
  await kit.ask("Rome.");
  const agent = await kit.agent();
  const c = await kit.connect();
  await (agent as any).clearMessages?.();
  console.log("CLEAR", JSON.stringify(await kit.calls()), JSON.stringify(agent.pendingApprovals()));
  expect(agent.answerApproval("c1", true)).toBe(false);
  void c;
});

test("delete session and erase while parked", async () => {
  const kit = await travelling();
  const agent = await kit.agent();
  const { id } = agent.createSession("Side");
  const main = agent.getCurrentSessionId();
  agent.switchSession(id);
  await kit.ask("Rome.");
  agent.switchSession(main === id ? "main" : main);
  expect(agent.pendingApprovals()).toHaveLength(1);
  agent.deleteSession(id);
  console.log("DELETED", JSON.stringify(await kit.calls()));
  expect(agent.pendingApprovals()).toHaveLength(0);
  const s2 = agent.createSession("Side2").id;
  agent.switchSession(s2);
  await kit.ask("Rome.");
  expect(agent.pendingApprovals()).toHaveLength(1);
  const r = await agent.erase({ session: s2 });
  console.log("ERASED", JSON.stringify(await kit.calls()), r.toolCalls);
  expect(agent.pendingApprovals()).toHaveLength(0);
});

test("fork while parked; answer in one; then in the other", async () => {
  const kit = await travelling({ needs: ["flight"] });
  await kit.ask("Rome.");
  const agent = await kit.agent();
  const main = agent.getCurrentSessionId();
  const fork = agent.forkSession(main).id;
  console.log("FORK", JSON.stringify(await kit.calls()), JSON.stringify(agent.pendingApprovals()));
  console.log("ans main", agent.answerApproval("c1", true, { session: main }));
  await new Promise((r) => setTimeout(r, 300));
  console.log("ans fork", agent.answerApproval("c1", true, { session: fork }));
  await new Promise((r) => setTimeout(r, 300));
  await kit.stable();
  console.log("FORK END", kit.booked, JSON.stringify(await kit.calls()), JSON.stringify((await kit.stored()).at(-1)?.parts));
  agent.switchSession(fork);
  console.log("FORK SEES", JSON.stringify((await kit.stored()).at(-1)?.parts));
});

test("parallel parked calls, one yes, one no; restart in between", async () => {
  const kit = await travelling({ ids: ["a", "b", "c"] });
  await kit.ask("Rome.");
  let agent = await kit.agent();
  expect(agent.pendingApprovals()).toHaveLength(3);
  agent.answerApproval("a", true);
  agent.answerApproval("b", false, { reason: "no" });
  await kit.restart();
  agent = await kit.agent();
  agent.answerApproval("c", true);
  await until(() => kit.booked.length === 2);
  await kit.stable();
  console.log("PAR", JSON.stringify(await kit.calls()), JSON.stringify(agent.pendingApprovals()));
  await kit.nextLife();
  agent = await kit.agent();
  agent.answerApproval("a", true);
  agent.answerApproval("c", true);
  await until(() => kit.booked.length === 4);
  await kit.stable();
  console.log("PAR END", JSON.stringify(await kit.calls()), textIn(await kit.last()));
});

test("regenerate and branch while parked", async () => {
  const kit = await travelling({ needs: ["flight"] });
  const one = await kit.connect();
  one.request("r1", [user("u1", "Rome.")]);
  await one.done("r1");
  const before = await kit.stored();
  // regenerate
  one.send({ type: "cf_agent_use_chat_request", id: "r2", init: { method: "POST", body: JSON.stringify({ messages: [user("u1", "Rome.")], trigger: "regenerate-message", messageId: before.at(-1)?.id }) } } as never);
  await one.done("r2");
  const agent = await kit.agent();
  console.log("REGEN", JSON.stringify(await kit.calls()), JSON.stringify(agent.pendingApprovals()));
  const ids = await kit.rows<{ id: string; seq: number; parent: number }>("SELECT seq, id, parent, role FROM perdure_message");
  console.log("TREE", JSON.stringify(ids));
  const other = ids.filter((r) => r.id !== before.at(-1)?.id && r.parent === 1).at(0)!;
  try { agent.switchBranch(other.id); } catch (e) { console.log("switch", String(e)); }
  console.log("SHOWN", JSON.stringify((await kit.stored()).at(-1)?.parts));
  console.log("ANS", agent.answerApproval("c1", true));
  await new Promise((r) => setTimeout(r, 400));
  await kit.stable();
  console.log("REGEN END", kit.booked, JSON.stringify(await kit.calls()), JSON.stringify((await kit.stored()).at(-1)?.parts));
});

test("large input of the question", async () => {
  for (const n of [1_000_000, 3_000_000, 20_000_000]) {
    const kit = await travelling({ needs: ["flight"], input: { what: "x".repeat(n) } });
    const r = await kit.ask("Rome.").catch((e) => e);
    console.log("LARGE", n, JSON.stringify(r).slice(0, 300), JSON.stringify((await kit.stored()).at(-1)?.parts).slice(0, 600), JSON.stringify(await kit.calls()), kit.takeErrors());
  }
});
