import { manualClock } from "perdure/testing";
import { expect, test } from "vitest";
import { eventually, startHost, takeFailures } from "../clients/harness.ts";
import { togetherAgents } from "./public-agents.ts";
import { alike, openPage, type RunsPage, same } from "./public-page.tsx";

async function start() {
  const clock = manualClock();
  const called: string[] = [];
  const { Parent, Researcher } = togetherAgents(clock, { called: (query) => void called.push(query) });
  const host = await startHost({ agents: { Parent }, subAgents: { Researcher } });
  /** Lets every child that speaks say so many words. */
  const say = async (words = 1, children = 1) => {
    for (let i = 0; i < words; i++) {
      await eventually(() => expect(clock.pending(), "children that speak").toBe(children));
      await clock.advance(1);
    }
  };
  return { host, say, called };
}

const ask = (page: RunsPage, text: string) => void page.chat().sendMessage({ text });
const SEARCHED = '[search output-available ["a","b"]]';
const WHOLE = "one two three four";

test("a run is shown as it goes, and in full to whoever comes after it", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  ask(page, "research tea");
  await page.shows("running: ");
  for (const said of ["one ", "one two ", "one two three "]) {
    await say();
    await page.shows(`running: ${said}`);
  }
  await say();
  await page.shows(`completed: ${WHOLE}`);
  await page.settles();
  expect(page.run()).toMatchObject({
    agentType: "Researcher",
    parentToolCallId: "c1",
    inputPreview: { query: "tea" },
    display: { name: "Researcher" },
    summary: WHOLE,
    subAgent: { agent: "Researcher", name: page.run().runId },
  });
  expect(page.runs().getRunsForToolCall("c1")).toEqual([page.run()]);
  const late = await openPage(host);
  await same(late, page);
});

test("the connection is lost in the middle: what was missed comes, once", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  const other = await openPage(host);
  ask(page, "research steps");
  await say(1);
  await page.shows(`running: ${SEARCHED} one `);
  page.line.cut();
  await say(2);
  await other.shows(`running: ${SEARCHED} one two three `);
  await page.shows(`running: ${SEARCHED} one `);
  page.line.mend();
  await page.shows(`running: ${SEARCHED} one two three `);
  await say(1);
  for (const one of [page, other]) await one.shows(`completed: ${SEARCHED} ${WHOLE}`);
  await same(page, other);
  await other.settles();
  await page.settles();
});

test("the run ends while the connection is lost", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  const other = await openPage(host);
  ask(page, "research steps");
  await say(2);
  await page.shows(`running: ${SEARCHED} one two `);
  page.line.cut();
  await say(2);
  await other.shows(`completed: ${SEARCHED} ${WHOLE}`);
  await other.settles();
  page.line.mend();
  await same(page, other);
  await page.settles();
});

test("a line that is lost again and again, at each word", async () => {
  const { host, say } = await start();
  const page = await openPage(host, { strict: true });
  const other = await openPage(host);
  ask(other, "research tea");
  for (let i = 0; i < 4; i++) {
    page.line.cut();
    await say();
    page.line.mend();
    await same(page, other);
  }
  await page.shows(`completed: ${WHOLE}`);
  await other.settles();
});

test("one who comes in the middle of a run sees all of it, and the rest as it goes", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  ask(page, "research steps");
  await say(2);
  await page.shows(`running: ${SEARCHED} one two `);
  const late = await openPage(host);
  await late.shows(`running: ${SEARCHED} one two `);
  await say(1);
  await late.shows(`running: ${SEARCHED} one two three `);
  await say(1);
  await late.shows(`completed: ${SEARCHED} ${WHOLE}`);
  await same(late, page);
  const last = await openPage(host);
  await same(last, page);
  await page.settles();
});

