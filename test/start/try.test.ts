import { expect, test } from "vitest";
import { openTalk, settings, startAgents, eventually } from "./talk.ts";
import { lookAround } from "../../examples/start/toolbox.ts";
test("try", async () => {
  settings();
  await lookAround();
  const host = await startAgents();
  const talk = await openTalk(host);
  let a = await talk.ask("Show me every tool");
  for (let i = 0; i < 12; i++) {
    const part = a.message?.parts.findLast((p) => "toolCallId" in p) as any;
    console.log("ROUND", i, a.error, part?.type, part?.state, JSON.stringify(part?.approval));
    if (part?.state === "approval-requested") { await new Promise((r) => setTimeout(r, 500)); a = await talk.answer((id) => talk.approve(id, true)); }
    else if (part?.state === "input-available") { a = await talk.answer((id) => talk.result(id, { timeZone: "Asia/Tokyo", localTime: "9:00" })); }
    else break;
  }
  for (const p of a.message!.parts as any[]) {
    if (p.type === "text") console.log("SAYS", p.text);
    else if (p.toolCallId) console.log(p.type, p.state, JSON.stringify(p.output ?? p.errorText)?.slice(0, 700));
  }
}, 120_000);
