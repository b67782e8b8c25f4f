import { test } from "vitest";
import { openTalk, settings, startAgents } from "./talk.ts";
import { tour } from "./tour.ts";
import { lookAround } from "../../examples/start/toolbox.ts";
test("try", async () => {
  settings();
  await lookAround();
  const host = await startAgents();
  const talk = await openTalk(host);
  const { answer: a, questions } = await tour(host, talk, "Show me every tool");
  console.log(questions, a.error);
  for (const p of a.message!.parts as any[]) {
    if (p.type === "text") console.log("SAYS", p.text);
    else if (p.toolCallId) console.log(p.type, p.state, JSON.stringify(p.output ?? p.errorText)?.slice(0, 1500));
  }
}, 120_000);
