// The running sums are the sums of the rows, whatever happens in whatever order.
import { expect, test } from "vitest";
import { probeHost } from "../../test/chat/probe-host.ts";
import type { AgentHost, SqlRow } from "../port.ts";
import { Ledger } from "./ledger.ts";
import type { UsageTotals } from "./ledger.ts";

const NANO = 1_000_000_000;
const RUNS = 15;
const STEPS = 60;

/** A small generator with a seed: a failure names its run. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function sumOfRows(host: AgentHost, where: string, ...args: string[]): Record<string, number> {
  const [row] = host.sql<Record<string, number>>(
    `SELECT count(*) AS calls, coalesce(sum(price IS NULL), 0) AS unpriced, coalesce(sum(tokens), 0) AS tokens,
       coalesce(sum(input), 0) AS input, coalesce(sum(output), 0) AS output, coalesce(sum(reasoning), 0) AS reasoning,
       coalesce(sum(cache_read), 0) AS cacheRead, coalesce(sum(cache_write), 0) AS cacheWrite,
       coalesce(sum(cost), 0) AS cost,
       coalesce(sum(CASE WHEN status = 'open' THEN reserved_tokens END), 0) AS reservedTokens,
       coalesce(sum(CASE WHEN status = 'open' THEN reserved_cost END), 0) AS reservedCost
     FROM perdure_usage ${where}`,
    ...args,
  );
  if (row === undefined) throw new Error("An aggregate has a row.");
  return row;
}

const inNano = (totals: UsageTotals) => ({
  ...totals,
  cost: Math.round(totals.cost * NANO),
  reservedCost: Math.round(totals.reservedCost * NANO),
});

test.each(Array.from({ length: RUNS }, (_, run) => run + 1))("run %i", async (seed) => {
  const random = randomFrom(seed);
  const pick = <T>(from: readonly T[]): T => {
    const one = from[random(from.length)];
    if (one === undefined) throw new Error("There is nothing to pick from.");
    return one;
  };
  const { host, clock } = await probeHost();
  const ledger = new Ledger(host, {
    budgets: () => (random(3) === 0 ? { turn: { maxTokens: 5000, soft: 0.9 } } : {}),
    prices: () => ({ m1: { input: 0.1, output: 3.3 }, m2: { input: 7.77, output: 1 / 3, cacheRead: 0.0028 } }),
    session: () => "s1",
  });
  let made = 0;
  /** What was erased stays in the sum of the agent. */
  let erased: Record<string, number> = {};
  const ids: string[] = [];

  const usage = () => {
    const [input, output] = [random(900), random(300)];
    return {
      input,
      output,
      reasoning: random(output + 1),
      cacheRead: random(input + 1),
      cacheWrite: random(input + 1),
    };
  };
  const step = (): void => {
    switch (random(12)) {
      case 0:
        ledger.closeOpen();
        return;
      case 1: {
        if (random(4) !== 0) return;
        const session = pick(["s1", "s2"]);
        // Open calls are charged in full before they go.
        for (const row of ledger.list({ session, limit: 1000 })) {
          if (row.status === "open") ledger.settle(row.id, { outcome: "cut", usage: undefined });
        }
        const sums = sumOfRows(host, "WHERE session = ?", session);
        ledger.remove(session);
        erased = Object.fromEntries(Object.entries(sums).map(([key, value]) => [key, value + (erased[key] ?? 0)]));
        return;
      }
      case 2:
      case 3:
      case 4:
      case 5:
      case 6: {
        if (ids.length === 0) return;
        ledger.settle(pick(ids), {
          outcome: pick(["ok", "error", "cut"]),
          usage: random(3) === 0 ? undefined : usage(),
          errorClass: pick(["fatal", "transient", "unknown", "rate_limit"]),
        });
        return;
      }
      default: {
        const id = `call-${++made}`;
        const number = random(4);
        const reserved = ledger.reserve({
          id,
          // A turn belongs to one session.
          turn: number === 0 ? undefined : { id: `turn-${number}`, seq: number },
          session: number === 3 ? "s2" : "s1",
          step: random(3),
          attempt: 1,
          purpose: pick(["turn", "compaction", "title"]),
          model: pick(["p/m1", "p/m2", "p/unpriced"]),
          modelIndex: 0,
          estimate: { input: random(1000), output: random(500) },
        });
        if (reserved.ok) ids.push(id);
      }
    }
  };
  const check = (): void => {
    const rows = sumOfRows(host, "");
    const all = Object.fromEntries(Object.entries(rows).map(([key, value]) => [key, value + (erased[key] ?? 0)]));
    expect(inNano(ledger.totals("agent"))).toEqual(all);
    for (const session of ["s1", "s2"]) {
      expect(inNano(ledger.totals({ session }))).toEqual(sumOfRows(host, "WHERE session = ?", session));
    }
    for (const turn of ["turn-1", "turn-2", "turn-3"]) {
      expect(inNano(ledger.totals({ turn }))).toEqual(sumOfRows(host, "WHERE turn_id = ?", turn));
    }
  };
  const everything = (): SqlRow[][] => [
    host.sql("SELECT * FROM perdure_usage ORDER BY seq"),
    host.sql("SELECT * FROM perdure_usage_total ORDER BY scope, key"),
  ];

  const undone = (): void => {
    const before = everything();
    const kept = { erased, ids: ids.length };
    expect(() =>
      host.tx(() => {
        step();
        step();
        throw new Error("undo");
      }),
    ).toThrow("undo");
    erased = kept.erased;
    ids.length = kept.ids;
    expect(everything()).toEqual(before);
  };

  for (let at = 0; at < STEPS; at++) {
    if (random(4) === 0) undone();
    else step();
    await clock.advance(1);
    check();
  }
  expect(made).toBeGreaterThan(0);
});