test("milestones are kept and shown to all, in their place; what was reported before one does not come after it", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  ask(page, "research steps");
  await say(1);
  await page.shows(`running: ${SEARCHED} one `);
  expect(page.run().progress).toMatchObject({ fraction: 1, phase: "writing" });
  expect(page.run().milestones).toEqual([{ name: "sources", sequence: 0, data: { count: 3 }, at: expect.any(Number) }]);
  const late = await openPage(host);
  await same(late, page);
  expect(late.run().milestones).toEqual(page.run().milestones);
  expect(late.run().progress).toMatchObject({ fraction: 0.5, milestone: "sources" });
  page.line.cut();
  page.line.mend();
  await eventually(() => expect(page.line.opens).toBe(2));
  await say(3);
  await page.shows(`completed: ${SEARCHED} ${WHOLE}`);
  await same(late, page);
  expect(page.run().milestones).toHaveLength(1);
  await page.settles();
});

test("several runs of one tool call stand in the order that they were given", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  ask(page, "team");
  await say(2, 3);
  await page.shows("running: one two ", "running: one two ", "running: one two ");
  expect(page.list().map(({ inputPreview }) => inputPreview)).toEqual([
    { query: "first" },
    { query: "second" },
    { query: "third" },
  ]);
  const late = await openPage(host);
  await same(late, page);
  await say(2, 3);
  await page.settles();
  await page.shows(`completed: ${WHOLE}`, `completed: ${WHOLE}`, `completed: ${WHOLE}`);
  await same(late, page);
});

test("runs that no tool call started, and one that nobody waits for", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  const runId = await page.call("alone", "tea");
  await say(2);
  await page.shows("running: one two ");
  expect(page.runs().unboundRuns).toMatchObject([{ runId, status: "running" }]);
  expect(page.run().parentToolCallId).toBeUndefined();
  await say(2);
  await page.shows(`completed: ${WHOLE}`);
  ask(page, "later steps");
  await page.settles();
  await say(1);
  await page.shows(`running: ${SEARCHED} one `, `completed: ${WHOLE}`);
  expect(page.runs().getRunsForToolCall("c1")).toHaveLength(1);
  const late = await openPage(host);
  await same(late, page);
  await say(3);
  await page.shows(`completed: ${SEARCHED} ${WHOLE}`, `completed: ${WHOLE}`);
  await same(late, page);
});

test("one run is stopped, the others go on; it stays stopped for all who come", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  ask(page, "team");
  await say(1, 3);
  await page.shows("running: one ", "running: one ", "running: one ");
  await page.call("stopRun", page.run().runId);
  await page.shows("aborted: one ", "running: one ", "running: one ");
  await say(3, 2);
  await page.shows("aborted: one ", `completed: ${WHOLE}`, `completed: ${WHOLE}`);
  await page.settles();
  const late = await openPage(host);
  await same(late, page);
});

test("stopping the turn stops its run, and all see that", async () => {
  const { host, say } = await start();
  const page = await openPage(host);
  const other = await openPage(host);
  ask(page, "research tea");
  await say(2);
  await page.shows("running: one two ");
  await page.chat().stop();
  for (const one of [page, other]) await one.shows("aborted: one two ");
  const late = await openPage(host);
  await same(late, page);
  await eventually(() => expect(page.chat().messages).toHaveLength(2));
});

test("a run that fails says why, now and later", async () => {
  const { host } = await start();
  const page = await openPage(host);
  ask(page, "research fail");
  await eventually(() => expect(page.run()).toMatchObject({ status: "error", error: "no luck" }));
  await page.settles();
  const late = await openPage(host);
  await same(late, page);
  takeFailures();
});

test("many pages come at any time: all of them show the same", async () => {
  const { host, say } = await start();
  const first = await openPage(host);
  ask(first, "team");
  const pages = [first];
  for (let i = 0; i < 4; i++) {
    pages.push(await openPage(host));
    await say(1, 3);
    pages.at(i)?.line.cut();
    pages.push(await openPage(host));
    pages.at(i)?.line.mend();
  }
  await first.settles();
  for (const page of pages) await same(page, first);
  expect(alike(first)).toMatchObject({ unboundRuns: [] });
});
