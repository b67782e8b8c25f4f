import { expect, test } from "vitest";
import { thinned } from "../../crash/drive.ts";
import { ANSWER, BEGINNING, END } from "./desk.ts";
import { isAnswer, type Outcome, type Plan, type Role, runSession } from "./drive-session.ts";
import { type Kind, startPlace } from "./place.ts";

/** All points of one of them, on a busy machine. */
const MATRIX_MS = 900_000;

const roles: readonly Role[] = ["agent", "tools", "server"];

/** Each backend with one of the ways in which an answer can wait for its tools. */
const matrix = (
  [
    ["perdure", "hold"],
    ["durable-streams", "suspend"],
  ] as const
).flatMap(([kind, toolMode]) => roles.map((role) => [kind, role, toolMode] as const));

test.each(matrix)(
  "%s: the %s is killed after each of its writes, and the session comes to its end all the same (tools: %s)",
  async (kind: Kind, role: Role, toolMode: Plan["toolMode"]) => {
    const place = await startPlace(kind);
    try {
      const reference = await runSession(place, { toolMode });
      expectWhole(reference, 0);
      const points = thinned(7, roles.indexOf(role) + 1)(reference.commits[role]);
      expect(points.length).toBeGreaterThan(0);
      let killed = 0;
      for (const at of points) {
        const outcome = await runSession(place, { toolMode, kill: { role, at } });
        killed += Number(outcome.killed);
        expectWhole(outcome, outcome.killed ? 1 : 0, `killed after ${at}`);
      }
      expect(killed).toBeGreaterThan(0);
    } finally {
      await place.stop();
    }
  },
  MATRIX_MS,
);

/** What must hold however often somebody was killed. */
function expectWhole(outcome: Outcome, kills: number, when = "nobody killed"): void {
  const { messages, chunks, toolCalls, executions } = outcome;
  // The answer is there once, and the question is answered.
  const answers = messages.filter(isAnswer);
  expect(
    answers.map(({ content }) => content),
    when,
  ).toEqual([ANSWER]);
  expect(
    messages.filter(({ processed }) => !processed),
    when,
  ).toEqual([]);
  // Its chunks are complete and in order.
  const mine = chunks.filter(({ generationId }) => generationId === answers[0]?.generationId);
  const inOrder = mine.toSorted((a, b) => a.index - b.index);
  expect(
    inOrder.map(({ index }) => index),
    when,
  ).toEqual(mine.map((_, index) => index));
  expect(textOf(inOrder).endsWith(END.join("")), `${when}: ${textOf(inOrder)}`).toBe(true);
  expect(
    inOrder.filter(({ isFinal }) => isFinal === true).map(({ index }) => index),
    when,
  ).toEqual([mine.length - 1]);
  // Every call has its result. One that had it was not begun again, and one was begun twice only if it was cut.
  expect(
    toolCalls.map(({ status }) => status).filter((status) => status !== "completed" && status !== "cancelled"),
    when,
  ).toEqual([]);
  for (const { id, name, status, approved } of executions) {
    expect(["pending", "executing"], when).toContain(status);
    expect(approved, when).toBe(name === "print" ? "approved" : "none");
    expect(executions.filter((one) => one.id === id).length, when).toBeLessThanOrEqual(1 + kills);
  }
  for (const name of ["lookUp", "print"]) {
    const ran = executions.filter((one) => one.name === name).length;
    expect(ran, `${when}: ${name}`).toBeGreaterThanOrEqual(1);
    expect(ran, `${when}: ${name}`).toBeLessThanOrEqual(1 + kills);
  }
  // Who comes late finds what those have seen who were there.
  expect(outcome.found, when).toEqual(outcome.seen);
  expect(outcome.live, when).toBeGreaterThan(BEGINNING.length);
}

function textOf(chunks: Outcome["chunks"]): string {
  return chunks.map(({ type, content }) => (type === "text" ? content : "")).join("");
}
