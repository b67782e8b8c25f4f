import { jsonSchema, tool, type ToolSet } from "ai";
import {
  action,
  type ApprovalRequest,
  type CallApproval,
  type DurableExecutionOptions,
  durableTool,
  getCurrentAgent,
  type Identity,
} from "perdure";
import { type BeforeHook, subscribe } from "perdure/node";
import { type Script, scriptedModel } from "perdure/testing";
import { park } from "perdure/tools";
import { expect, onTestFinished, test } from "vitest";
import { connectTo, UPDATED, user } from "../chat/client.ts";
import { asksOnce, childClass, openTogether } from "../together/harness.ts";
import { openThink, serverTool } from "./harness.ts";

const ANNA: Identity = { id: "u1", name: "Anna" };
const BEN: Identity = { id: "u2", name: "Ben", roles: ["cashier"] };
const PEOPLE: Readonly<Record<string, Identity>> = { anna: ANNA, ben: BEN };
const byToken: BeforeHook = (request) => {
  const identity = PEOPLE[new URL(request.url).searchParams.get("token") ?? ""];
  return identity && { identity };
};
const host = { onBeforeConnect: byToken, onBeforeRequest: byToken };

const pay: Script = ({ step }) =>
  step === 0 ? { toolCalls: [{ toolName: "pay", input: { amount: 5 }, toolCallId: "c1" }] } : "Done.";
const inputSchema = jsonSchema<{ amount: number }>({ type: "object" });

/** Only a cashier may, and nobody for themselves. */
const cashiersOnly = ({ call, identity }: ApprovalRequest) =>
  (identity?.roles as string[] | undefined)?.includes("cashier") === true && identity?.id !== call.requestedBy?.id;

interface Setup {
  readonly script?: Script;
  readonly tools?: (approvals: (CallApproval | undefined)[]) => ToolSet;
  readonly authorize?: (request: ApprovalRequest) => unknown;
}

/** Anna asks for something that somebody has to approve. */
async function asking({ script = pay, tools, authorize = cashiersOnly }: Setup = {}) {
  const model = scriptedModel(script);
  const approvals: (CallApproval | undefined)[] = [];
  const requests: ApprovalRequest[] = [];
  const own = (): ToolSet => ({
    pay: serverTool((_, options) => void approvals.push((options as DurableExecutionOptions).approval), {
      needsApproval: true,
    }),
  });
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return (tools ?? own)(approvals);
        }
        override authorizeApproval(request: ApprovalRequest) {
          requests.push(request);
          expect(getCurrentAgent().identity).toEqual(request.identity);
          return authorize(request) as boolean;
        }
      },
    { host },
  );
  const post = (path: string, token: string, body: unknown) =>
    fetch(`${kit.url}/${path}?token=${token}`, { method: "POST", body: JSON.stringify(body) });
  await post("chat", "anna", { messages: [user("m1", "Pay.")] });
  await expect.poll(async () => (await kit.agent()).pendingApprovals().length).toBe(1);
  await kit.stable();
  const events: unknown[] = [];
  onTestFinished(subscribe("approval:refused", ({ payload }) => void events.push(payload)));
  return Object.assign(kit, {
    ...{ model, approvals, requests, events, post },
    as: (token: string) => connectTo(`${kit.url}?token=${token}`),
    isOpen: async () =>
      (await kit.agent()).pendingApprovals().length === 1 &&
      JSON.stringify((await kit.last())?.parts).includes('"approval-requested"'),
  });
}

