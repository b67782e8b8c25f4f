// Sessions that talk at the same time, and a process that dies: each goes on where it was, and none pays for another.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { crashMatrix, type CrashOutcome, type Fact, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { env, expectCovered, expectNoFailure, every, MATRIX_MS, ofType, remote } from "../crash/drive.ts";
import { withLives } from "../crash/lives.ts";
import { bundleProgram } from "../support/bundle-program.ts";

interface Result {
  readonly histories: Readonly<Record<string, readonly string[]>>;
  readonly turns: readonly { readonly requestId: string; readonly status: string; readonly text: string }[];
  readonly notes: readonly string[];
}

const program = await bundleProgram(new URL("./crash-side-by-side-program.ts", import.meta.url));
const SAID = { main: "one", side: "two" };

async function drive(child: Program): Promise<void> {
  const talker = remote(child, "Talker");
  await talker.call("say", SAID);
  await talker.call("result");
}

async function finish(child: Program): Promise<Result> {
  const talker = remote(child, "Talker");
  // Who was not told that it was accepted says it again.
  await talker.as("again").call("say", SAID);
  const result = await talker.as("end").call<Omit<Result, "notes">>("result");
  return { ...result, notes: notesIn(child.dir) };
}

function notesIn(dir: string): string[] {
  const file = join(dir, "notes");
  return existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
}

function check(outcome: CrashOutcome<Result>): void {
  expectNoFailure(outcome);
  const { histories, turns, notes } = outcome.after.result;
  expect(turns.map(({ status }) => status)).toEqual(["completed", "completed"]);
  for (const [session, text] of Object.entries(SAID)) {
    const [question, answer, ...more] = histories[session] ?? [];
    expect([question, more], session).toEqual([text, []]);
    expect(answer, session).toMatch(new RegExp(`^Well\\. .*Noted ${text}\\.$`));
    expect(answer?.match(/Noted/g), session).toHaveLength(1);
  }
  // A tool is never run twice for the same call, and those of one session are not another's.
  expect(new Set(notes).size).toBe(notes.length);
  for (const note of notes) expect(note).toMatch(/^(one|two) /);
}

test("two sessions at once, killed after every commit: both are answered", { timeout: MATRIX_MS }, async () => {
  const matrix = await crashMatrix<Result>({ program, env, drive, finish, check, slack: 20 });
  expectCovered(matrix, 12);
  expect(matrix.reference.result.notes.map((note) => note.split(" ")[0]).sort()).toEqual(["one", "two"]);
});

test("two sessions at once, killed twice and three times", { timeout: MATRIX_MS }, async () => {
  for (const again of [[3], [5, 2]]) {
    const points = every(4, again.length);
    const matrix = await crashMatrix<Result>({ program, env, drive, finish, check, again, points, slack: 20 });
    expect(matrix.killed.length).toBeGreaterThan(1);
  }
});

/** More lives than this may take. */
const MOST_LIVES = 20;

test(
  "one turn that ends the process uses up its own attempts, and none of the others'",
  { timeout: MATRIX_MS },
  async () => {
    const texts: Record<string, string> = {};
    for (let i = 1; i < 8; i++) texts[`s${i}`] = `patient ${i}`;
    texts.main = "poison";
    await withLives(program, async ({ live }) => {
      const facts: Fact[] = [];
      let result: Omit<Result, "notes"> | undefined;
      let lives = 0;
      for (; lives < MOST_LIVES && result === undefined; lives++) {
        const past = await live(
          async (child) => {
            const talker = remote(child, "Talker");
            await talker.as("say").call("say", texts);
            result = await talker.as("end").call("result");
          },
          { mayDie: true },
        );
        facts.push(...past.facts);
      }
      const statusOf = (text: string) => result?.turns.find((turn) => turn.text === text)?.status;
      expect(statusOf("poison"), `after ${lives} lives`).toBe("error");
      for (let i = 1; i < 8; i++) {
        expect(statusOf(`patient ${i}`)).toBe("completed");
        expect(result?.histories[`s${i}`]?.at(-1)).toMatch(new RegExp(`Noted patient ${i}\\.$`));
      }
      expect(lives).toBeGreaterThan(5);
      expect(ofType(facts, "refused")).toEqual([]);
    });
  },
);
