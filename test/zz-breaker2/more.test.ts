import { jsonSchema, type ToolSet } from "ai";
import { action, type DurableExecutionOptions, park, Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn, user } from "../chat/client.ts";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";
const enc = (v: unknown) => new TextEncoder().encode(JSON.stringify(v));
const wait = (ms: number) => new Promise((r) => setTimeout(r, ms));

async function kitOf(o: { slow?: Promise<unknown>; more?: any } = {}) {
  const runs: string[] = [];
  const model = scriptedModel(async ({ prompt, userText }) => {
    const last = prompt.at(-1);
    if (last?.role === "user" && userText.includes("slow")) { await o.slow; return "Slow done."; }
    if (last?.role === "user" && userText.includes("travel")) return { toolCalls: [{ toolName: "travel", input: { u: userText }, toolCallId: "c1" }] };
    return `Done ${userText}.`;
  });
  const gate = Promise.withResolvers<void>();
  const kit = await openThink((Base) => class extends Base {
    override getModel() { return model; }
    override getTools(): ToolSet {
      return { travel: serverTool<{ u: string }>(async (i, opt: DurableExecutionOptions) => {
        if (opt.resumed === undefined) return park({ tool: "book", input: {}, summary: "Book?", state: enc("x".repeat(1000)) });
        runs.push(i.u);
        if (i.u.includes("hang")) await Promise.race([gate.promise, new Promise((r) => opt.abortSignal?.addEventListener("abort", r))]);
        return "booked";
      }) };
    }
  });
  return Object.assign(kit, { model, runs, gate, calls: () => kit.rows<any>("SELECT tool_call_id, status, state IS NULL AS gone, attempts FROM perdure_tool_call ORDER BY seq") });
}

test("answer in another session while a turn runs", async () => {
  const g = Promise.withResolvers<void>();
  const kit = await kitOf({ slow: g.promise });
  const agent = await kit.agent();
  await kit.ask("travel");
  const first = agent.getCurrentSessionId();
  const s2 = agent.createSession("b").id; agent.switchSession(s2);
  const running = kit.ask("slow");
  await wait(100);
  console.log("ANSWERED", agent.approveExecution("c1"));
  await wait(200);
  console.log("WHILE", kit.runs, JSON.stringify(await kit.calls()));
  g.resolve(); await running; await wait(300); await kit.stable();
  expect(kit.runs).toEqual(["travel"]);
  agent.switchSession(first);
  expect(textIn(await kit.last())).toContain("Done");
  expect(await kit.calls()).toMatchObject([{ status: "settled", gone: 1 }]);
});

test("stop while the resumed call runs", async () => {
  const kit = await kitOf();
  const c = await kit.connect();
  c.request("r1", [user("u1", "travel hang")]);
  await c.done("r1");
  const agent = await kit.agent();
  agent.approveExecution("c1");
  await expect.poll(() => kit.runs.length).toBe(1);
  (agent as any).cancelAll?.() ?? (agent as any).stopTurn?.() ?? (agent as any).abortAllRequests?.();
  const open = await kit.rows<any>("SELECT id FROM perdure_turn WHERE status = 'running'");
  for (const { id } of open) c.send({ type: "cf_agent_chat_request_cancel", id } as never);
  await wait(300); await kit.stable();
  console.log("STOPPED", JSON.stringify(await kit.calls()), JSON.stringify((await kit.last())?.parts), agent.pendingApprovals());
  expect(await kit.calls()).toMatchObject([{ status: "settled", gone: 1 }]);
});

test("next life while the resumed call runs", async () => {
  const kit = await kitOf();
  void kit.ask("travel hang").catch(() => {});
  await expect.poll(async () => (await kit.agent()).pendingApprovals().length).toBe(1);
  (await kit.agent()).approveExecution("c1");
  await expect.poll(() => kit.runs.length).toBe(1);
  await kit.nextLife();
  await wait(500); await kit.stable();
  console.log("CUT", JSON.stringify(await kit.calls()), JSON.stringify((await kit.last())?.parts), kit.runs);
  expect(kit.runs).toEqual(["travel hang"]);
  expect(await kit.calls()).toMatchObject([{ status: "settled", gone: 1 }]);
});

