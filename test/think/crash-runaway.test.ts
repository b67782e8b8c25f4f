import { setTimeout as delay } from "node:timers/promises";
import { crashRun, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { isTerminal, toolParts } from "../../src/message/types.ts";
import { textIn, user } from "../chat/client.ts";
import { connect } from "../chat/crash-drive.ts";
import { MATRIX_MS, ofType } from "../crash/drive.ts";
import { type Past, withLives } from "../crash/lives.ts";
import { ask, expectSums, oneMessage, program, resultIn, type ThinkResult } from "./crash-drive.ts";

/** For how long the host is killed every second. */
const SECONDS = Number(process.env.RUNAWAY_SECONDS ?? 8);
const MAX_ATTEMPTS = 4;
const budgets = {
  turn: { maxTokens: 12_000, maxCost: 0.02 },
  // Enough for about as long as it is killed.
  agent: { maxTokens: SECONDS * 3_500, maxCost: SECONDS * 0.005 },
};
/** What each call really uses. */
const CALL = { tokens: 120, cost: (100 * 1 + 20 * 5) / 1_000_000 };
const ENDS = /^(The budget of this (turn|agent) does not allow another step .*|Given up\.)$/;

const env = {
  BUDGETS: JSON.stringify(budgets),
  MAX_ATTEMPTS: String(MAX_ATTEMPTS),
  SLOW_MODEL: "4",
  REAL_TIME: "1",
};

/** Everything that was used is counted, and all of it is within what was allowed. */
function expectWithin({ ledger, totals, turnTotals, calls }: ThinkResult): void {
  expect(totals.tokens).toBeLessThanOrEqual(budgets.agent.maxTokens);
  expect(totals.cost).toBeLessThanOrEqual(budgets.agent.maxCost);
  for (const { totals: ofTurn } of turnTotals) {
    expect(ofTurn.tokens).toBeLessThanOrEqual(budgets.turn.maxTokens);
    expect(ofTurn.cost).toBeLessThanOrEqual(budgets.turn.maxCost);
  }
  expect(totals.calls).toBe(ledger.length);
  expect(totals.calls).toBeGreaterThanOrEqual(calls);
  expect(totals.tokens).toBeGreaterThanOrEqual(calls * CALL.tokens);
  expect(totals.cost).toBeGreaterThanOrEqual(calls * CALL.cost);
}

/** Every turn has its end, with words that say why, and nothing in the conversation hangs. */
function expectReadable({ messages, turns }: ThinkResult): void {
  for (const { status, error } of turns) {
    expect(status).toBe("error");
    expect(error).toMatch(ENDS);
  }
  expect(messages.flatMap((message) => toolParts(message)).filter((part) => !isTerminal(part))).toEqual([]);
  const texts = messages.flatMap(({ parts }) => parts.filter((part) => part.type === "text"));
  expect(texts.filter(({ state }) => state === "streaming")).toEqual([]);
}

test(
  `a model that never stops, in a host that is killed every second for ${SECONDS} s, stays within its budgets`,
  { timeout: MATRIX_MS + SECONDS * 3_000 },
  async () => {
    await withLives(program, async ({ live }) => {
      const past: Past[] = [];
      for (let life = 0; life < SECONDS; life++) {
        const killed = await live(
          async (child) => {
            const driver = await connect(child);
            driver.request(`r${life}`, [user(`u${life}`, `run away ${life}`)]);
            await delay(1_000);
          },
          { env },
        );
        past.push(killed);
      }
      const last = await live(
        async (child) => {
          // What was accepted comes to its end with nobody connected.
          const found = await resultIn(child);
          expectWithin(found);
          expectReadable(found);
          expectSums(found);
          // And who asks now is told.
          const driver = await connect(child);
          driver.request("last", [user("last", "run away")]);
          const told = await driver.frame(({ id, done }) => id === "last" && done === true);
          expect(told).toMatchObject({ error: true, body: expect.stringMatching(/^The budget of this agent /) });
          expectWithin(await resultIn(child));
        },
        { env },
      );
      past.push(last);
      const facts = past.flatMap((one) => one.facts);
      expect(ofType(facts, "failed")).toEqual([]);
      expect(ofType(facts, "asked").length).toBeGreaterThan(SECONDS);
      // No turn was tried in more lives than it may be.
      for (let life = 0; life < SECONDS; life++) {
        const tried = past.filter((one) => ofType(one.facts, "asked").some((f) => f.userText === `run away ${life}`));
        expect(tried.length).toBeLessThanOrEqual(MAX_ATTEMPTS + 1);
      }
    });
  },
);

test(
  "a turn that is cut in every life is given up, and each of its calls is on the books",
  { timeout: MATRIX_MS },
  async () => {
    const run = await crashRun<ThinkResult>({
      ...oneMessage("hang on", { MAX_ATTEMPTS: "2", HOLD: "0" }),
      drive: (child) => ask(child, "hang on"),
      finish: resultIn,
      deaths: Array.from({ length: 3 }, () => ({ when: (child: Program) => child.waitFor("asked") })),
    });
    expect(run.died).toHaveLength(3);
    const { calls, ledger, turns, messages } = run.result;
    expect(calls).toBe(3);
    expect(ledger.map(({ status, attempt }) => ({ status, attempt }))).toEqual(
      [3, 2, 1].map((attempt) => ({ status: "cut", attempt })),
    );
    expect(turns).toMatchObject([{ status: "error", error: "Given up." }]);
    expect("Well, let me".startsWith(textIn(messages[1]))).toBe(true);
    expectSums(run.result);
  },
);
