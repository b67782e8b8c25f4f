import { crashMatrix, type CrashOutcome, type CrashScenario, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, env, every, expectCovered, MATRIX_MS, ofType, thinned } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import type { CrashCommand, CrashLook } from "./crash-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

function scenario(type: CrashCommand["type"]): CrashScenario<CrashLook> {
  return {
    program,
    env,
    async finish(child: Program) {
      await child.send({ type } satisfies CrashCommand);
      return (await child.waitFor((fact) => fact.type === "look")) as CrashLook;
    },
  };
}

/** The ids of answers are given by chance. */
const nameless = (text: string) => text.replace(/\bmsg_[\w-]+/g, "an answer");

/** What compactions say that count, or counted. */
function ended({ compactions }: CrashLook): string[] {
  return compactions
    .filter(({ status }) => status !== "failed")
    .map(({ kind, status, trigger: told, parts, summary, carried, inEffect }) => {
      // What a provider counted is known only to the life that asked it; another one estimates.
      const trigger = told === "usage" ? "before" : told;
      // Without estimates: a call that was cut teaches nothing about what tokens are.
      return nameless(JSON.stringify({ kind, status, trigger, parts, summary, carried, inEffect }));
    });
}

/** As it was without a kill: what is stored, what was sent, and what stands for the older messages. */
function check(outcome: CrashOutcome<CrashLook>): void {
  const { after, before, reference } = outcome;
  const { result } = after;
  const kills = before.lives.length;
  expect(ofType(allFacts(outcome), "failed")).toEqual([]);
  expect(result.messages).toEqual(reference.result.messages);
  expect(result.sessions).toEqual(reference.result.sessions);
  expect(ended(result)).toEqual(ended(reference.result));
  // What was cut has failed, and says so; nothing is left open.
  const failed = result.compactions.filter(({ status }) => status === "failed");
  expect(failed.length).toBeLessThanOrEqual(kills);
  for (const { error } of failed) expect(error).toMatch(/cut off|stopped/);
  expect(result.open).toBe(0);
  // The same bytes, whatever life sent them.
  const { sent, tools } = reference.result;
  expect(result.tools).toBe(tools);
  expect(result.sent.slice(0, sent.length).map(nameless)).toEqual(sent.map(nameless));
  // An answer that was cut off while it was being written is sent with the request to go on with it.
  expect([sent.length, sent.length + 2]).toContain(result.sent.length);
  // Only what was cut is asked again; a summary that is made in two pieces, from the first.
  expect(result.answers).toBeLessThanOrEqual(reference.result.answers + kills);
  expect(result.summaries).toBeLessThanOrEqual(reference.result.summaries * (1 + kills));
  expect(result.ran).toBeLessThanOrEqual(reference.result.ran + kills);
}

test(
  "a turn that grows too long, and is made shorter between two of its calls: killed after every commit",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix({ ...scenario("overflow"), check, slack: 8 });
    expectCovered(matrix, 12);
    const { compactions, summaries, answers, ran, sent } = matrix.reference.result;
    expect(compactions).toMatchObject([{ status: "done", trigger: "before", parts: null, inEffect: true }]);
    expect({ summaries, answers, ran }).toEqual({ summaries: 2, answers: 2, ran: 1 });
    expect(sent.join()).toContain("code = K77");
  },
);

test("an answer that is cut between two of its steps: killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario("split"), check, points: thinned(5, 3), slack: 8 });
  expectCovered(matrix, 11, 5);
  const { compactions, ran, sent } = matrix.reference.result;
  expect(compactions).toMatchObject([{ status: "done", parts: expect.any(Number) as number }]);
  expect(ran).toBe(3);
  expect(sent.join()).toContain("found = F12");
});

test("the same, killed again in later lives", { timeout: MATRIX_MS }, async () => {
  const again = { again: [1, 2], points: every(3, 2), slack: 8 };
  const { killed } = await crashMatrix({ ...scenario("split"), check, ...again });
  expect(killed.length).toBeGreaterThan(1);
});

test("a summary that somebody asks for: killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario("manual"), check, slack: 8 });
  expectCovered(matrix, 6);
  expect(matrix.reference.result.compactions).toMatchObject([{ status: "done", trigger: "manual", inEffect: true }]);
});

test("a summary that is taken back: killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario("undo"), check, points: thinned(6), slack: 8 });
  expectCovered(matrix, 12, 6);
  const { compactions, sent } = matrix.reference.result;
  expect(compactions).toMatchObject([{ status: "undone", inEffect: false }]);
  expect(sent.join()).not.toContain("Note of the system");
});

test("a fork of a conversation with a summary: killed after every commit", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix({ ...scenario("fork"), check, points: thinned(6, 4), slack: 8 });
  expectCovered(matrix, 12, 6);
  const { sessions, sent } = matrix.reference.result;
  expect(sessions.toSorted()).toEqual(["fork", "main"]);
  expect(sent.join()).toContain("Note of the system");
});
