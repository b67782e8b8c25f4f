import { AIChatAgent, type ApprovalRequest, type Identity } from "perdure";
import type { BeforeHook } from "perdure/node";
import { expect, test } from "vitest";
import { connectTo, user } from "./client.ts";
import { newNotes, noteError, openAgent } from "./open-agent.ts";
import { createStage, type Stage } from "./stage.ts";

const BEN: Identity = { id: "u2", name: "Ben" };
const byToken: BeforeHook = (request) =>
  new URL(request.url).searchParams.get("token") === "ben" ? { identity: BEN } : undefined;

async function asking() {
  const notes = newNotes<Talk>();
  const stages: Stage[] = [];
  const requests: ApprovalRequest[] = [];
  class Talk extends AIChatAgent {
    constructor(...args: ConstructorParameters<typeof AIChatAgent>) {
      super(...args);
      notes.lives.push(this);
      notes.port = args[0];
    }
    override onChatMessage(...[, options]: Parameters<AIChatAgent["onChatMessage"]>) {
      const stage = createStage(options, this.messages);
      stages.push(stage);
      return stage.answer;
    }
    override async authorizeApproval(request: ApprovalRequest) {
      requests.push(request);
      return request.identity?.id === "u2";
    }
    override onError(error: unknown) {
      noteError(notes, error);
    }
  }
  const kit = await openAgent(Talk, notes, { host: { onBeforeConnect: byToken, onBeforeRequest: byToken } });
  const client = await kit.connect();
  client.request("r1", [user("m1", "Pay.")]);
  await expect.poll(() => stages.length).toBe(1);
  stages[0]?.ask("c1", "pay", { amount: 5 }).end("tool-calls");
  await client.done("r1");
  return Object.assign(kit, { client, stages, requests });
}

const REFUSED = "perdure_chat_approval_refused";

test("an AIChatAgent has the last word on who may approve, too, and keeps who did", async () => {
  const kit = await asking();
  kit.client.approve("c1", true);
  await kit.client.frame(({ type }) => type === REFUSED);
  const agent = await kit.agent();
  expect(agent.hasPendingInteraction()).toBe(true);
  const body = JSON.stringify({ approved: true });
  expect((await fetch(`${kit.url}/chat/tools/c1`, { method: "POST", body })).status).toBe(403);
  const ben = await connectTo(`${kit.url}?token=ben`);
  ben.approve("c1", true);
  await expect.poll(() => kit.stages.length).toBe(2);
  kit.stages[1]?.say("Done.").end();
  await kit.stable();
  const messageId = kit.requests[0]?.call.messageId;
  expect(kit.requests.map(({ call }) => call)).toEqual(
    Array.from({ length: 3 }, () => {
      return { toolCallId: "c1", toolName: "pay", input: { amount: 5 }, messageId, sessionId: "main" };
    }),
  );
  expect(agent.getToolApproval("c1")).toEqual({ by: "Ben", identity: BEN, at: expect.any(Number) });
  await kit.restart();
  expect((await kit.agent()).getToolApproval("c1")).toMatchObject({ by: "Ben" });
  (await kit.agent()).clearMessages();
  expect((await kit.agent()).getToolApproval("c1")).toBeUndefined();
});

test("a result for a call that waits for a yes is refused, whoever gives it; an error is a no, and needs the same leave", async () => {
  const kit = await asking();
  kit.client.result("c1", "paid");
  await kit.client.frame(({ type }) => type === REFUSED);
  kit.client.result("c1", undefined, { state: "output-error", errorText: "no" });
  await expect.poll(() => kit.client.ofType(REFUSED)).toHaveLength(2);
  expect(kit.requests).toMatchObject([{ approved: false }]);
  expect((await kit.agent()).hasPendingInteraction()).toBe(true);
  const body = JSON.stringify({ output: "paid" });
  expect((await fetch(`${kit.url}/chat/tools/c1`, { method: "POST", body })).status).toBe(403);
  expect((await kit.agent()).hasPendingInteraction()).toBe(true);
});
