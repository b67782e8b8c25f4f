import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import type { Budgets } from "./budget.ts";
import type { CallResult } from "./charge.ts";
import { Ledger } from "./ledger.ts";
import type { NewCall } from "./ledger.ts";
import type { PriceTable } from "./prices.ts";

const usage = { input: 60, output: 20, reasoning: 5, cacheRead: 10, cacheWrite: 0 };
const turn = { id: "turn-1", seq: 1 };
const bad = (code: string) => expect.objectContaining({ code });

async function open(budgets: Budgets = {}, prices: PriceTable = { m: { input: 1, output: 2 } }) {
  const probe = await probeHost();
  const settings = { budgets, prices, session: "s1" };
  const make = () =>
    new Ledger(probe.host, {
      budgets: () => settings.budgets,
      prices: () => settings.prices,
      session: () => settings.session,
    });
  return { ...probe, settings, ledger: make(), make };
}

function call(id: string, more: Partial<NewCall> = {}): NewCall {
  const estimate = { input: 60, output: 40 };
  return { id, turn, step: 0, attempt: 1, purpose: "turn", model: "p/m", modelIndex: 0, estimate, ...more };
}

test("a call is booked at its worst, then settled at what it used", async () => {
  const { ledger, clock } = await open();
  expect(ledger.reserve(call("a", { requestDigest: "d" }))).toEqual({
    ...{ ok: true, id: "a", seq: 1, tokens: 100, cost: 0.00014 },
  });
  expect(ledger.totals({ turn: "turn-1" })).toMatchObject({
    calls: 1,
    tokens: 0,
    reservedTokens: 100,
    reservedCost: 0.00014,
  });
  const [open0] = ledger.list();
  expect(open0).toMatchObject({ status: "open", tokens: 0, cost: null, startedAt: clock.now(), settledAt: null });

  await clock.advance(50);
  expect(ledger.settle("a", { outcome: "ok", usage })).toBe(true);
  const sums = { calls: 1, unpriced: 0, tokens: 80, ...usage, cost: 0.0001, reservedTokens: 0, reservedCost: 0 };
  for (const scope of [{ turn: "turn-1" }, { session: "s1" }, "agent"] as const)
    expect(ledger.totals(scope)).toEqual(sums);
  expect(ledger.totals({ turn: "other" })).toMatchObject({ calls: 0, tokens: 0 });
  expect(ledger.list()).toEqual([
    {
      seq: 1,
      id: "a",
      session: "s1",
      turnId: "turn-1",
      turnSeq: 1,
      step: 0,
      attempt: 1,
      purpose: "turn",
      model: "p/m",
      modelIndex: 0,
      status: "ok",
      reservedTokens: 100,
      reservedCost: 0.00014,
      ...usage,
      tokens: 80,
      cost: 0.0001,
      estimated: false,
      unpriced: false,
      error: null,
      errorClass: null,
      retryAfterMs: null,
      requestDigest: "d",
      startedAt: clock.now() - 50,
      settledAt: clock.now(),
    },
  ]);
});

test("settling twice, or what is not there, changes nothing", async () => {
  const { ledger } = await open();
  ledger.reserve(call("a"));
  ledger.settle("a", { outcome: "error", usage: undefined, errorClass: "fatal", error: "no" });
  const [before, sums] = [ledger.list(), ledger.totals("agent")];
  expect(ledger.settle("a", { outcome: "ok", usage })).toBe(false);
  expect(ledger.settle("nobody", { outcome: "ok", usage })).toBe(false);
  expect([ledger.list(), ledger.totals("agent")]).toEqual([before, sums]);
});

test.each([
  ["ok without usage", { outcome: "ok" }, 100],
  ["cut", { outcome: "cut" }, 100],
  ["cut with what it can have used", { outcome: "cut", usage }, 80],
  ["cut before it was sent", { outcome: "cut", usage: { ...usage, input: 0, output: 0 } }, 0],
  ["usage that is none", { outcome: "ok", usage: { ...usage, input: Number.NaN } }, 100],
  ["an error in the middle", { outcome: "error", errorClass: "transient" }, 100],
  ["an error nobody knows", { outcome: "error" }, 100],
  ["an error that was a refusal", { outcome: "error", errorClass: "transient", refused: true }, 0],
  ["too long", { outcome: "error", errorClass: "context_overflow" }, 0],
  ["too often", { outcome: "error", errorClass: "rate_limit" }, 0],
  ["refused", { outcome: "error", errorClass: "fatal" }, 0],
  ["fatal in the middle", { outcome: "error", errorClass: "fatal", refused: false }, 100],
  ["an error with usage", { outcome: "error", errorClass: "fatal", usage }, 80],
] as const)("%s: what is charged", async (_what, result, tokens) => {
  const { ledger } = await open();
  ledger.reserve(call("a"));
  ledger.settle("a", { usage: undefined, ...result });
  const [entry] = ledger.list();
  const cost = { 0: 0, 80: 0.0001, 100: 0.00014 }[tokens];
  expect(entry).toMatchObject({ tokens, cost, estimated: tokens === 100, status: result.outcome });
  expect(ledger.totals("agent")).toMatchObject({ tokens, cost, reservedTokens: 0, reservedCost: 0 });
});

