// An answer is bound to its session, message, call and question.
import type { DurableExecutionOptions } from "perdure";
import { subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { park } from "perdure/tools";
import { expect, onTestFinished, test } from "vitest";
import { connectTo, user } from "../chat/client.ts";
import { openChat } from "../chat/harness.ts";
import { openThink, serverTool } from "../think/harness.ts";

const REFUSED = "perdure_chat_approval_refused";
const callPay: Script = ({ prompt }) =>
  prompt.at(-1)?.role === "user"
    ? { toolCalls: [{ toolName: "pay", input: { amount: 5 }, toolCallId: "call_0" }] }
    : "Done.";

/** Two sessions, each with a question about a call that its provider calls `call_0`. */
async function twoQuestions() {
  const model = scriptedModel(callPay);
  const paid: string[] = [];
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            pay: serverTool((_input, { toolCallId }) => void paid.push(toolCallId), { needsApproval: true }),
          };
        }
      },
  );
  const agent = await kit.agent();
  const other = agent.createSession("Other").id;
  await agent.runTurn({ input: "Pay.", session: "main" } as never);
  await agent.runTurn({ input: "Pay.", session: other } as never);
  await kit.stable();
  const [first, second] = agent.pendingApprovals();
  if (first === undefined || second === undefined) throw new Error("There are not two questions.");
  return Object.assign(kit, { think: agent, other, first, second, paid, model });
}

test("calls that a provider gives the same id in two sessions have ids of their own, in rows, parts and requests", async () => {
  const kit = await twoQuestions();
  const { first, second, think: agent, model } = kit;
  expect(first.toolCallId).toBe("call_0");
  expect(second.toolCallId).not.toBe("call_0");
  expect(second.toolCallId).toMatch(/^call_0-[\w-]{1,30}$/);
  expect(JSON.stringify(await kit.stored())).toContain(`"${first.toolCallId}"`);
  agent.answerApproval(second.toolCallId, true);
  await kit.stable();
  expect(kit.paid).toEqual([second.toolCallId]);
  expect(JSON.stringify(model.calls.at(-1)?.prompt)).toContain(`"${second.toolCallId}"`);
  expect(agent.pendingApprovals().map(({ toolCallId }) => toolCallId)).toEqual(["call_0"]);
});

test("a yes from one session runs no call of another, over sockets and over HTTP", async () => {
  const kit = await twoQuestions();
  const { first, second, other } = kit;
  const outsider = await connectTo(`${kit.url}?_session=${other}`);
  outsider.approve(first.toolCallId, true);
  await outsider.flushed();
  const main = await kit.connect();
  main.approve(second.toolCallId, true);
  await main.flushed();
  const post = (session: string, call: string) =>
    fetch(`${kit.url}/chat/tools/${call}${session}`, { method: "POST", body: JSON.stringify({ approved: true }) });
  expect(await (await post(`?_session=${other}`, first.toolCallId)).json()).toEqual({ changed: false });
  expect(await (await post("", second.toolCallId)).json()).toEqual({ changed: false });
  await kit.stable();
  expect(kit.paid).toEqual([]);
  expect(kit.think.pendingApprovals()).toHaveLength(2);
  expect(await (await post(`?_session=${other}`, second.toolCallId)).json()).toEqual({ changed: true });
  await expect.poll(() => kit.paid).toEqual([second.toolCallId]);
});

test("an answer that names another question, or another input, than the one that is open counts for nothing", async () => {
  const events: unknown[] = [];
  onTestFinished(subscribe("chat:answer:refused", ({ payload }) => void events.push(payload)));
  const kit = await twoQuestions();
  const { first } = kit;
  const client = await kit.connect();
  client.approve(first.toolCallId, true, { approvalId: "another" });
  await client.frame(({ type }) => type === REFUSED);
  client.approve(first.toolCallId, true, { digest: "0".repeat(64) });
  await expect.poll(() => client.ofType(REFUSED)).toHaveLength(2);
  const post = (body: unknown) =>
    fetch(`${kit.url}/chat/tools/${first.toolCallId}`, { method: "POST", body: JSON.stringify(body) });
  expect((await post({ approved: true, approvalId: "another" })).status).toBe(409);
  expect((await post({ approved: true, digest: "0".repeat(64) })).status).toBe(409);
  expect((await post({ approved: true, digest: 7 })).status).toBe(400);
  expect(kit.think.pendingApprovals()).toHaveLength(2);
  expect(events).toHaveLength(4);
  expect((await post({ approved: true, digest: first.digest })).status).toBe(200);
  await expect.poll(() => kit.paid).toEqual([first.toolCallId]);
});

test("a question of an AIChatAgent is bound to its input too", async () => {
  const chat = await openChat();
  const client = await chat.connect();
  client.request("r1", [user("u1")]);
  (await chat.stage()).ask("c1", "pay", { amount: 5 }).end("tool-calls");
  await client.done("r1");
  client.approve("c1", true, { digest: "0".repeat(64), autoContinue: false });
  await client.frame(({ type }) => type === REFUSED);
  client.approve("c1", true, { approvalId: "ask-c2", autoContinue: false });
  await expect.poll(() => client.ofType(REFUSED)).toHaveLength(2);
  expect((await chat.agent()).hasPendingInteraction()).toBe(true);
  client.approve("c1", true, { approvalId: "ask-c1", autoContinue: false });
  await expect.poll(async () => (await chat.agent()).hasPendingInteraction()).toBe(false);
});

test("a yes to the first question of a call, also in a body of the AI SDK's transport, is none to its second", async () => {
  const booked: string[] = [];
  const model = scriptedModel(({ step }) =>
    step === 0 ? { toolCalls: [{ toolName: "travel", input: {}, toolCallId: "c1" }] } : "Done.",
  );
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return {
            travel: serverTool((_input, { resumed }: DurableExecutionOptions) => {
              const next = resumed === undefined ? "flight" : "hotel";
              if (resumed !== undefined) booked.push(new TextDecoder().decode(resumed.state));
              if (booked.length === 2) return "travelled";
              return park({ tool: `book-${next}`, input: {}, state: new TextEncoder().encode(next) });
            }),
          };
        }
      },
    { manual: true },
  );
  await kit.ask("Travel.");
  const agent = await kit.agent();
  const shown = (await kit.last())!;
  const approvalId = () => JSON.stringify(agent.messages.at(-1)).match(/"approval":\{"id":"([^"]+)"/)?.[1];
  const firstId = approvalId();
  agent.answerApproval("c1", true);
  await kit.clock.advance(100);
  await expect.poll(() => booked).toEqual(["flight"]);
  await expect.poll(() => agent.pendingApprovals()[0]?.tool).toBe("book-hotel");
  expect(approvalId()).not.toBe(firstId);
  // Long after nobody could have meant the first one by chance.
  await kit.clock.advance(60_000);
  const client = await kit.connect();
  client.approve("c1", true, { approvalId: firstId });
  await client.frame(({ type }) => type === REFUSED);
  const parts = shown.parts.map((part) =>
    "approval" in part ? { ...part, state: "approval-responded", approval: { id: firstId, approved: true } } : part,
  );
  const body = JSON.stringify({ messages: [{ ...shown, parts }], trigger: "submit-message" });
  await fetch(`${kit.url}/chat`, { method: "POST", headers: { accept: "application/json" }, body });
  await kit.clock.advance(1_000);
  expect(booked).toEqual(["flight"]);
  expect(agent.pendingApprovals()).toHaveLength(1);
  client.approve("c1", true, { approvalId: approvalId() });
  await expect.poll(() => agent.pendingApprovals()).toEqual([]);
});
