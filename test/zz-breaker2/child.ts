// one life. argv: dir, seed
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { jsonSchema, tool } from "ai";
import { action, type AgentHost, createExecuteTool, Think } from "perdure";
import { createHost, subscribe } from "perdure/node";
import { scriptedModel } from "perdure/testing";
const [dir = "", seed = "1", mode = "yes"] = process.argv.slice(2);
const say = (x: unknown) => process.stdout.write(`${JSON.stringify(x)}\n`);
const did = (line: string) => appendFileSync(join(dir, "did"), `${line}\n`);
subscribe("agent:failed", ({ payload }) => say({ failed: payload }));
const any = jsonSchema<any>({ type: "object" });
const t = (name: string, needs: boolean) => tool({ description: name, inputSchema: any, needsApproval: needs, execute: async (_i: any, o: any) => { did(`${name} ${o.idempotencyKey}`); await delay(3); return `${name} result`; } } as any);
const inner = { look: t("look", false), pay: t("pay", true), send: t("send", true) };
const card = (name: string, key: boolean) => action({ description: name, inputSchema: any, ...(key && { idempotencyKey: (i: any) => i.k }), execute: async (i: any, c: any) => { did(`${name} ${i.k}`); c.attachReply({ type: "card", title: `${name} ${i.k}` }); await delay(3); return `${name} ${i.k} done`; } } as any);
const model = scriptedModel(({ step, userText }) => {
  if (userText === "code") {
    if (step === 0) return { toolCalls: [{ toolName: "execute", toolCallId: "x1", input: { code: `const a = await tools.look({}); let b, c; b = await tools.pay({n:1}); const m = await tools.look({}); try { c = await tools.send({n:2}); } catch (e) { c = "no: " + e.message; } await tools.look({}); return [a,b,m,c];` } }] };
    if (step === 1) return { toolCalls: [{ toolName: "write", toolCallId: "w1", input: { path: "/out.txt", content: "x".repeat(20000) } }, ...[1, 2, 3, 4].map((k) => ({ toolName: "act", toolCallId: `a${k}`, input: { k: `k${k}` } })), { toolName: "free", toolCallId: "f1", input: { k: "free" } }] };
  }
  return "The end.";
});
let me: A | undefined;
class A extends Think {
  port: AgentHost;
  constructor(h: AgentHost) { super(h); this.port = h; me = this; }
  override getModel() { return model; }
  override getTools() { return { execute: createExecuteTool({ tools: inner as any }) } as any; }
  override getActions() { return { act: card("act", true), free: card("free", false) } as any; }
  override onError(e: unknown) { say({ error: String(e) }); }
  async go() {
    if (this.messages.length === 0) void this.submitMessages([{ id: "u1", role: "user", parts: [{ type: "text", text: "code" }] }], { idempotencyKey: "s1" } as any).catch((e) => say({ submit: String(e) }));
    return this.messages.length;
  }
  ping() { return 1; }
  look() {
    const rows = (q: string) => this.port.sql<any>(q);
    return { messages: this.messages, pending: this.pendingApprovals(), calls: rows("SELECT tool_call_id, status, attempts, state IS NULL AS gone, approver FROM perdure_tool_call"), actions: this.listActions(), approvals: rows("SELECT * FROM perdure_approval"), turns: rows("SELECT status, trigger FROM perdure_turn WHERE status NOT IN ('completed','failed','aborted')") };
  }
}
const host = createHost({ agents: { A }, dir } as any);
const stub = host.getAgentByName(A, "one");
await stub.go();
say({ up: 1 });
let n = 0;
for (;;) {
  await delay(20);
  const l = await stub.look();
  if (l.pending.length > 0) {
    say({ pending: l.pending[0]!.tool });
    await delay((Number(seed) * 37 + n * 13) % 60);
    const no = mode === "no2" && l.pending[0]!.tool === "send";
    const ok = no ? (me as any).rejectExecution("x1", "never") : (me as any).approveExecution("x1", { approver: `p${n}` });
    say({ answered: l.pending[0]!.tool, ok });
    n++;
  }
  const last = l.messages.at(-1);
  if (last?.role === "assistant" && JSON.stringify(last.parts).includes("The end.") && l.turns.length === 0) {
    say({ done: l, file: (await (me as any).workspace.readFile("/out.txt"))?.length });
    await host.stop();
    process.exit(0);
  }
}