test("what an earlier life left open is cut and charged in full", async () => {
  const { ledger, make, commits } = await open();
  expect(ledger.closeOpen()).toBe(0);
  ledger.reserve(call("a"));
  ledger.reserve(call("b"));
  ledger.settle("a", { outcome: "ok", usage });
  const next = make();
  expect(next.closeOpen()).toBe(1);
  const before = commits();
  expect(next.closeOpen()).toBe(0);
  expect(commits()).toBe(before);
  expect(next.list().map(({ id, status, tokens }) => [id, status, tokens])).toEqual([
    ["b", "cut", 100],
    ["a", "ok", 80],
  ]);
  expect(next.totals("agent")).toMatchObject({ calls: 2, tokens: 180, reservedTokens: 0 });
});

test("the attempts of a step are the facts for the next one", async () => {
  const { ledger } = await open();
  ledger.reserve(call("a"));
  ledger.settle("a", {
    outcome: "error",
    usage: undefined,
    errorClass: "rate_limit",
    retryAfterMs: 2500.5,
    error: "slow",
  });
  ledger.reserve(call("c", { purpose: "compaction" }));
  ledger.reserve(call("s", { step: 1 }));
  ledger.reserve(call("b", { attempt: 2, modelIndex: 1, requestDigest: "d" }));
  const attempts = ledger.attempts(1, 0);
  expect(attempts).toMatchObject([
    { id: "a", status: "error", errorClass: "rate_limit", retryAfterMs: 2501, error: "slow", modelIndex: 0 },
    { id: "b", status: "open", errorClass: null, settledAt: null, requestDigest: "d", modelIndex: 1 },
  ]);
  expect(ledger.attempts(1, 0, "compaction").map(({ id }) => id)).toEqual(["c"]);
  expect(ledger.attempts(2, 0)).toEqual([]);
});

test("a call that does not fit is refused and leaves no trace", async () => {
  const { ledger, settings, commits } = await open({ turn: { maxTokens: 250 } });
  ledger.reserve(call("a"));
  ledger.reserve(call("b"));
  const before = commits();
  const over = {
    ok: false,
    over: "turn",
    kind: "hard",
    what: "tokens",
    limit: 250,
    used: 200,
    needed: 100,
    waits: true,
  };
  // Calls under way count in full.
  expect(ledger.reserve(call("c"))).toEqual(over);
  expect(commits()).toBe(before);
  expect(ledger.reserve(call("d", { turn: { id: "turn-2", seq: 2 } }))).toMatchObject({ ok: true });
  expect(ledger.reserve(call("e", { turn: undefined }))).toMatchObject({ ok: true });
  // What was not used is free again.
  ledger.settle("a", { outcome: "ok", usage: { ...usage, input: 20, output: 10 } });
  expect(ledger.reserve(call("c"))).toMatchObject({ ok: true });

  settings.budgets = { session: { maxTokens: 300 } };
  expect(ledger.reserve(call("f"))).toMatchObject({ over: "session", used: 430 });
  settings.session = "s2";
  expect(ledger.reserve(call("f"))).toMatchObject({ ok: true });
  settings.budgets = { agent: { maxCost: 0.0005 } };
  expect(ledger.reserve(call("g"))).toMatchObject({ over: "agent", what: "cost", limit: 0.0005 });
});

test("a recovered turn has to pay for what was cut", async () => {
  const { ledger, make } = await open({ turn: { maxTokens: 150 } });
  ledger.reserve(call("a"));
  const next = make();
  next.closeOpen();
  expect(next.reserve(call("b"))).toMatchObject({ ok: false, used: 100 });
});

