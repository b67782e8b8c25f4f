import { jsonSchema, type Tool, type ToolSet } from "ai";
import { expect, test } from "vitest";
import { probeHost, type ProbeHost } from "../../test/chat/probe-host.ts";
import { PerdureError } from "../error.ts";
import { action, type ActionExecuteContext, type ActionOptions, PAUSE_TTL_MS } from "./action.ts";
import { attachmentChunk, attachmentsOf, MAX_ATTACHMENTS, type ReplyAttachment } from "./action-attachment.ts";
import { approvalText, bindActions, readNeed } from "./action-bind.ts";
import { ActionLedger, PENDING_KEPT_MS, RECLAIM_AFTER_MS, SETTLED_KEPT_MS } from "./action-ledger.ts";
import type { ActionBinding } from "./action-run.ts";
import { runCall } from "./run-call.ts";

interface Order {
  readonly id: string;
  readonly cents?: number;
}

const inputSchema = jsonSchema<Order>({ type: "object" });
const byId = (input: Order) => input.id;

type Given = Partial<ActionOptions<Order, unknown>>;

interface Kit extends ProbeHost {
  readonly ledger: ActionLedger;
  readonly runs: Order[];
  readonly failures: unknown[];
  bind(options: Given, binding?: Partial<ActionBinding>): Tool;
  call(tool: Tool, input: Order, more?: { id?: string; signal?: AbortSignal }): Promise<unknown>;
}

/** One action called `refund` on a real database. Without `execute` it notes its runs. */
async function open(): Promise<Kit> {
  const probe = await probeHost();
  const ledger = new ActionLedger(probe.host);
  const runs: Order[] = [];
  const failures: unknown[] = [];
  let calls = 0;
  return {
    ...probe,
    ...{ ledger, runs, failures },
    bind(options, binding = {}) {
      const refund = action<Order, unknown>({
        description: "Refunds an order.",
        inputSchema,
        execute: (input) => {
          runs.push(input);
          return { refunded: input.id };
        },
        ...options,
      });
      const turn = () => ({ requestId: "r1", sessionId: "s1" });
      const set = bindActions({ refund } as ToolSet, { ledger, turn, failed: (e) => failures.push(e), ...binding });
      return set.refund as Tool;
    },
    async call(tool, input, { id = `c${++calls}`, signal = new AbortController().signal } = {}) {
      const context = { messages: [], abortSignal: signal, idempotencyKey: `m:${id}`, clock: probe.clock };
      const keep = async () => undefined;
      const outcome = await runCall(
        tool,
        { toolCallId: id, toolName: "refund", input },
        { ...context, progress: () => {}, keep },
      );
      return outcome.kind === "output" ? outcome.output : outcome;
    },
  };
}

const failed = (name: string, message: unknown = expect.any(String)) => ({ error: { name, message } });

test("what was done under a key is not done again: every later call gets the stored output", async () => {
  const kit = await open();
  const refund = kit.bind({ idempotencyKey: byId });
  expect(await kit.call(refund, { id: "o1" })).toEqual({ refunded: "o1" });
  expect(await kit.call(refund, { id: "o1" })).toEqual({ refunded: "o1" });
  // Another life of the agent.
  const later = kit.bind({ idempotencyKey: byId }, { ledger: new ActionLedger(kit.host) });
  expect(await kit.call(later, { id: "o1" })).toEqual({ refunded: "o1" });
  expect(await kit.call(later, { id: "o2" })).toEqual({ refunded: "o2" });
  expect(kit.runs).toEqual([{ id: "o1" }, { id: "o2" }]);
  expect(kit.ledger.list()).toMatchObject([
    { key: "action:refund:o1", action: "refund", attempts: 1, sessionId: "s1" },
    { key: "action:refund:o2" },
  ]);
});

test("without a key each call stands for itself, and the same call is done once", async () => {
  const kit = await open();
  const refund = kit.bind({});
  await kit.call(refund, { id: "o1" }, { id: "a" });
  expect(await kit.call(refund, { id: "o1" }, { id: "a" })).toEqual({ refunded: "o1" });
  await kit.call(refund, { id: "o1" }, { id: "b" });
  expect(kit.runs).toHaveLength(2);
  expect(kit.ledger.list().map(({ key }) => key)).toEqual(["call:refund:m:a", "call:refund:m:b"]);
});

