import type { AIChatAgent, Think } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { openChat } from "../chat/harness.ts";
import type { TestAgent } from "../chat/open-agent.ts";
import { openThink, outputsSent, serverTool } from "../think/harness.ts";

const MOVES = ["a message", "another answer"] as const;

test.each(MOVES)("Think: %s in a fork ends no question of the session that it comes of", async (move) => {
  let ran = 0;
  const model = scriptedModel(({ step, userText }) =>
    step === 0 && userText === "pay" ? { toolCalls: [{ toolName: "pay", input: {}, toolCallId: "c1" }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { pay: serverTool(async () => ++ran, { needsApproval: true }) };
        }
      },
  );
  await kit.ask("pay");
  const agent = await kit.agent();
  const { id: session } = agent.session.fork();
  await play(kit, session, move);
  expect(agent.pendingApprovals().map(({ toolCallId }) => toolCallId)).toContain("c1");
  expect(agent.answerApproval("c1", true)).toBe(true);
  await kit.stable();
  expect(ran).toBe(1);
  expect(outputsSent(model, model.calls.length - 1)).toMatchObject({ c1: { value: 1 } });
});

test.each(MOVES)("AIChatAgent: %s in a fork ends no question of the session that it comes of", async (move) => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).ask("c1").end("tool-calls");
  await a.done("r1");
  const { id: session } = (await chat.agent()).session.fork();
  const played = play(chat, session, move);
  const stage = await chat.stage();
  // The model is given an end in the place of the question, if it is given the call at all.
  expect(JSON.stringify(stage.messages)).not.toContain("approval-requested");
  stage.say("Well.").end();
  await played;
  expect(JSON.stringify(await chat.stored())).toContain("approval-requested");
  a.approve("c1", true);
  (await chat.stage()).say("Paid.").end();
  await chat.stable();
  expect(JSON.stringify(await chat.stored())).toContain("Paid.");
});

/** What somebody does in a fork. */
async function play(kit: TestAgent<Think | AIChatAgent>, session: string, move: (typeof MOVES)[number]): Promise<void> {
  const messages = await kit.stored();
  const asked = [...messages, user("u2", "never mind")];
  const body = move === "a message" ? { messages: asked } : { messages, trigger: "regenerate-message" };
  const sent = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`${kit.url}/chat?_session=${session}`, sent);
  expect(response.ok).toBe(true);
  await response.text();
}
