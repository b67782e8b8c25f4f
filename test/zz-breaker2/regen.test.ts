import type { ToolSet } from "ai";
import { type DurableExecutionOptions, park } from "perdure";
import { scriptedModel } from "perdure/testing";
import { test } from "vitest";
import { user } from "../chat/client.ts";
import { openThink, serverTool } from "../think/harness.ts";
const enc = (v: unknown) => new TextEncoder().encode(JSON.stringify(v));
test("regenerate and branch while parked", async () => {
  const model = scriptedModel(({ prompt }) => prompt.at(-1)?.role === "user" ? { toolCalls: [{ toolName: "travel", input: { to: "Rome" }, toolCallId: "c1" }] } : "Done.");
  let run = 0; const resumedWith: string[] = [];
  const kit = await openThink((Base) => class extends Base {
    override getModel() { return model; }
    override getTools(): ToolSet {
      return { travel: serverTool((_i, o: DurableExecutionOptions) => {
        if (o.resumed) { resumedWith.push(new TextDecoder().decode(o.resumed.state)); return "ok"; }
        run++;
        return park({ tool: "book", input: { run }, summary: `Book run ${run}?`, state: enc({ run }) });
      }) };
    }
  });
  const one = await kit.connect();
  one.request("r1", [user("u1", "Rome.")]);
  await one.done("r1");
  const before = await kit.stored();
  one.send({ type: "cf_agent_use_chat_request", id: "r2", init: { method: "POST", body: JSON.stringify({ messages: [user("u1", "Rome.")], trigger: "regenerate-message", messageId: before.at(-1)?.id }) } } as never);
  await one.done("r2");
  const agent = await kit.agent();
  const tree = () => kit.rows<any>("SELECT seq, id, body FROM perdure_message WHERE role='assistant'").then((r) => r.map((m) => [m.seq, m.id, /Book run \d/.exec(m.body)?.[0], /"state":"[^"]+"/.exec(m.body)?.[0]]));
  console.log("BEFORE ID", before.at(-1)?.id, JSON.stringify(await tree()), JSON.stringify(agent.pendingApprovals().map((p) => [p.messageId, p.summary])));
  const t = await tree();
  agent.switchBranch(t[0][1]);
  console.log("AFTER SWITCH", JSON.stringify(await tree()), JSON.stringify((await kit.stored()).at(-1)?.parts), JSON.stringify(await kit.rows("SELECT message_id, tool_call_id, status, parked FROM perdure_tool_call")));
  console.log("ANS", agent.answerApproval("c1", true));
  await new Promise((r) => setTimeout(r, 400));
  await kit.stable();
  console.log("END", resumedWith, JSON.stringify(await tree()), JSON.stringify((await kit.stored()).at(-1)?.parts));
});
