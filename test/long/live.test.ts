import type { Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { Think as ThinkClass } from "perdure";
import { expect, test } from "vitest";
import { serverTool } from "../think/harness.ts";
import { crew } from "./conversations/crew.ts";
import { expectFacts, expectPairs, expectPinned, readSent } from "./expect-kept.ts";
import { openLong } from "./long-agent.ts";

class Reader extends ThinkClass {
  override getModel() {
    return scriptedModel(() => ({ hang: "before" as const }));
  }
}

const carried = (agent: Think) => agent.listCompactions()[0]?.carried ?? "";

test("work of others, questions and files are told by code, word for word, round after round", async () => {
  const conversation = crew();
  const sent: unknown[] = [];
  let asked = false;
  const kit = await openLong(conversation, {
    children: { Reader },
    tools: {
      send_mail: serverTool<{ to: string }>(
        ({ to }) => {
          sent.push(to);
          return { id: `mail to ${to}` };
        },
        { needsApproval: true },
      ),
    },
    says: ({ userText, step }) => {
      if (!userText.startsWith("Send it") || step > 0) return undefined;
      asked = true;
      return {
        toolCalls: [
          { toolName: "send_mail", toolCallId: "mail-1", input: { to: "all@approved.example", path: "out/offer.txt" } },
        ],
      };
    },
  });
  const agent = await kit.agent();
  const run = await agent.runAgentTool(Reader, {
    input: "read the price list",
    runId: "run-77",
    detached: { notify: false } as never,
  });
  expect(run.status).toBe("running");
  const [first, second, third] = conversation.rounds;
  if (first === undefined || second === undefined || third === undefined) throw new Error("too few rounds");
  await kit.play(first);
  const line = carried(agent)
    .split("\n")
    .find((text) => text.includes("run-77"));
  expect(line).toMatch(/^- Reader, run run-77/);
  // The next summary is another one; the line is the same.
  await kit.play(second);
  expect(carried(agent).split("\n")).toContain(line);

  // A question waits while somebody makes the conversation shorter.
  await agent.addMessages(third.messages);
  await kit.ask("Send it now.");
  expect(asked).toBe(true);
  expect(agent.pendingApprovals()).toHaveLength(1);
  await agent.compact();
  expect(carried(agent)).toContain('- send_mail, call mail-1: {"to":"all@approved.example","path":"out/offer.txt"}');
  expect(carried(agent).split("\n")).toContain(line);
  expect(agent.pendingApprovals()).toHaveLength(1);
  expect(agent.answerApproval("mail-1", true)).toBe(true);
  await kit.stable();
  expect(sent).toEqual(["all@approved.example"]);
  const last = kit.answers().at(-1);
  if (last === undefined) throw new Error("The model was not asked.");
  expectPairs(last.prompt);
  expectPinned(last, agent.messages, conversation.pins);
  expectFacts(conversation, last, agent.messages);
  expect(readSent(last).text).toContain("mail to all@approved.example");

  // Another life, another round: the work goes on, and is told; the question is answered, and is not.
  await kit.nextLife();
  const again = await kit.agent();
  const [, , , fourth] = conversation.rounds;
  if (fourth !== undefined) await kit.play(fourth);
  expect(carried(again).split("\n")).toContain(line);
  expect(carried(again)).not.toContain("call mail-1");
  expect(carried(again)).toContain("- out/offer.txt (send_mail)");
});
