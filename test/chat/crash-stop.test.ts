import { crashMatrix } from "perdure/testing";
import type { CrashOutcome, Fact, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { env, expectCovered, MATRIX_MS } from "../crash/drive.ts";
import { CLEAR, textIn, user } from "./client.ts";
import { connect, type Driver, expectKept, lookAt, type Result, resultOf } from "./crash-drive.ts";

const program = new URL("./crash-program.ts", import.meta.url);
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

const furtherCalls = ({ after }: CrashOutcome<Result>): number => after.facts.filter(({ type }) => type === "asked").length;

test("stop, killed after every commit: once it is stored there is no further call", { timeout: MATRIX_MS }, async () => {
  let stoppedButOpen = 0;
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
      if (outcome.before.lives.length === 0) return;
      const turns = foundTurns(outcome.after.facts) ?? [];
      const wanted = turns.filter(({ status, cancelled }) => cancelled === 0 && (status === "accepted" || status === "running"));
      expect(furtherCalls(outcome)).toBe(wanted.length);
      stoppedButOpen += turns.filter(({ status, cancelled }) => cancelled === 1 && status === "running").length;
      const { messages } = outcome.after.result;
      if (messages[1]?.role === "assistant") expect(answerTo("hang").startsWith(textIn(messages[1]))).toBe(true);
      const ended = outcome.before.facts.filter(({ type, request }) => type === "done" && request === "r1");
      if (ended.length > 0) expect(furtherCalls(outcome)).toBe(0);
    },
    slack: 6,
  });
  expectCovered(matrix, 6);
  expect(matrix.reference.result.calls).toBe(1);
  expect(stoppedButOpen, "the moment between the wish and its deed was not met").toBeGreaterThan(0);
});

test("clear, killed after every commit: what was there is gone for good, and what comes after it is answered", { timeout: MATRIX_MS }, async () => {
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
      const { messages } = outcome.after.result;
      const ids = messages.map(({ id }) => id);
      if (outcome.before.facts.some(({ type }) => type === "cleared")) {
        gone++;
        expect(ids).not.toContain("u1");
        expect(ids).not.toContain("u2");
      }
      // All or nothing: never an answer without its question, or half of one.
      expect(messages.map(({ role }) => role)).toEqual(messages.map((_, at) => (at % 2 === 0 ? "user" : "assistant")));
      for (let at = 0; at < messages.length; at += 2) expect(textIn(messages[at + 1])).toBe(answerTo(textIn(messages[at])));
      if (outcome.before.lives.length > 0) expect(furtherCalls(outcome)).toBeLessThanOrEqual(messages.length / 2);
    },
    slack: 6,
  });
  expectCovered(matrix, 4);
  expect(matrix.reference.result.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
  expect(gone, "points behind the clear").toBeGreaterThan(1);
});

test("regenerate, killed after every commit: one answer, the old one or the new one, whole", { timeout: MATRIX_MS }, async () => {
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
      if (messages.length === 0) return expect(outcome.n).toBeLessThan(4);
      expect(messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
      expect(textIn(messages[1])).toBe(answerTo("first"));
    },
    slack: 6,
  });
  expectCovered(matrix, 8);
  expect(matrix.reference.result.calls).toBe(2);
});