test("other input under the same key is a conflict that the model is told", async () => {
  const kit = await open();
  const refund = kit.bind({ idempotencyKey: byId });
  await kit.call(refund, { id: "o1", cents: 5 });
  expect(await kit.call(refund, { id: "o1", cents: 6 })).toEqual(failed("ActionConflictError"));
  expect(kit.runs).toHaveLength(1);
});

test("what throws leaves no row: it may be tried again, and the model reads name and message", async () => {
  const kit = await open();
  let broken = true;
  const refund = kit.bind({
    idempotencyKey: byId,
    execute: () => {
      if (broken) throw new TypeError("The bank is closed.");
      return "paid";
    },
  });
  expect(await kit.call(refund, { id: "o1" })).toEqual(failed("TypeError", "The bank is closed."));
  expect(kit.ledger.list()).toEqual([]);
  broken = false;
  expect(await kit.call(refund, { id: "o1" })).toBe("paid");
});

test("a cut action is told as unknown; only one with a key runs again, after five minutes", async () => {
  const kit = await open();
  const never = kit.bind({ execute: () => new Promise(() => {}) });
  const named = kit.bind({ idempotencyKey: byId, execute: () => new Promise(() => {}) });
  // The process dies: nobody hears their ends.
  void kit.call(never, { id: "o1" }, { id: "a" });
  void kit.call(named, { id: "o1" }, { id: "b" });
  await expect.poll(() => kit.ledger.list()).toHaveLength(2);
  const ledger = new ActionLedger(kit.host);
  const again = kit.bind({}, { ledger });
  const namedAgain = kit.bind({ idempotencyKey: byId }, { ledger });
  expect(await kit.call(again, { id: "o1" }, { id: "a" })).toEqual(failed("ActionPendingError"));
  expect(await kit.call(namedAgain, { id: "o1" })).toEqual(failed("ActionPendingError"));
  await kit.clock.advance(RECLAIM_AFTER_MS);
  expect(await kit.call(again, { id: "o1" }, { id: "a" })).toEqual(failed("ActionPendingError"));
  const careful = kit.bind({ idempotencyKey: byId }, { ledger, reclaimAfterMs: false });
  expect(await kit.call(careful, { id: "o1" })).toEqual(failed("ActionPendingError"));
  expect(kit.runs).toEqual([]);
  expect(await kit.call(namedAgain, { id: "o1" })).toEqual({ refunded: "o1" });
  expect(ledger.list().find(({ key }) => key === "action:refund:o1")?.attempts).toBe(2);
  expect(ledger.forget("call:refund:m:a")).toBe(true);
  expect(await kit.call(again, { id: "o1" }, { id: "a" })).toEqual({ refunded: "o1" });
});

test("two calls of a key at the same time do the work once, and both get its output", async () => {
  const kit = await open();
  const gate = Promise.withResolvers<string>();
  let runs = 0;
  const refund = kit.bind({ idempotencyKey: byId, execute: () => (runs++, gate.promise) });
  const both = [kit.call(refund, { id: "o1" }), kit.call(refund, { id: "o1" })];
  const other = kit.call(refund, { id: "o1", cents: 1 });
  expect(await other).toEqual(failed("ActionConflictError"));
  gate.resolve("paid");
  expect(await Promise.all(both)).toEqual(["paid", "paid"]);
  expect(runs).toBe(1);
});

test("an action that is too slow is told to stop; one that does may be tried again", async () => {
  const kit = await open();
  const heeds = (_: Order, { signal }: ActionExecuteContext) =>
    new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const refund = kit.bind({ idempotencyKey: byId, timeoutMs: 50, execute: heeds });
  const slow = kit.call(refund, { id: "o1" });
  await expect.poll(() => kit.ledger.running.size).toBe(1);
  await kit.clock.advance(50);
  expect(await slow).toEqual(failed("ActionTimeoutError", expect.stringContaining("may be tried again")));
  expect(kit.ledger.list()).toEqual([]);
});

test("of one that goes on nobody says that it was not done, and its late output counts", async () => {
  const kit = await open();
  const gate = Promise.withResolvers<string>();
  let runs = 0;
  const refund = kit.bind({ idempotencyKey: byId, timeoutMs: 50, execute: () => (runs++, gate.promise) });
  const slow = kit.call(refund, { id: "o1" });
  await expect.poll(() => kit.ledger.running.size).toBe(1);
  await kit.clock.advance(50);
  await kit.clock.advance(1_000);
  expect(await slow).toEqual(failed("ActionTimeoutError", expect.stringContaining("not known")));
  gate.resolve("paid after all");
  await expect.poll(() => kit.ledger.running.size).toBe(0);
  expect(await kit.call(refund, { id: "o1" })).toBe("paid after all");
  expect(runs).toBe(1);
});

