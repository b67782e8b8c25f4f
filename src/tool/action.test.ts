import type { Tool, ToolSet } from "ai";
import { expect, test } from "vitest";
import { byId, failed, inputSchema, openAction, type Order } from "../../test/actions/kit.ts";
import { PerdureError } from "../base/error.ts";
import { action, type ActionOptions, PAUSE_TTL_MS } from "./action.ts";
import { attachmentChunk, attachmentsOf, MAX_ATTACHMENTS, type ReplyAttachment } from "./action-attachment.ts";
import { approvalText, bindActions, readNeed } from "./action-bind.ts";
import type { ActionBinding } from "./action-run.ts";

// Who may

test("an action without its permissions does not run: the model reads why", async () => {
  const kit = await openAction();
  const run = (grants: ActionBinding["grants"], more: Partial<ActionBinding> = {}) =>
    kit.call(kit.bind({ permissions: ["billing:refund"] }, { grants, ...more }), { id: "o1" });
  expect(await run(() => ({ allowed: true, grantedPermissions: ["billing:read"] }))).toEqual(
    failed("ActionAuthorizationError", expect.stringContaining("billing:refund")),
  );
  expect(await run(() => false)).toEqual(failed("ActionAuthorizationError"));
  expect(await run(() => ({ allowed: false, reason: "Closed today." }))).toEqual(
    failed("ActionAuthorizationError", expect.stringContaining("Closed today.")),
  );
  expect(kit.runs).toEqual([]);
  expect(kit.ledger.list()).toEqual([]);
  expect(await run(() => ({ allowed: true, grantedPermissions: ["billing:refund"] }))).toEqual({ refunded: "o1" });
  expect(await run(undefined)).toEqual({ refunded: "o1" });
});

test("authorizeAction has the last word, and one that fails denies", async () => {
  const kit = await openAction();
  const asked: unknown[] = [];
  const run = (authorize: ActionBinding["authorize"]) =>
    kit.call(kit.bind({ permissions: (input) => [`refund:${input.id}`] }, { grants: () => false, authorize }), {
      id: "o1",
    });
  expect(await run((context) => void asked.push(context))).toEqual(failed("ActionAuthorizationError"));
  expect(asked).toMatchObject([
    {
      ...{ action: "refund", input: { id: "o1" }, requestId: "r1", sessionId: "s1" },
      ...{ requiredPermissions: ["refund:o1"], grantedPermissions: [] },
    },
  ]);
  const throws = () => {
    throw new Error("secret");
  };
  expect(JSON.stringify(await run(throws))).not.toContain("secret");
  expect(kit.failures).toHaveLength(1);
  expect(await run(() => true)).toEqual({ refunded: "o1" });
});

// Who is asked

const ask = (tool: Tool, input: Order) =>
  (tool as unknown as { needsApproval: (input: unknown, options: unknown) => Promise<unknown> }).needsApproval(input, {
    toolCallId: "c1",
    messages: [],
  });

test("approval is asked for with its summary, its risk and its time", async () => {
  const kit = await openAction();
  const always = readNeed(await ask(kit.bind({ approval: true }), { id: "o1" }));
  expect(always).toEqual({ kind: "ask", summary: "Refunds an order.", risk: undefined, expiresInMs: undefined });
  const large = kit.bind({
    approval: ({ cents = 0 }) => cents > 100 && { summary: `Refund ${cents} cents`, risk: "high" as const },
    durablePause: true,
  });
  expect(readNeed(await ask(large, { id: "o1", cents: 5 }))).toEqual({ kind: "free" });
  const need = readNeed(await ask(large, { id: "o1", cents: 500 }));
  expect(need).toEqual({ kind: "ask", summary: "Refund 500 cents", risk: "high", expiresInMs: PAUSE_TTL_MS });
  expect(need.kind === "ask" && approvalText(need)).toBe("Refund 500 cents (risk: high)");
  expect(readNeed(await ask(kit.bind({ durablePause: true }), { id: "o1" })).kind).toBe("ask");
  expect([readNeed(true).kind, readNeed(false).kind, readNeed(undefined).kind]).toEqual(["ask", "free", "ask"]);
  expect("needsApproval" in kit.bind({ approval: false })).toBe(false);
});

