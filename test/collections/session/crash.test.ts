import { expect, test } from "vitest";
import { isWhole, thinned } from "../../crash/drive.ts";
import { ANSWER, BEGINNING, END } from "./desk.ts";
import { isAnswer, type Outcome, type Plan, type Role, runSession } from "./drive-session.ts";
import { type Kind, kinds, type Place, startPlace } from "./place.ts";

/** All points of a backend, on a busy machine. */
const MATRIX_MS = 1_200_000;

/** So many sessions run at a time, each on a server of its own: most of the time they wait for leases to end. */
const SIDE_BY_SIDE = isWhole ? 4 : 1;

/** Of how many writes one is taken in quick runs. */
const steps: Readonly<Record<Role, number>> = { agent: 13, tools: 7, server: 29 };

/** Each backend with the ways in which an answer can wait for its tools; in quick runs with one of them. */
const matrix: readonly (readonly [Kind, Plan["toolMode"]])[] = isWhole
  ? kinds.flatMap((kind) => [[kind, "hold"] as const, [kind, "suspend"] as const])
  : [
      ["perdure", "hold"],
      ["durable-streams", "suspend"],
    ];

test.each(matrix)(
  "%s: whoever is killed after whichever of its writes, the session comes to its end (tools: %s)",
  async (kind, toolMode) => {
    const places = await Promise.all(Array.from({ length: SIDE_BY_SIDE }, () => startPlace(kind)));
    const [place] = places as [Place];
    try {
      const reference = await runSession(place, { toolMode });
      expectWhole(reference, 0, "nobody killed");
      for (const role of ["agent", "tools", "server"] as const) {
        const points = thinned(steps[role], 3)(reference.commits[role]);
        const todo = [...points];
        let killed = 0;
        const work = async (where: Place) => {
          for (let at = todo.shift(); at !== undefined; at = todo.shift()) {
            const outcome = await runSession(where, { toolMode, kill: { role, at } });
            killed += Number(outcome.killed);
            expectWhole(outcome, Number(outcome.killed), `the ${role} killed after ${at}`);
          }
        };
        await Promise.all(places.map(work));
        // Some runs need fewer writes than the first one did: their last points are never reached.
        expect(killed, `${role}: ${points.join(", ")}`).toBeGreaterThanOrEqual(Math.ceil(points.length / 2));
        if (isWhole) console.log(`${kind}: the ${role} was killed at ${killed} of ${points.length} points`);
      }
    } finally {
      await Promise.all(places.map((one) => one.stop()));
    }
  },
  MATRIX_MS,
);

/** What must hold however often somebody was killed. */
function expectWhole(outcome: Outcome, kills: number, when: string): void {
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
