import { crashMatrix, crashRun } from "perdure/testing";
import type { CrashOutcome, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { env, every, expectCovered, MATRIX_MS, thinned } from "../crash/drive.ts";
import { textIn, user } from "./client.ts";
import { connect, expectKept, lookAt, type Result, resultOf } from "./crash-drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));
const answerTo = (text: string): string =>
  text === "plain" ? "This is plain text. Done." : `You said: ${text}. Well then. Done.`;

/** Sends messages one right after the other, while another tab looks on. */
async function send(child: Program, texts: readonly string[]): Promise<void> {
  const watcher = await connect(child);
  const driver = await connect(child);
  texts.forEach((text, at) => driver.request(`r${at}`, [user(`u${at}`, text)]));
  await Promise.all(texts.map((_, at) => watcher.frame(({ id, done }) => id === `r${at}` && done === true)));
}

/** Nobody is connected. */
const finish = async (child: Program): Promise<Result> => resultOf(await lookAt(child), child.dir);

/** Whatever anybody was told of is stored and answered, in its place. */
function check(outcome: CrashOutcome<Result>): void {
  expectKept(outcome);
  const { messages } = outcome.after.result;
  const told = new Set(outcome.before.facts.flatMap(({ type, id }) => (type === "told" ? [id] : [])));
  for (const id of told) expect(messages.map((message) => message.id)).toContain(id);
  expect(messages.map(({ role }) => role)).toEqual(messages.map((_, at) => (at % 2 === 0 ? "user" : "assistant")));
  expect(messages.length % 2).toBe(0);
  for (let at = 0; at < messages.length; at += 2) {
    expect(textIn(messages[at + 1])).toBe(answerTo(textIn(messages[at])));
  }
}

test(
  "a second message that is queued, killed after every commit: both are answered, in their order",
  { timeout: MATRIX_MS },
  async () => {
    const texts = ["first", "second"];
    const matrix = await crashMatrix<Result>({
      program,
      env,
      drive: (child) => send(child, texts),
      finish,
      check,
      slack: 10,
    });
    expectCovered(matrix, 6);
    expect(matrix.reference.result.messages.map((message) => textIn(message))).toEqual(
      texts.flatMap((text) => [text, answerTo(text)]),
    );
  },
);

test("a plain text answer, killed after every commit: the whole text, once", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix<Result>({
    program,
    env,
    drive: (child) => send(child, ["plain"]),
    finish,
    check,
    points: thinned(3),
    slack: 6,
  });
  expectCovered(matrix, 4, 3);
  expect(matrix.reference.result.messages[1]?.parts).toEqual([
    { type: "text", text: answerTo("plain"), state: "done" },
  ]);
});

test("killed twice and three times in a row", { timeout: MATRIX_MS }, async () => {
  for (const again of [[2], [3, 2]]) {
    const matrix = await crashMatrix<Result>({
      program,
      env,
      drive: (child) => send(child, ["first", "second"]),
      finish,
      check,
      again,
      points: every(2, again.length),
      slack: 10,
    });
    expect(matrix.killed.length).toBeGreaterThan(2);
  }
});

test(
  "a turn that is cut again and again costs as many calls as it was given tries, then says that it was given up",
  { timeout: MATRIX_MS },
  async () => {
    const run = await crashRun<Result & { readonly ended: unknown }>({
      program,
      env: { ...env, MAX_ATTEMPTS: "2" },
      drive: (child) => send(child, ["hang always"]),
      async finish(child) {
        const result = await finish(child);
        const driver = await connect(child);
        driver.send({ type: "cf_agent_stream_resume_request", probeId: "p" });
        const offer = await driver.frame(({ probeId }) => probeId === "p");
        driver.send({ type: "cf_agent_stream_resume_ack", id: offer.id });
        const { body, error } = await driver.frame(({ id, done }) => id === "r0" && done === true);
        driver.close();
        return { ...result, ended: { body, error } };
      },
      deaths: Array.from({ length: 3 }, () => ({ when: (child: Program) => child.waitFor("asked") })),
    });
    expect(run.died).toHaveLength(3);
    const { calls, messages, ended } = run.result;
    expect(calls).toBe(3);
    expect(ended).toEqual({ body: "Given up.", error: true });
    expect(messages.map(({ role }) => role)).toEqual(messages.length === 1 ? ["user"] : ["user", "assistant"]);
    expect(answerTo("hang always").startsWith(textIn(messages[1]))).toBe(true);
  },
);