test("nobody is asked about what is denied, or done already", async () => {
  const kit = await openAction();
  const gated = (more: Partial<ActionBinding> = {}) => kit.bind({ approval: true, idempotencyKey: byId }, more);
  const answer = { kind: "answer", output: failed("ActionAuthorizationError") };
  expect(readNeed(await ask(gated({ grants: () => false }), { id: "o1" }))).toEqual(answer);
  await kit.call(gated(), { id: "o1" });
  expect(readNeed(await ask(gated(), { id: "o1" }))).toEqual({ kind: "answer", output: { refunded: "o1" } });
  expect(readNeed(await ask(gated(), { id: "o1", cents: 1 }))).toMatchObject({
    kind: "answer",
    output: failed("ActionConflictError"),
  });
  expect(readNeed(await ask(gated(), { id: "o2" })).kind).toBe("ask");
});

// What comes along

test("attachments are stored with the result: once, and not if the action fails", async () => {
  const kit = await openAction();
  const parts: unknown[] = [];
  const attach: ActionBinding["attach"] = (list, also) =>
    kit.host.tx(() => {
      for (const { id, attachment } of list) parts.push(attachmentChunk(id, attachment));
      also();
    });
  const binding = { attach, attached: () => parts.length };
  const draft = kit.bind(
    {
      idempotencyKey: byId,
      execute: (input, context) => {
        context.attachReply({ type: "email_draft", to: [input.id] });
        if (input.cents === 1) throw new Error("No.");
        return "drafted";
      },
    },
    binding,
  );
  await kit.call(draft, { id: "bad", cents: 1 });
  expect(parts).toEqual([]);
  await kit.call(draft, { id: "ada" });
  await kit.call(draft, { id: "ada" });
  expect(attachmentsOf({ parts: parts as never })).toEqual([{ type: "email_draft", to: ["ada"] }]);
  const taken: boolean[] = [];
  const many = kit.bind(
    {
      execute: (_, context) => {
        for (let i = 0; i < MAX_ATTACHMENTS; i++) taken.push(context.attachReply({ type: "card", i }));
      },
    },
    binding,
  );
  await kit.call(many, { id: "x" });
  expect(taken.filter(Boolean)).toHaveLength(MAX_ATTACHMENTS - 1);
  expect(parts).toHaveLength(MAX_ATTACHMENTS);
});

test("what is no attachment is refused", async () => {
  const kit = await openAction();
  const errors: unknown[] = [];
  const bad = kit.bind({
    execute: (_, { attachReply }) => {
      for (const one of [{}, "x", { type: "" }, { type: "card", text: "x".repeat(200_000) }]) {
        try {
          attachReply(one as ReplyAttachment);
        } catch (thrown) {
          errors.push(PerdureError.is(thrown) && thrown.code);
        }
      }
      return attachReply({ type: "card" });
    },
  });
  // Nobody takes attachments here.
  expect(await kit.call(bad, { id: "o1" })).toBe(false);
  expect(errors).toEqual(["bad_input", "bad_input", "bad_input", "limit"]);
});

test("what cannot work is refused where it is written", async () => {
  const base = { description: "Does it.", inputSchema, execute: () => 1 };
  const bad: unknown[] = [
    { ...base, description: " " },
    { ...base, execute: undefined },
    { ...base, inputSchema: undefined },
    { ...base, timeoutMs: 0 },
    { ...base, idempotencyKey: 5 },
    { ...base, permissions: "all" },
    { ...base, durablePause: true, approval: false },
  ];
  for (const options of bad) {
    expect(() => action(options as ActionOptions<Order, unknown>)).toThrow(
      expect.objectContaining({ code: "bad_config" }),
    );
  }
  const kit = await openAction();
  const unbound = action(base);
  expect(await kit.call(unbound as Tool, { id: "o1" })).toMatchObject({
    errorText: expect.stringContaining("getActions()"),
  });
  const wrong = kit.bind({ idempotencyKey: () => "" });
  expect(await kit.call(wrong, { id: "o1" })).toMatchObject({ errorText: expect.stringContaining("idempotencyKey") });
});

test("a tool called __proto__ is a tool like any other, and nothing that the others inherit from", async () => {
  const { ledger } = await openAction();
  const bound = bindActions(JSON.parse('{"__proto__":{"description":"odd"},"a":{}}') as ToolSet, { ledger });
  expect(Object.keys(bound)).toEqual(["__proto__", "a"]);
  expect(bound.description).toBe(undefined);
});