test("who may not approve is told so over a socket; the question stays open for those who may", async () => {
  const kit = await asking();
  const anna = await kit.as("anna");
  anna.approve("c1", true);
  const told = await anna.frame(({ type }) => type === "perdure_chat_approval_refused");
  expect(told).toMatchObject({
    toolCallId: "c1",
    reason: expect.stringContaining('may not approve the call of "pay"'),
  });
  // What a client shows as answered is shown as open again.
  expect(JSON.stringify(anna.ofType(UPDATED).at(-1)?.message)).toContain('"approval-requested"');
  expect(await kit.isOpen()).toBe(true);
  expect(kit.events).toEqual([
    { toolCallId: "c1", tool: "pay", approved: true, reason: "authorizeApproval said no", by: "u1" },
  ]);
  const ben = await kit.as("ben");
  ben.approve("c1", true);
  await expect.poll(() => kit.approvals).toHaveLength(1);
  await kit.stable();
  expect(kit.model.calls).toHaveLength(2);
  expect(ben.ofType("perdure_chat_approval_refused")).toEqual([]);
});

test("over HTTP who may not is answered with 403, also to a no, and also where the answer comes with a message", async () => {
  const kit = await asking();
  for (const approved of [true, false]) {
    const refused = await kit.post("chat/tools/c1", "anna", { approved });
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ error: { code: "not_allowed" } });
  }
  const last = await kit.last();
  const parts = last?.parts.map((part) =>
    "approval" in part
      ? { ...part, state: "approval-responded", approval: { ...part.approval, approved: true } }
      : part,
  );
  const messages = [user("m1", "Pay."), { ...last, parts }];
  expect((await kit.post("chat", "anna", { messages })).status).toBe(403);
  expect(await kit.isOpen()).toBe(true);
  expect(kit.events).toHaveLength(3);
  expect((await kit.post("chat", "ben", { messages })).status).toBe(202);
  await expect.poll(() => kit.approvals).toHaveLength(1);
  await kit.stable();
  // It goes on for whom it began.
  const rows = await kit.rows<{ identity: string }>("SELECT identity FROM perdure_turn ORDER BY seq");
  expect(rows.map(({ identity }) => identity)).toEqual([JSON.stringify(ANNA), JSON.stringify(ANNA)]);
});

test("authorizeApproval is told what would run, in which words, for whom, and who says what", async () => {
  const kit = await asking({
    tools: () => ({
      pay: durableTool(tool({ inputSchema, execute: () => "paid" }), {
        needsApproval: ({ amount }, { identity }) => `Pay ${amount} for ${identity?.name}?`,
      }),
    }),
  });
  await kit.post("chat/tools/c1", "ben", { approved: true });
  const messageId = (await kit.last())?.id;
  const call = { toolCallId: "c1", toolName: "pay", input: { amount: 5 }, messageId, sessionId: "main" };
  expect(kit.requests).toEqual([
    { call: { ...call, summary: "Pay 5 for Anna?", requestedBy: ANNA }, identity: BEN, approved: true },
  ]);
});

test.each([
  ["nothing", () => undefined, ["authorizeApproval returned undefined, not true or false. The question stays open."]],
  ["a text", () => "yes", ["authorizeApproval returned string, not true or false. The question stays open."]],
  [
    "a promise of 1",
    () => Promise.resolve(1),
    ["authorizeApproval returned number, not true or false. The question stays open."],
  ],
  ["a promise of no", () => Promise.resolve(false), []],
])("%s is no leave", async (_, authorize, errors) => {
  const kit = await asking({ authorize });
  expect((await kit.post("chat/tools/c1", "ben", { approved: true })).status).toBe(403);
  expect(await kit.isOpen()).toBe(true);
  expect(kit.events).toHaveLength(1);
  // What is neither yes nor no is a mistake of the app.
  expect(kit.takeErrors()).toEqual(errors);
});

test.each([
  [
    "throws",
    () => {
      throw new Error("no database");
    },
  ],
  ["rejects", () => Promise.reject(new Error("no database"))],
])("a rule that %s refuses, and the agent hears of it", async (_, authorize) => {
  const kit = await asking({ authorize });
  expect((await kit.post("chat/tools/c1", "ben", { approved: true })).status).toBe(403);
  expect(await kit.isOpen()).toBe(true);
  expect(kit.events).toMatchObject([{ reason: "authorizeApproval threw: no database" }]);
  expect(kit.takeErrors()).toEqual(["no database"]);
});