test("edit the question while parked", async () => {
  const kit = await kitOf();
  const c = await kit.connect();
  c.request("r1", [user("u1", "travel")]);
  await c.done("r1");
  c.request("r2", [user("u1", "other")]);
  await c.done("r2");
  const agent = await kit.agent();
  console.log("EDITED", JSON.stringify(await kit.calls()), JSON.stringify(agent.pendingApprovals()), JSON.stringify((await kit.stored()).map((m) => textIn(m))));
  expect(agent.approveExecution("c1")).toBe(false);
  const tree = await kit.rows<any>("SELECT seq, id, parent, role, session FROM perdure_message");
  console.log(JSON.stringify(tree));
  const back = tree.find((t) => t.role === "user" && t.id !== "u1");
  if (back) { agent.switchBranch(back.id); console.log("BACK", JSON.stringify((await kit.stored()).map((m) => m.parts))); console.log(agent.approveExecution("c1")); await wait(300); await kit.stable(); console.log(kit.runs, JSON.stringify(await kit.calls())); }
});

test("compaction with a parked call", async () => {
  const kit = await kitOf();
  for (let i = 0; i < 6; i++) await kit.ask(`talk ${i} ${"word ".repeat(200)}`);
  await kit.ask("travel");
  const agent = await kit.agent();
  const r = await (agent as any).compact?.({ keepTokens: 10 }).catch?.((e: unknown) => String(e));
  console.log("COMPACT", JSON.stringify(r)?.slice(0, 300), JSON.stringify(agent.pendingApprovals().length));
  expect(agent.approveExecution("c1")).toBe(true);
  await wait(300); await kit.stable();
  expect(kit.runs).toEqual(["travel"]);
  console.log(JSON.stringify((await kit.last())?.parts).slice(0, 300));
});

test("durablePause and approvalTimeoutMs; parallel actions; attachments cap", async () => {
  const did: string[] = [];
  const model = scriptedModel(({ prompt }) => prompt.at(-1)?.role === "user" ? { toolCalls: [{ toolName: "pay", input: { k: "1" }, toolCallId: "p1" }, { toolName: "quick", input: { k: "1" }, toolCallId: "q1" }, ...Array.from({ length: 40 }, (_, i) => ({ toolName: "card", input: { k: String(i) }, toolCallId: `k${i}` }))] } : "Done.");
  const inputSchema = jsonSchema<{ k: string }>({ type: "object" });
  const kit = await openThink((Base) => class extends (Base as unknown as typeof Think) {
    override approvalTimeoutMs = 60_000;
    override getModel() { return model; }
    override getActions() {
      return {
        pay: action({ description: "Pays.", inputSchema, durablePause: true, execute: ({ k }) => { did.push(`pay ${k}`); return "paid"; } }),
        quick: action({ description: "Quick.", inputSchema, approval: true, execute: ({ k }) => { did.push(`quick ${k}`); return "ok"; } }),
        card: action({ description: "Card.", inputSchema, execute: ({ k }, c) => c.attachReply({ type: "card", k }) }),
      };
    }
  }, { manual: true });
  const asked = kit.ask("go");
  for (let i = 0; i < 20; i++) { await kit.clock.advance(50); await wait(10); }
  await asked;
  const agent = await kit.agent();
  console.log("PENDING", JSON.stringify(agent.pendingApprovals().map((p) => [p.toolCallId, (p.expiresAt ?? 0) - kit.clock.now()])));
  const last = await kit.last();
  console.log("CARDS", last?.parts.filter((p) => p.type === "data-reply-attachment").length, JSON.stringify(last?.parts.filter((p: any) => p.type === "tool-card").map((p: any) => p.output)));
  await kit.clock.advance(61_000);
  for (let i = 0; i < 10; i++) { await kit.clock.advance(100); await wait(20); }
  console.log("AFTER 61s", JSON.stringify(agent.pendingApprovals().map((p) => p.toolCallId)), JSON.stringify(await kit.rows("SELECT tool_call_id, status FROM perdure_tool_call WHERE tool_call_id IN ('p1','q1')")));
  await kit.clock.advance(29 * 24 * 3600_000);
  for (let i = 0; i < 5; i++) { await kit.clock.advance(100); await wait(20); }
  expect(agent.approveExecution("p1")).toBe(true);
  for (let i = 0; i < 15; i++) { await kit.clock.advance(100); await wait(20); }
  expect(did).toEqual(["pay 1"]);
  console.log(JSON.stringify(outputsSent(kit.model ?? model, model.calls.length - 1)).slice(0, 300));
});