test("grants raise limits, answer the soft question, and outlive the process", async () => {
  const { ledger, make } = await open({ turn: { maxTokens: 200, soft: 0.5 } });
  ledger.reserve(call("a"));
  expect(ledger.reserve(call("b"))).toMatchObject({ ok: false, kind: "soft", limit: 100, used: 100 });
  expect(ledger.reserve(call("b"))).toMatchObject({ ok: false, kind: "soft" });
  ledger.grant("turn", "turn-1", {});
  expect(make().reserve(call("b"))).toMatchObject({ ok: true });
  expect(ledger.reserve(call("c"))).toMatchObject({ ok: false, kind: "hard", limit: 200 });
  ledger.grant("turn", "turn-1", { tokens: 60 });
  ledger.grant("turn", "turn-1", { tokens: 40 });
  ledger.grant("turn", "turn-2", { tokens: 1000 });
  expect(make().reserve(call("c"))).toMatchObject({ ok: true });
  expect(ledger.reserve(call("d"))).toMatchObject({ ok: false, kind: "hard", limit: 300 });
  for (const amount of [{ tokens: -1 }, { cost: Number.NaN }, { tokens: Infinity }]) {
    expect(() => ledger.grant("agent", "", amount)).toThrow(bad("bad_input"));
  }
});

test("a grant for the agent needs no key", async () => {
  const { ledger } = await open({ agent: { maxCost: 0.0001 } });
  expect(ledger.reserve(call("a"))).toMatchObject({ ok: false, over: "agent" });
  ledger.grant("agent", "whatever", { cost: 0.00004 });
  expect(ledger.reserve(call("a"))).toMatchObject({ ok: true });
});

test("a model without a price is never free: a budget in dollars refuses it", async () => {
  const { ledger, settings } = await open({ session: { maxTokens: 1000 } });
  expect(ledger.reserve(call("a", { model: "p/new" }))).toEqual({
    ...{ ok: true, id: "a", seq: 1, tokens: 100, cost: null },
  });
  ledger.settle("a", { outcome: "ok", usage });
  expect(ledger.list()).toMatchObject([{ cost: null, reservedCost: null, unpriced: true, tokens: 80 }]);
  expect(ledger.totals("agent")).toMatchObject({ calls: 1, unpriced: 1, cost: 0, tokens: 80 });
  settings.budgets = { agent: { maxCost: 100 } };
  expect(() => ledger.reserve(call("b", { model: "p/new" }))).toThrow(bad("bad_config"));
  expect(() => ledger.reserve(call("b", { model: "p/new" }))).toThrow(/p\/new.*price table/);
  expect(ledger.totals("agent").calls).toBe(1);
});

test("a call costs what it was reserved at, whatever becomes of the table", async () => {
  const { ledger, settings } = await open();
  ledger.reserve(call("a"));
  settings.prices = () => {
    throw new Error("no table any more");
  };
  ledger.settle("a", { outcome: "ok", usage });
  expect(ledger.totals("agent").cost).toBe(0.0001);
  expect(() => ledger.reserve(call("b"))).toThrow("no table any more");
});

test("bad arguments write nothing", async () => {
  const { ledger, settings } = await open();
  ledger.reserve(call("a"));
  const before = [ledger.list(), ledger.totals("agent")];
  for (const input of [Number.NaN, -1, Infinity]) {
    expect(() => ledger.reserve(call("b", { estimate: { input, output: 1 } }))).toThrow(bad("bad_input"));
  }
  expect(() => ledger.reserve(call("a"))).toThrow(bad("sql_failed"));
  settings.budgets = { turn: { maxTokens: -1 } };
  expect(() => ledger.reserve(call("b"))).toThrow(bad("bad_config"));
  expect([ledger.list(), ledger.totals("agent")]).toEqual(before);
});

test("calls are listed newest first, in pages, by what they were for", async () => {
  const { ledger } = await open();
  for (let at = 1; at <= 5; at++) {
    ledger.reserve(call(`c${at}`, { session: at % 2 === 0 ? "s2" : "s1", purpose: at === 5 ? "title" : "turn" }));
  }
  ledger.reserve(call("free", { turn: undefined, purpose: "compaction" }));
  const ids = (filter: Parameters<Ledger["list"]>[0]) => ledger.list(filter).map(({ id }) => id);
  expect(ids({ session: "s1" })).toEqual(["free", "c5", "c3", "c1"]);
  expect(ids({ session: "s1", purpose: "turn" })).toEqual(["c3", "c1"]);
  expect(ids({ turn: "turn-1", limit: 2 })).toEqual(["c5", "c4"]);
  expect(ids({ turn: "turn-1", limit: 2, before: 4 })).toEqual(["c3", "c2"]);
  expect(ids({ limit: 0 })).toEqual([]);
  expect(ids({ limit: 1e9 })).toHaveLength(6);
});

