import { openTab, readyTab } from "./harness.tsx";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

/** The first turn fails, the others do not. */
const failsFirst = (error: object) => (call: { turn: number; index: number }) =>
  call.index === 0 ? error : `fine ${call.index}`;

/** What the user reads of a bug. The Think of these tests says it in its own words, by onChatError. */
const WORDS = process.env.PERDURE_TALK === "think" ? /^no such model$/ : /^Something went wrong on the server/;
const PLAIN = expect.stringMatching(WORDS) as string;

test("what onChatMessage throws is a plain error of the hook, and the next turn works", async () => {
  let thrown = 0;
  const { host, agent, ends } = await startTalk({
    script: () => "fine",
    answer: () => {
      if (thrown++ === 0) throw new Error("no such model");
      return undefined;
    },
  });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a"], "error");
  expect(tab.view().error).toMatch(WORDS);
  await other.settles(["user: a"]);
  await eventually(() => expect(tab.ends).toMatchObject([{ outcome: "error", error: PLAIN, replay: false }]));
  await eventually(() => expect(other.ends).toMatchObject([{ outcome: "error", error: PLAIN }]));
  expect(ends).toMatchObject([{ status: "error", error: PLAIN }]);
  tab.send("b");
  await tab.settles(["user: a", "user: b", "assistant: fine"]);
  await other.settles(["user: a", "user: b", "assistant: fine"]);
  expect(tab.view().error).toBeUndefined();
  await tab.matches(agent);
});

test("an error mid-stream keeps what there was", async () => {
  const { host, agent } = await startTalk({
    script: failsFirst({ text: ["half ", "an ", "answer"], error: new Error("overloaded"), errorAfter: 2 }),
  });
  const tab = await readyTab(host);
  const other = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: half an "], "error");
  expect(tab.view().error).toBe("overloaded");
  await other.settles(["user: a", "assistant: half an "]);
  await other.matches(agent);
  tab.send("b");
  const all = ["user: a", "assistant: half an ", "user: b", "assistant: fine 1"];
  await tab.settles(all);
  await other.settles(all);
  expect(tab.chat().messages.map(({ id }) => id)).toEqual((await agent.stored()).map(({ id }) => id));
});

test("regenerate after an error replaces the part that there was", async () => {
  const { host, agent } = await startTalk({
    script: failsFirst({ text: ["half ", "an "], error: new Error("overloaded"), errorAfter: 2 }),
  });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a", "assistant: half an "], "error");
  void tab.chat().regenerate();
  await tab.settles(["user: a", "assistant: fine 1"]);
  await tab.matches(agent);
});

for (const [what, reply, lines] of [
  ["nothing was streamed", { error: new Error("boom") }, ["user: a"]],
  [
    "something was streamed",
    { text: ["half ", "an "], error: new Error("boom"), errorAfter: 1 },
    ["user: a", "assistant: half "],
  ],
] as const) {
  test(`after a reload the error is still there: ${what}`, async () => {
    const { host, agent } = await startTalk({ script: failsFirst(reply) });
    const tab = await readyTab(host);
    tab.send("a");
    await tab.settles(lines, "error");
    await tab.unmount();

    // It stays for every tab that looks.
    for (const _ of [1, 2]) {
      const again = await openTab(host);
      await again.settles(lines, "error");
      expect(again.view().error).toBe("boom");
      await eventually(() => expect(again.ends).toMatchObject([{ outcome: "error", error: "boom" }]));
      expect(again.chat().messages.map(({ id }) => id)).toEqual((await agent.stored()).map(({ id }) => id));
      await again.unmount();
    }

    const last = await openTab(host);
    await last.settles(lines, "error");
    last.send("b");
    await last.settles([...lines, "user: b", "assistant: fine 1"]);
    await last.unmount();
    const after = await readyTab(host);
    await after.settles([...lines, "user: b", "assistant: fine 1"]);
    expect(after.view().error).toBeUndefined();
  });
}

test("clear forgets the error", async () => {
  const { host } = await startTalk({ script: failsFirst({ error: new Error("boom") }) });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a"], "error");
  tab.chat().clearHistory();
  await tab.waitFor(({ lines }) => lines.length === 0);
  const again = await readyTab(host);
  await again.settles([]);
  expect(again.view().error).toBeUndefined();
});

test("an HTTP error as the answer is an error of the turn", async () => {
  const { host } = await startTalk({ script: [], answer: () => new Response("rate limited", { status: 429 }) });
  const tab = await readyTab(host);
  tab.send("a");
  await tab.settles(["user: a"], "error");
  expect(tab.view().error).toBe("rate limited");
});
