import type { UIMessageChunk } from "ai";
import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Fact, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { env, expectCovered, MATRIX_MS, thinned } from "../crash/drive.ts";
import { withLives } from "../crash/lives.ts";
import { CLEAR, textIn, user } from "./client.ts";
import { connect, type Driver, expectKept, logOf, type Look, lookAt, type Result, resultOf } from "./crash-drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));
const answerTo = (text: string): string => `You said: ${text}. Well then. Done.`;

const finish = async (child: Program): Promise<Result> => resultOf(await lookAt(child), child.dir);

/** A turn of which something was seen. */
async function begin(child: Program, text: string): Promise<Driver> {
  const driver = await connect(child);
  driver.request("r1", [user("u1", text)]);
  await driver.frame(({ body }) => body?.includes("text-delta") === true);
  return driver;
}

interface StoredTurn {
  readonly id: string;
  readonly status: string;
  readonly cancelled: number;
}

/** The turns as the last life found them when it woke; undefined when nobody woke. */
function foundTurns(facts: readonly Fact[]): readonly StoredTurn[] | undefined {
  const woken = facts.find(({ type }) => type === "woken");
  return woken === undefined ? undefined : (woken.turns as readonly StoredTurn[]);
}

const furtherCalls = ({ after }: CrashOutcome<Result>): number =>
  after.facts.filter(({ type }) => type === "asked").length;

/** Only what nobody stopped is carried on. */
function checkStopped(outcome: CrashOutcome<Result>): void {
  if (outcome.before.lives.length === 0) return;
  const turns = foundTurns(outcome.after.facts) ?? [];
  const isOpen = ({ status }: StoredTurn) => status === "accepted" || status === "running";
  const wanted = turns.filter((turn) => turn.cancelled === 0 && isOpen(turn));
  expect(furtherCalls(outcome)).toBe(wanted.length);
  const answers = outcome.after.result.messages.filter(({ role }) => role === "assistant").map((one) => textIn(one));
  const strange = answers.filter((text) => !answerTo("hang").startsWith(text) && text !== answerTo("first"));
  expect(strange).toEqual([]);
  const ended = outcome.before.facts.flatMap(({ type, request }) => (type === "done" ? [request] : []));
  expect(wanted.filter(({ id }) => ended.includes(id))).toEqual([]);
}

/** What was cleared is gone once anybody was told; and never is there half of anything. @returns whether they were. */
function checkCleared(outcome: CrashOutcome<Result>): boolean {
  const { messages } = outcome.after.result;
  const cleared = outcome.before.facts.some(({ type }) => type === "cleared");
  expect(messages.filter(({ id }) => cleared && (id === "u1" || id === "u2"))).toEqual([]);
  expect(messages.map(({ role }) => role)).toEqual(messages.map((_, at) => (at % 2 === 0 ? "user" : "assistant")));
  for (let at = 0; at < messages.length; at += 2) {
    expect(textIn(messages[at + 1])).toBe(answerTo(textIn(messages[at])));
  }
  const calls = outcome.before.lives.length > 0 ? furtherCalls(outcome) : 0;
  expect(calls).toBeLessThanOrEqual(messages.length / 2);
  return cleared;
}

test(
  "stop, killed after every commit: once it is stored there is no further call",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<Result>({
      program,
      env,
      async drive(child) {
        const driver = await begin(child, "hang");
        // Another turn waits behind it: stop is for one, not for all.
        driver.request("r2", [user("u2", "first")]);
        driver.send({ type: "cf_agent_chat_request_cancel", id: "r2" });
        await driver.frame(({ id, done }) => id === "r2" && done === true);
        driver.send({ type: "cf_agent_chat_request_cancel", id: "r1" });
        await driver.frame(({ id, done }) => id === "r1" && done === true);
      },
      finish,
      check(outcome) {
        expectKept(outcome);
        checkStopped(outcome);
      },
      slack: 6,
    });
    expectCovered(matrix, 6);
    expect(matrix.reference.result.calls).toBe(1);
  },
);

test("stop, killed between the wish and its deed: what there was is kept, and the model is not called again", async () => {
  await withLives(program, async ({ live }) => {
    const first = await live(
      async (child) => {
        const driver = await begin(child, "hang");
        driver.send({ type: "cf_agent_chat_request_cancel", id: "r1" });
        await driver.frame(({ id, done }) => id === "r1" && done === true);
      },
      { mayDie: true, env: { KILL_WHEN: "cancelled" } },
    );
    expect(first.facts.filter(({ type }) => type === "done")).toEqual([]);
    const look = Promise.withResolvers<Look>();
    const later = await live(async (child) => look.resolve(await lookAt(child)));
    expect(foundTurns(later.facts)).toEqual([{ id: "r1", status: "running", cancelled: 1 }]);
    expect(later.facts.filter(({ type }) => type === "asked")).toEqual([]);
    const { messages, calls } = await look.promise;
    expect(calls).toBe(1);
    const seen = logOf(first.facts, "r1").map((body) => JSON.parse(body) as UIMessageChunk);
    const text = seen.map((chunk) => (chunk.type === "text-delta" ? chunk.delta : "")).join("");
    expect(textIn(messages[1])).toContain(text);
    expect(messages[1]?.parts.at(-1)).toMatchObject({ state: "done" });
  });
});

test(
  "clear, killed after every commit: what was there is gone for good, and what comes after it is answered",
  { timeout: MATRIX_MS },
  async () => {
    let gone = 0;
    const matrix = await crashMatrix<Result>({
      program,
      env,
      async drive(child) {
        const watcher = await connect(child);
        const driver = await begin(child, "hang");
        driver.request("r2", [user("u2", "first")]);
        child.note({ type: "forgotten", request: "r1" });
        driver.send({ type: CLEAR });
        await watcher.frame(({ type }) => type === CLEAR);
        child.note({ type: "cleared" });
        driver.request("r3", [user("u3", "first")]);
        await driver.frame(({ id, done }) => id === "r3" && done === true);
      },
      finish,
      check(outcome) {
        expectKept(outcome);
        if (checkCleared(outcome)) gone++;
      },
      points: thinned(1),
      slack: 6,
    });
    expectCovered(matrix, 4, 1);
    expect(matrix.reference.result.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(gone, "points behind the clear").toBeGreaterThan(1);
  },
);

test(
  "regenerate, killed after every commit: one answer, the old one or the new one, whole",
  { timeout: MATRIX_MS },
  async () => {
    const matrix = await crashMatrix<Result>({
      program,
      env,
      async drive(child) {
        const driver = await begin(child, "first");
        await driver.frame(({ id, done }) => id === "r1" && done === true);
        child.note({ type: "forgotten", request: "r1" });
        driver.request("again", [user("u1", "first")], "regenerate-message");
        await driver.frame(({ id, done }) => id === "again" && done === true);
      },
      finish,
      check(outcome) {
        expectKept(outcome);
        const { messages } = outcome.after.result;
        // Killed before the question was accepted, there is nothing.
        const shown = messages.map((message) => textIn(message));
        expect(shown).toEqual(outcome.n < 4 && shown.length === 0 ? [] : ["first", answerTo("first")]);
      },
      slack: 6,
    });
    expectCovered(matrix, 6);
    expect(matrix.reference.result.calls).toBe(2);
  },
);