test("erasing a session takes all of it, and gives no money back", async () => {
  const { ledger, host } = await open({ agent: { maxTokens: 250 } });
  ledger.reserve(call("a"));
  ledger.settle("a", { outcome: "error", usage, error: "private" });
  ledger.reserve(call("b"));
  ledger.grant("session", "s1", { tokens: 5 });
  ledger.grant("turn", "turn-1", { tokens: 5 });
  ledger.reserve(call("c", { session: "s2", turn: undefined, estimate: { input: 10, output: 0 } }));
  ledger.remove("s1");
  expect(ledger.list().map(({ id }) => id)).toEqual(["c"]);
  expect(ledger.totals({ session: "s1" }).calls).toBe(0);
  expect(ledger.totals({ turn: "turn-1" }).calls).toBe(0);
  expect(host.sql("SELECT * FROM perdure_budget_grant")).toEqual([]);
  // 80 of the one, all 100 of the one that was under way, and the other session's 10.
  expect(ledger.totals("agent")).toMatchObject({ calls: 3, tokens: 180, reservedTokens: 10 });
  expect(ledger.reserve(call("d"))).toMatchObject({ ok: false, over: "agent", used: 190 });
  expect(ledger.settle("b", { outcome: "ok", usage })).toBe(false);
  expect(ledger.totals("agent").tokens).toBe(180);
});

test("a reservation that is taken back was never there; one that has ended stays", async () => {
  const { ledger } = await open({ agent: { maxTokens: 150 } });
  ledger.reserve(call("a"));
  expect(ledger.knows("a")).toBe(true);
  expect(ledger.reserve(call("b"))).toMatchObject({ ok: false });
  ledger.release("a");
  ledger.release("a");
  expect(ledger.knows("a")).toBe(false);
  for (const scope of [{ turn: "turn-1" }, { session: "s1" }, "agent"] as const)
    expect(ledger.totals(scope)).toMatchObject({ calls: 0, unpriced: 0, reservedTokens: 0, reservedCost: 0 });
  expect(ledger.reserve(call("b"))).toMatchObject({ ok: true });
  ledger.settle("b", { outcome: "ok", usage });
  ledger.release("b");
  expect(ledger.totals("agent")).toMatchObject({ calls: 1, tokens: 80 });
});

test("calls whose end others tell stay open at the start of a life, until nobody will", async () => {
  const { ledger, make } = await open();
  ledger.reserve(call("own"));
  ledger.reserve(call("run/a", { purpose: "agent-tool", turn: { id: "turn-1" } }));
  ledger.reserve(call("run/b", { purpose: "agent-tool", turn: { id: "turn-1" } }));
  const next = make();
  expect(next.closeOpen(({ purpose }) => purpose === "agent-tool")).toBe(1);
  // They are no steps of the turn, so its end does not end them.
  next.closeTurn(1);
  expect(next.attempts(1, 0).map(({ id }) => id)).toEqual(["own"]);
  expect(next.totals({ turn: "turn-1" })).toMatchObject({ calls: 3, tokens: 100, reservedTokens: 200 });
  next.settle("run/a", { outcome: "ok", usage });
  expect(next.closeCalls("run/")).toBe(1);
  expect(next.totals({ turn: "turn-1" })).toMatchObject({ calls: 3, tokens: 280, reservedTokens: 0 });
});

test("what ended in one book ends the same in another", async () => {
  const [here, there] = [await open(), await open()];
  const results: CallResult[] = [
    { outcome: "ok", usage },
    { outcome: "ok", usage: undefined },
    { outcome: "cut", usage: undefined },
    { outcome: "error", usage: undefined, errorClass: "rate_limit", error: "slow down" },
    { outcome: "error", usage: undefined, errorClass: "transient" },
    { outcome: "error", usage: undefined, errorClass: "fatal", refused: false },
    { outcome: "error", usage },
  ];
  for (const [i, result] of results.entries()) {
    for (const { ledger } of [here, there]) ledger.reserve(call(`c${i}`));
    here.ledger.settle(`c${i}`, result);
  }
  for (const { id, result } of here.ledger.endedCalls(1)) there.ledger.settle(id, result);
  expect(there.ledger.list()).toEqual(here.ledger.list());
  expect(there.ledger.totals("agent")).toEqual(here.ledger.totals("agent"));
});

test("a price that the caller knows counts where the table has none", async () => {
  const { ledger } = await open({ agent: { maxCost: 1 } });
  const price = { input: 10, output: 10 };
  expect(ledger.reserve(call("a", { model: "p/other", price }))).toMatchObject({ ok: true, cost: 0.001 });
  expect(ledger.reserve(call("b", { price }))).toMatchObject({ ok: true, cost: 0.00014 });
  expect(() => ledger.reserve(call("c", { model: "p/other" }))).toThrow(bad("bad_config"));
  expect(ledger.priceOf("p/m")).toEqual({ input: 1, output: 2 });
  expect(ledger.priceOf("p/other")).toBeUndefined();
});
