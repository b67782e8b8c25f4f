import { manualClock } from "perdure/testing";
import { expect, test } from "vitest";
import { openTab, readyTab, type Tab } from "../chat-client/harness.tsx";
import { eventually, startHost } from "../clients/harness.ts";
import { togetherAgents } from "./public-agents.ts";
import { openPage, type RunsPage, same } from "./public-page.tsx";

async function start() {
  const clock = manualClock();
  const ran: string[] = [];
  const { Parent, Researcher } = togetherAgents(clock, { ran: (name) => void ran.push(name) });
  const host = await startHost({ agents: { Parent }, subAgents: { Researcher } });
  const say = async (words = 1) => {
    for (let i = 0; i < words; i++) {
      await eventually(() => expect(clock.pending(), "children that speak").toBe(1));
      await clock.advance(1);
    }
  };
  const page = await openPage(host);
  return { host, say, ran, page };
}

const ask = (page: RunsPage, text: string) => void page.chat().sendMessage({ text });
/** Opens the child of the page's run at its address. */
const drillIn = (host: { readonly port: number }, page: RunsPage): Promise<Tab> =>
  openTab(host, { agent: "Parent", sub: [page.run().subAgent] });
const asked = (query: string) => `user: ${JSON.stringify({ query }, null, 2)}`;
const SEARCHED = '[search output-available ["a","b"]]';
const WHOLE = "one two three four";

test("the child's chat: what it said before, then live, the same as the run", async () => {
  const { host, say, page } = await start();
  ask(page, "research steps");
  await say(2);
  await page.shows(`running: ${SEARCHED} one two `);
  const child = await drillIn(host, page);
  await child.waitFor(({ lines, isStreaming }) => isStreaming && lines[1] === `assistant: ${SEARCHED} one two `);
  await say();
  await child.waitFor(({ lines }) => lines[1] === `assistant: ${SEARCHED} one two three `);
  await say();
  await child.settles([asked("steps"), `assistant: ${SEARCHED} ${WHOLE}`]);
  await page.shows(`completed: ${SEARCHED} ${WHOLE}`);
  await page.settles();
  const late = await drillIn(host, page);
  await late.settles([asked("steps"), `assistant: ${SEARCHED} ${WHOLE}`]);
});

test("the child's chat loses its connection and resumes", async () => {
  const { host, say, page } = await start();
  ask(page, "research tea");
  await say(1);
  await page.shows("running: one ");
  const child = await drillIn(host, page);
  await child.waitFor(({ lines }) => lines[1] === "assistant: one ");
  child.line.cut();
  await say(2);
  await page.shows("running: one two three ");
  child.line.mend();
  await child.waitFor(({ lines }) => lines[1] === "assistant: one two three ");
  await say(1);
  await child.settles([asked("tea"), `assistant: ${WHOLE}`]);
  await page.settles();
});

test("stopped from the child's chat: the run ends there, and the parent goes on", async () => {
  const { host, say, page } = await start();
  ask(page, "research tea");
  await say(2);
  const child = await drillIn(host, page);
  await child.waitFor(({ lines, isStreaming }) => isStreaming && lines[1] === "assistant: one two ");
  await child.chat().stop();
  await page.shows("aborted: one two ");
  await page.settles();
  await child.waitFor(({ isStreaming, lines }) => !isStreaming && lines[1] === "assistant: one two ");
  const late = await openPage(host);
  await same(late, page);
});

test.each([
  { approved: true, end: '[buy output-available "bought"]', ran: ["buy"] },
  { approved: false, end: "[buy output-denied]", ran: [] },
])("an approval that a child asks for is answered in its chat: $approved", async ({ approved, end, ran: wanted }) => {
  const { host, say, page, ran } = await start();
  ask(page, "research ask");
  await page.shows("running: [buy approval-requested]");
  const child = await readyTab(host, { stray: 1, agent: "Parent", sub: [page.run().subAgent] });
  await child.waitFor(({ lines, status }) => lines[1] === "assistant: [buy approval-requested]" && status === "ready");
  const part = child.chat().messages[1]?.parts.find((one) => "approval" in one);
  if (part === undefined || !("approval" in part)) throw new Error("Nothing is asked.");
  void child.chat().addToolApprovalResponse({ id: String(part.approval?.id), approved });
  await say(4);
  await page.shows(`completed: ${end} ${WHOLE}`);
  await page.settles();
  expect(ran).toEqual(wanted);
  await child.waitFor(({ lines }) => lines[1] === `assistant: ${end} ${WHOLE}`);
  const late = await openPage(host);
  await same(late, page);
});

test("a conversation with the child goes on after the run, which stays as it was", async () => {
  const { host, say, page } = await start();
  ask(page, "research tea");
  await say(4);
  await page.settles();
  const child = await drillIn(host, page);
  await child.settles([asked("tea"), `assistant: ${WHOLE}`]);
  child.send("and more");
  await say(4);
  await child.settles([asked("tea"), `assistant: ${WHOLE}`, "user: and more", `assistant: ${WHOLE}`]);
  await page.shows(`completed: ${WHOLE}`);
  const late = await openPage(host);
  await same(late, page);
});