test("the tool is told who approved it and when, and so is whoever asks later", async () => {
  const kit = await asking();
  await kit.post("chat/tools/c1", "ben", { approved: true });
  await expect.poll(() => kit.approvals).toHaveLength(1);
  await kit.stable();
  const [approval] = kit.approvals;
  expect(approval).toEqual({ by: "Ben", identity: BEN, at: expect.any(Number) });
  await kit.restart();
  const agent = await kit.agent();
  expect(agent.getToolApproval("c1")).toEqual(approval);
  expect(agent.getToolApproval("c2")).toBeUndefined();
});

test("a tool that nobody had to approve is told of nobody", async () => {
  const approvals: unknown[] = [];
  const model = scriptedModel(pay);
  const kit = await openThink(
    (Base) =>
      class extends Base {
        override getModel() {
          return model;
        }
        override getTools() {
          return { pay: serverTool((_, options) => void approvals.push("approval" in options)) };
        }
      },
  );
  await kit.ask("Pay.");
  expect(approvals).toEqual([false]);
});

test("server code decides for itself, and is taken for whoever it names", async () => {
  const kit = await asking({ authorize: () => false });
  const agent = await kit.agent();
  expect(() => agent.answerApproval("c1", true, { identity: { name: "x" } as never })).toThrow("must have an `id`");
  expect(agent.answerApproval("c1", true, { identity: BEN })).toBe(true);
  await expect.poll(() => kit.approvals).toHaveLength(1);
  expect(kit.approvals).toMatchObject([{ by: "Ben", identity: BEN }]);
  expect(kit.requests).toEqual([]);
  await kit.stable();
});

test("an answer that was allowed is none to a second question of the same call", async () => {
  const gate = Promise.withResolvers<boolean>();
  let asked = 0;
  const execute = (_: unknown, { resumed, approval }: DurableExecutionOptions) => {
    asked++;
    if (resumed === undefined || asked < 3)
      return park({ tool: `book ${asked}`, input: {}, summary: `Part ${asked}?`, state: new Uint8Array(1) });
    return approval?.by;
  };
  const kit = await asking({
    tools: () => ({ pay: tool({ inputSchema, execute }) }),
    authorize: ({ call }) => call.toolName !== "book 1" || gate.promise,
  });
  const slow = kit.post("chat/tools/c1", "anna", { approved: true });
  await expect.poll(() => kit.requests).toHaveLength(1);
  (await kit.agent()).answerApproval("c1", true, { identity: BEN });
  await expect.poll(async () => (await kit.agent()).pendingApprovals()[0]?.tool).toBe("book 2");
  gate.resolve(true);
  expect(await (await slow).json()).toEqual({ changed: false });
  expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
  await kit.stable();
});

test("what came before a question was asked is no answer to it, however long the rule takes for another", async () => {
  const gate = Promise.withResolvers<boolean>();
  const kit = await asking({
    script: ({ step, userText }) =>
      step === 0
        ? { toolCalls: [{ toolName: "pay", input: { amount: 5 }, toolCallId: userText === "Pay." ? "c1" : "c2" }] }
        : "Done.",
    authorize: ({ call }) => call.toolCallId === "c1" && gate.promise,
  });
  const last = await kit.last();
  const said = (toolCallId: string) => {
    return {
      type: "tool-pay",
      toolCallId,
      state: "approval-responded",
      input: {},
      approval: { id: toolCallId, approved: true },
    };
  };
  const messages = [user("m1", "Pay."), { ...last, parts: [said("c2"), said("c1")] }];
  const slow = kit.post("chat", "anna", { messages });
  await expect.poll(() => kit.requests).toHaveLength(1);
  await kit.post("chat", "anna", { messages: [user("m2", "Pay more.")] });
  await expect
    .poll(async () => (await kit.agent()).pendingApprovals().some(({ toolCallId }) => toolCallId === "c2"))
    .toBe(true);
  gate.resolve(true);
  await slow;
  await kit.stable();
  expect(kit.approvals).toEqual([]);
  expect((await kit.agent()).getToolApproval("c2")).toBeUndefined();
});

