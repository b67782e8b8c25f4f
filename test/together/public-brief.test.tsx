import { manualClock } from "perdure/testing";
import { expect, test } from "vitest";
import { eventually, startHost } from "../clients/harness.ts";
import { togetherAgents, WORDS } from "./public-agents.ts";
import { openPage, same } from "./public-page.tsx";

async function start() {
  const clock = manualClock();
  const { Parent, Researcher } = togetherAgents(clock);
  const host = await startHost({ agents: { Parent }, subAgents: { Researcher } });
  const say = async (words: number, children: number) => {
    for (let i = 0; i < words; i++) {
      await eventually(() => expect(clock.pending(), "children that speak").toBe(children));
      await clock.advance(1);
    }
  };
  return { host, say };
}

test("a run that is told without its words: start, progress, milestones and end, now and later", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  await page.call("quiet", "steps");
  await say(2, 1);
  await eventually(() => expect(page.run().milestones).toMatchObject([{ name: "sources" }]));
  await eventually(() => expect(page.run().progress).toMatchObject({ phase: "writing" }));
  const middle = await openPage(host);
  await same(middle, page);
  await say(2, 1);
  await page.shows("completed: ");
  expect(page.run().summary).toBe(WORDS.join(""));
  await same(middle, page);
  const late = await openPage(host);
  await same(late, page);
});

/** So many are told in full to those who connect. */
const FULL = 20;
const MORE = 2;

test("many runs: who comes later is told of all, of the newest in full, and of the others how they ended", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  for (let i = 0; i < FULL + MORE; i++) await page.call("alone", "tea");
  await say(WORDS.length, FULL + MORE);
  const whole = `completed: ${WORDS.join("")}`;
  await page.shows(...Array.from({ length: FULL + MORE }, () => whole));
  const late = await openPage(host);
  await late.shows(...Array.from({ length: MORE }, () => "completed: "), ...Array.from({ length: FULL }, () => whole));
  expect(late.list().map(({ runId }) => runId)).toEqual(page.list().map(({ runId }) => runId));
  expect(late.list().map(({ summary }) => summary)).toEqual(page.list().map(({ summary }) => summary));
  // One who saw them all keeps them through a reconnect.
  page.line.cut();
  page.line.mend();
  await eventually(() => expect(page.line.opens).toBe(2));
  await page.shows(...Array.from({ length: FULL + MORE }, () => whole));
});
