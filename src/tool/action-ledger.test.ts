import { expect, test } from "vitest";
import { byId, failed, type Given, openAction, type Order } from "../../test/actions/kit.ts";
import type { ActionExecuteContext } from "./action.ts";
import { ActionLedger, PENDING_KEPT_MS, RECLAIM_AFTER_MS, SETTLED_KEPT_MS } from "./action-ledger.ts";

test("what was done under a key is not done again: every later call gets the stored output", async () => {
  const kit = await openAction();
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
  const kit = await openAction();
  const refund = kit.bind({});
  await kit.call(refund, { id: "o1" }, { id: "a" });
  expect(await kit.call(refund, { id: "o1" }, { id: "a" })).toEqual({ refunded: "o1" });
  await kit.call(refund, { id: "o1" }, { id: "b" });
  expect(kit.runs).toHaveLength(2);
  expect(kit.ledger.list().map(({ key }) => key)).toEqual(["call:refund:m:a", "call:refund:m:b"]);
});

test("other input under the same key is a conflict that the model is told", async () => {
  const kit = await openAction();
  const refund = kit.bind({ idempotencyKey: byId });
  await kit.call(refund, { id: "o1", cents: 5 });
  expect(await kit.call(refund, { id: "o1", cents: 6 })).toEqual(failed("ActionConflictError"));
  expect(kit.runs).toHaveLength(1);
});

test("what throws leaves no row: it may be tried again, and the model reads name and message", async () => {
  const kit = await openAction();
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
  const kit = await openAction();
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
  const kit = await openAction();
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
  const kit = await openAction();
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
  const kit = await openAction();
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
  const kit = await openAction();
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
  const kit = await openAction();
  let seen: unknown;
  const refund = kit.bind({ idempotencyKey: byId, execute: () => ((seen = kit.ledger.list()), "ok") });
  await kit.call(refund, { id: "o1" });
  expect(seen).toMatchObject([{ settledAt: null }]);
});

test("long outputs are cut once, and the ledger has what the model read", async () => {
  const kit = await openAction();
  const refund = kit.bind({ idempotencyKey: byId, execute: () => "x".repeat(100_000) }, { keep: async () => "file-1" });
  const first = await kit.call(refund, { id: "o1" });
  expect(String(first).length).toBeLessThanOrEqual(20_000);
  expect(first).toContain("file-1");
  expect(await kit.call(refund, { id: "o1" })).toBe(first);
});

test("an output that is no JSON does not undo what was done", async () => {
  const kit = await openAction();
  let runs = 0;
  const refund = kit.bind({ idempotencyKey: byId, execute: () => (runs++, () => {}) });
  expect(await kit.call(refund, { id: "o1" })).toEqual({ note: expect.stringContaining("was done") });
  await kit.call(refund, { id: "o1" });
  expect(runs).toBe(1);
});

test("results are kept for 30 days, unknown ends for 90", async () => {
  const kit = await openAction();
  const start = kit.clock.now();
  /** A life that begins so much later. */
  const ledgerAt = (ms: number) => {
    const { host } = kit;
    return new ActionLedger({
      sql: (query, ...args) => host.sql(query, ...args),
      tx: (work) => host.tx(work),
      durable: () => host.durable(),
      keepAwake: (work) => work,
      clock: { now: () => start + ms, after: () => () => {} },
    });
  };
  /** One action in that life. @returns the keys that are left. */
  const keysAfter = async (ms: number, id: string, options: Given = {}) => {
    const ledger = ledgerAt(ms);
    await kit.call(kit.bind(options, { ledger }), { id }, { id });
    return ledger.list().map(({ key }) => key);
  };
  const ledger = ledgerAt(0);
  void kit.call(kit.bind({ execute: () => new Promise(() => {}) }, { ledger }), { id: "stuck" }, { id: "stuck" });
  await expect.poll(() => ledger.list()).toHaveLength(1);
  await keysAfter(0, "done", { idempotencyKey: byId });
  expect(await keysAfter(SETTLED_KEPT_MS, "1")).toContain("action:refund:done");
  const left = await keysAfter(SETTLED_KEPT_MS + 1, "2");
  expect(left).not.toContain("action:refund:done");
  expect(left).toContain("call:refund:m:stuck");
  expect(await keysAfter(PENDING_KEPT_MS + 1, "3")).not.toContain("call:refund:m:stuck");
});

test("an action that is done is done, also if no row can hold what it returned", async () => {
  const kit = await openAction();
  let runs = 0;
  const execute = () => ({ run: ++runs, text: "x".repeat(2_000_000) });
  const tool = kit.bind({ execute, idempotencyKey: byId, maxOutputChars: 3_000_000 });
  const note = expect.stringContaining("The action was done.") as string;
  expect(await kit.call(tool, { id: "o1" })).toEqual({ note });
  await kit.clock.advance(RECLAIM_AFTER_MS + 1);
  expect(await kit.call(tool, { id: "o1" })).toEqual({ note });
  expect(runs).toBe(1);
});