test("a second yes over HTTP is none to what the call asks a moment later", async () => {
  let asked = 0;
  const execute = (_: unknown, { resumed }: DurableExecutionOptions) => {
    if (resumed !== undefined && asked === 2) return "booked";
    asked++;
    return park({ tool: `book ${asked}`, input: {}, summary: `Part ${asked}?`, state: new Uint8Array(1) });
  };
  const kit = await asking({ tools: () => ({ pay: tool({ inputSchema, execute }) }), authorize: () => true });
  await kit.post("chat/tools/c1", "ben", { approved: true });
  await expect.poll(async () => (await kit.agent()).pendingApprovals()[0]?.tool, { interval: 5 }).toBe("book 2");
  const second = await kit.post("chat/tools/c1", "anna", { approved: true });
  expect(await second.json()).toEqual({ changed: false });
  expect((await kit.agent()).pendingApprovals()).toHaveLength(1);
});

test("needsApproval may return the words of the question: they are listed, and clients are shown them", async () => {
  const kit = await asking({
    tools: () => ({
      pay: durableTool(tool({ inputSchema, execute: () => "paid" }), {
        needsApproval: ({ amount }) => amount > 1 && `Pay $${amount} to the baker?`,
      }),
    }),
  });
  expect((await kit.agent()).pendingApprovals()).toMatchObject([{ tool: "pay", summary: "Pay $5 to the baker?" }]);
  expect((await kit.last())?.parts.at(-1)).toMatchObject({
    state: "approval-requested",
    approval: { requestReason: "Pay $5 to the baker?" },
  });
});

test("an action may word its question with a text alone, and is told who approved it", async () => {
  const told: unknown[] = [];
  const kit = await asking({
    tools: () => ({
      pay: action({
        description: "Pays.",
        inputSchema,
        approval: ({ amount }) => `Pay ${amount}?`,
        execute: (_, { approval, identity }) => {
          told.push([identity?.id, approval?.identity?.id]);
          return "paid";
        },
      }),
    }),
  });
  expect((await kit.agent()).pendingApprovals()).toMatchObject([{ summary: "Pay 5?" }]);
  await kit.post("chat/tools/c1", "ben", { approved: true });
  await expect.poll(() => told).toEqual([["u1", "u2"]]);
  await kit.stable();
});

test("a child asks its own rule who may answer, and is told who it is from the host", async () => {
  const requests: ApprovalRequest[] = [];
  const { Researcher, lives } = childClass(pay, { pay: serverTool(() => "paid", { needsApproval: true }) }, (Base) => {
    class Careful extends Base {
      override authorizeApproval(request: ApprovalRequest) {
        requests.push(request);
        return cashiersOnly(request);
      }
    }
    return Careful;
  });
  const kit = await openTogether(Researcher, asksOnce, { host });
  await fetch(`${kit.url}/chat?token=anna`, {
    method: "POST",
    body: JSON.stringify({ messages: [user("m1", "Go.")] }),
  });
  await expect.poll(() => lives.at(-1)?.pendingApprovals().length).toBe(1);
  const [run] = (await kit.agent()).listAgentToolRuns();
  const answer = (token: string) =>
    fetch(`${kit.url}/sub/researcher/${run?.runId}/chat/tools/c1?token=${token}`, {
      method: "POST",
      body: JSON.stringify({ approved: true }),
    });
  expect((await answer("anna")).status).toBe(403);
  expect((await answer("ben")).status).toBe(200);
  await kit.stable();
  expect(requests.map(({ identity, call }) => [identity?.id, call.requestedBy?.id])).toEqual([
    ["u1", "u1"],
    ["u2", "u1"],
  ]);
});
