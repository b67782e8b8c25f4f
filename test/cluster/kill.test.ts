// A process dies in the middle of answers, with its disk: the next one has nothing but the database.
import { setTimeout } from "node:timers/promises";
import { killPrograms, startProgram } from "perdure/testing";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openPostgres, type Postgres } from "../support/postgres.ts";
import { until } from "../support/until.ts";
import { ask, type Asker, WHOLE, wholeAnswer } from "./talk.ts";

const ROUNDS = 4;
const ROOMS = 6;

let postgres: Postgres;
beforeAll(async () => {
  postgres = await openPostgres();
});
afterEach(killPrograms);
afterAll(() => postgres.stop());

async function startNode(url: string) {
  const dir = mkdtempSync(join(tmpdir(), "perdure-node-"));
  const program = startProgram(new URL("talk-program.ts", import.meta.url), { dir, env: { PGURL: url } });
  const { url: at } = (await program.waitFor("listening")) as { type: string; url?: string };
  return { program, url: String(at) };
}

/** What clients saw is the beginning of what is stored, and what they saw of is whole in the end. @returns what is not so */
async function wrongOf(url: string, askers: readonly Asker[]): Promise<string[]> {
  const wrong: string[] = [];
  for (const { name, seen } of askers) {
    const text = seen();
    if (text === "") continue;
    if (!WHOLE.startsWith(text)) wrong.push(`${name} saw ${text}`);
    const answer = await wholeAnswer(url, name);
    if (answer !== WHOLE) wrong.push(`${name} has ${answer ?? "no answer"}`);
  }
  return wrong;
}

test("SIGKILL in the middle of answers: the next process has no files, and nothing that was seen is lost", async () => {
  const url = await postgres.database();
  const askers: Asker[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const node = await startNode(url);
    const here = await Promise.all(Array.from({ length: ROOMS }, (_, room) => ask(node.url, `r${round}-${room}`)));
    askers.push(...here);
    await until(() => here.some(({ seen }) => seen().length > 0), "somebody sees something");
    await setTimeout(Math.random() * 700);
    await node.program.kill();
    for (const asker of here) asker.end();
  }
  const last = await startNode(url);
  expect(await wrongOf(last.url, askers)).toEqual([]);
  expect(askers.filter(({ seen }) => seen() !== "").length).toBeGreaterThan(ROUNDS);
});

test("the database dies in the middle of answers and comes back: they go on by themselves", async () => {
  const url = await postgres.database();
  const node = await startNode(url);
  const askers = await Promise.all(Array.from({ length: ROOMS }, (_, room) => ask(node.url, `d-${room}`)));
  await until(() => askers.every(({ seen }) => seen().length > 0), "all see something");
  await postgres.kill();
  await setTimeout(200 + Math.random() * 1500);
  await postgres.start();
  expect(await wrongOf(node.url, askers)).toEqual([]);
  for (const asker of askers) asker.end();
});