test("a stop of the turn aborts the action, and what it has done by then counts", async () => {
  const kit = await open();
  const stop = new AbortController();
  let signalled = false;
  const gate = Promise.withResolvers<string>();
  const refund = kit.bind({
    idempotencyKey: byId,
    execute: (_, { signal }) => {
      signal.addEventListener("abort", () => (signalled = true));
      return gate.promise;
    },
  });
  const cut = kit.call(refund, { id: "o1" }, { signal: stop.signal });
  await expect.poll(() => kit.ledger.running.size).toBe(1);
  stop.abort();
  expect(await cut).toEqual({ kind: "aborted" });
  await expect.poll(() => signalled).toBe(true);
  gate.resolve("paid");
  await expect.poll(() => kit.ledger.running.size).toBe(0);
  expect(await kit.call(refund, { id: "o1" })).toBe("paid");
});

test("the pending row is durable before the work begins", async () => {
  const kit = await open();
  let seen: unknown;
  const refund = kit.bind({ idempotencyKey: byId, execute: () => ((seen = kit.ledger.list()), "ok") });
  await kit.call(refund, { id: "o1" });
  expect(seen).toMatchObject([{ settledAt: null }]);
});

test("long outputs are cut once, and the ledger has what the model read", async () => {
  const kit = await open();
  const refund = kit.bind({ idempotencyKey: byId, execute: () => "x".repeat(100_000) }, { keep: async () => "file-1" });
  const first = await kit.call(refund, { id: "o1" });
  expect(String(first).length).toBeLessThanOrEqual(20_000);
  expect(first).toContain("file-1");
  expect(await kit.call(refund, { id: "o1" })).toBe(first);
});

test("an output that is no JSON does not undo what was done", async () => {
  const kit = await open();
  let runs = 0;
  const refund = kit.bind({ idempotencyKey: byId, execute: () => (runs++, () => {}) });
  expect(await kit.call(refund, { id: "o1" })).toEqual({ note: expect.stringContaining("was done") });
  await kit.call(refund, { id: "o1" });
  expect(runs).toBe(1);
});

test("results are kept for 30 days, unknown ends for 90", async () => {
  const kit = await open();
  const start = kit.clock.now();
  /** One action in a life that begins so much later. @returns the keys that are left. */
  const keysAfter = async (ms: number, id: string, options: Given = {}) => {
    const clock = { now: () => start + ms, after: () => () => {} };
    const { host } = kit;
    const ledger = new ActionLedger({
      sql: (query, ...args) => host.sql(query, ...args),
      tx: (work) => host.tx(work),
      durable: () => host.durable(),
      clock,
    });
    await Promise.race([
      kit.call(kit.bind(options, { ledger }), { id }, { id }),
      new Promise((r) => setTimeout(r, 20)),
    ]);
    return ledger.list().map(({ key }) => key);
  };
  await keysAfter(0, "stuck", { execute: () => new Promise(() => {}) });
  await keysAfter(0, "done", { idempotencyKey: byId });
  expect(await keysAfter(SETTLED_KEPT_MS, "1")).toContain("action:refund:done");
  const left = await keysAfter(SETTLED_KEPT_MS + 1, "2");
  expect(left).not.toContain("action:refund:done");
  expect(left).toContain("call:refund:m:stuck");
  expect(await keysAfter(PENDING_KEPT_MS + 1, "3")).not.toContain("call:refund:m:stuck");
});

// Who may

test("an action without its permissions does not run: the model reads why", async () => {
  const kit = await open();
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
  const kit = await open();
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
  const kit = await open();
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
  expect([readNeed(true).kind, readNeed(false).kind, readNeed(undefined).kind]).toEqual(["ask", "free", "free"]);
  expect("needsApproval" in kit.bind({ approval: false })).toBe(false);
});

test("nobody is asked about what is denied, or done already", async () => {
  const kit = await open();
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
  const kit = await open();
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
  const kit = await open();
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
  const kit = await open();
  const unbound = action(base);
  expect(await kit.call(unbound as Tool, { id: "o1" })).toMatchObject({
    errorText: expect.stringContaining("getActions()"),
  });
  const wrong = kit.bind({ idempotencyKey: () => "" });
  expect(await kit.call(wrong, { id: "o1" })).toMatchObject({ errorText: expect.stringContaining("idempotencyKey") });
});
