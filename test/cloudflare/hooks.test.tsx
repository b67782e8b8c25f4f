// The public hooks on pages, unmodified, with their agents in the platform's own runtime.
import { openTab, readyTab } from "../chat-client/harness.tsx";
import { rendered } from "../clients/react.tsx";
import { beforeAll, expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { bundled, type Workerd } from "./kit.ts";

const WORDS = Array.from({ length: 40 }, (_, i) => `word${i} `).join("");
const answered = (...questions: string[]) => questions.flatMap((text) => [`user: ${text}`, `assistant: ${WORDS}`]);

let worker: Workerd;
beforeAll(async () => {
  const { start, stop } = await bundled("worker.ts");
  worker = await start();
  return stop;
});

const storedIn = (name: string) => ({
  stored: async () =>
    (await (await fetch(`http://${worker.address}/agents/chat/${name}/get-messages`)).json()) as unknown[],
});

test("useAgent: state goes both ways to every page, calls answer and stream", async () => {
  const [page, other] = [
    await rendered<{ count: number }>(worker, { agent: "Tally", name: "x" }),
    await rendered<{ count: number }>(worker, { agent: "Tally", name: "x" }),
  ];
  expect(await page.agent().call("add", [3])).toBe(3);
  await eventually(() => expect([page.text(), other.text()]).toEqual(['{"count":3}', '{"count":3}']));
  other.agent().setState({ count: 10 });
  await eventually(() => expect([page.text(), other.text()]).toEqual(['{"count":10}', '{"count":10}']));
  const chunks: unknown[] = [];
  const over = await page.agent().call("tell", [3], { onChunk: (chunk: unknown) => void chunks.push(chunk) });
  expect([chunks, over]).toEqual([[0, 1, 2], "over"]);
});

test("useAgent: comes back after a kill, with the state as it was", async () => {
  const page = await rendered<{ count: number }>(worker, { agent: "Tally", name: "kept" });
  await page.agent().call("add", [7]);
  await worker.kill();
  await worker.start();
  await eventually(async () => expect(await page.agent().call("add", [1])).toBe(8));
  await eventually(() => expect(page.text()).toBe('{"count":8}'));
});

test("useAgentChat: turns are streamed, and stored as they were shown", async () => {
  const tab = await readyTab(worker, { agent: "Chat", name: "turns" });
  for (const questions of [["one"], ["one", "two"]]) {
    tab.send(questions.at(-1) ?? "");
    await tab.waitFor(({ status }) => status === "streaming");
    await tab.settles(answered(...questions));
  }
  await tab.matches(storedIn("turns"));
});

test("useAgentChat: a page that is opened in the middle of an answer shows all of it, beside the one that asked", async () => {
  const tab = await readyTab(worker, { agent: "Chat", name: "reload" });
  tab.send("tell me");
  await tab.waitFor(({ lines }) => lines[1]?.includes("word3 ") ?? false);
  const second = await openTab(worker, { agent: "Chat", name: "reload" });
  await second.settles(answered("tell me"));
  await tab.settles(answered("tell me"));
  await second.matches(storedIn("reload"));
});

test("useAgentChat: an answer that is cut off by a kill is whole on the same page", async () => {
  const tab = await readyTab(worker, { agent: "Chat", name: "killed" });
  tab.send("tell me");
  await tab.waitFor(({ lines }) => lines[1]?.includes("word5 ") ?? false);
  await worker.kill();
  await tab.lost();
  await worker.start();
  await tab.waitFor(({ lines, status }) => status === "ready" && lines[1] === `assistant: ${WORDS}`);
  await tab.matches(storedIn("killed"));
});

test("useAgentChat: stop ends the turn, and what was said stays", async () => {
  const tab = await readyTab(worker, { agent: "Chat", name: "stopped" });
  tab.send("tell me");
  await tab.waitFor(({ lines }) => lines[1]?.includes("word2 ") ?? false);
  await tab.chat().stop();
  await tab.waitFor(({ status }) => status === "ready");
  await tab.matches(storedIn("stopped"));
  expect(tab.lines()[1]).toContain("word2 ");
  expect(tab.lines()[1]).not.toContain("word39");
});

test("useAgentChat: a call that waits for a person goes on when she has said yes, after a kill too", async () => {
  const tab = await readyTab(worker, { agent: "Chat", name: "asked" });
  tab.send("delete it");
  await tab.waitFor(({ lines }) => lines[1]?.includes("[remove approval-requested]") ?? false);
  await worker.kill();
  await tab.lost();
  await tab.unmount();
  await worker.start();
  const second = await readyTab(worker, { agent: "Chat", name: "asked" });
  await second.waitFor(({ lines }) => lines[1]?.includes("[remove approval-requested]") ?? false);
  const part = second.chat().messages[1]?.parts.find((one) => "approval" in one);
  const { id } = (part as { approval: { id: string } }).approval;
  await second.chat().addToolApprovalResponse({ id, approved: true });
  await second.waitFor(
    ({ lines, status }) =>
      status === "ready" && lines[1] === `assistant: [remove output-available "it is gone"] ${WORDS}`,
  );
  await second.matches(storedIn("asked"));
});
