import { type DurableExecutionOptions, park } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { textIn } from "../chat/client.ts";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";
const wait = (ms: number) => new Promise((r) => setTimeout(r, ms));
for (const how of ["yes", "no", "yes-crash", "twice", "stop"]) test(`answered while the same step still runs: ${how}`, async () => {
  const model = scriptedModel(({ prompt }) => prompt.at(-1)?.role === "user" ? { toolCalls: [{ toolName: "parks", input: {}, toolCallId: "c1" }, { toolName: "slow", input: {}, toolCallId: "c2" }] } : "Done.");
  const g = Promise.withResolvers<void>(); const runs: string[] = [];
  const kit = await openThink((Base) => class extends Base {
    override getModel() { return model; }
    override getTools() { return {
      parks: serverTool((_i, o: DurableExecutionOptions) => { runs.push(o.resumed ? `resumed${o.resumed.state[0]}` : "first"); const n = o.resumed?.state[0] ?? 0; return n < (how === "twice" ? 2 : 1) ? park({ tool: "x", input: { n }, state: new Uint8Array([n + 1]) }) : "parked done"; }),
      slow: serverTool(async () => { runs.push("slow"); await g.promise; return "slow done"; }),
    }; }
  });
  const asked = kit.ask("go").catch((e) => String(e));
  await expect.poll(async () => (await kit.agent()).pendingApprovals().length).toBe(1);
  const agent = await kit.agent();
  const c = await kit.connect();
  expect(agent.answerApproval("c1", how !== "no")).toBe(true);
  await wait(150);
  console.log(how, "while", runs.join());
  if (how === "stop") { agent.abortAllRequests?.(); const o = await kit.rows<any>("SELECT id FROM perdure_turn WHERE status='running'"); for (const { id } of o) c.send({ type: "cf_agent_chat_request_cancel", id } as never); await wait(200); }
  if (how === "yes-crash") { await kit.nextLife(); }
  g.resolve();
  if (how !== "yes-crash") await asked;
  await wait(500); await kit.stable();
  if (how === "twice") { const a2 = await kit.agent(); expect(a2.pendingApprovals()).toHaveLength(1); a2.answerApproval("c1", true); await wait(500); await kit.stable(); }
  console.log(how, runs.join(), model.calls.length, textIn(await kit.last()), JSON.stringify(outputsSent(model, model.calls.length - 1)), JSON.stringify(await kit.rows("SELECT tool_call_id, status, attempts, state IS NULL AS gone FROM perdure_tool_call")), JSON.stringify(await kit.rows("SELECT status, trigger FROM perdure_turn")));
});
