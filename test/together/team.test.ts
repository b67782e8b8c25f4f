import type { Agent } from "perdure";
import { fanOut, firstGood, supervise } from "perdure/agent-tools";
import type { Script } from "perdure/testing";
import { expect, test } from "vitest";
import { eventually } from "../host/open-host.ts";
import { refusal } from "../think/harness.ts";
import { childClass, openTogether } from "./harness.ts";

async function team(script: Script, manual = false) {
  const { Researcher, model } = childClass(script);
  const kit = await openTogether(Researcher, ["unused"], { manual });
  const agent: Agent = await kit.agent();
  const tasks = (...inputs: string[]) => inputs.map((input) => ({ agent: Researcher, input }));
  return { kit, agent, model, tasks, Researcher };
}

test("fanOut: every task once, in the order of the tasks, and no more at a time than asked", async () => {
  let running = 0;
  let most = 0;
  const { agent, tasks, model } = await team(async ({ userText }) => {
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running--;
    if (userText === "three") throw new Error("No.");
    return `said ${userText}`;
  });
  const results = await fanOut<string>(agent, tasks("one", "two", "three", "four", "five"), { concurrency: 2 });
  expect(results.map(({ status, output }) => [status, output])).toEqual([
    ["completed", "said one"],
    ["completed", "said two"],
    ["error", undefined],
    ["completed", "said four"],
    ["completed", "said five"],
  ]);
  expect(most).toBe(2);
  const calls = model.calls.length;
  expect(await fanOut(agent, [], {})).toEqual([]);
  await expect(fanOut(agent, tasks("x"), { concurrency: 0 })).rejects.toMatchObject({ code: "bad_input" });
  expect(model.calls).toHaveLength(calls);
});

test("fanOut under the same id joins what there is", async () => {
  const { agent, tasks, model } = await team(({ userText }) => `said ${userText}`);
  const first = await fanOut(agent, tasks("one", "two"), { id: "t" });
  expect(await fanOut(agent, tasks("one", "two"), { id: "t" })).toEqual(first);
  expect(model.calls).toHaveLength(2);
});

test("firstGood: the first that will do; the others are stopped, and those behind never begin", async () => {
  const never = new Promise<string>(() => {});
  const { agent, tasks, model, kit } = await team(({ userText }) => (userText === "slow" ? never : `said ${userText}`));
  const good = await firstGood<string>(agent, tasks("slow", "bad", "good", "behind"), {
    concurrency: 2,
    accept: ({ output }) => output === "said good",
  });
  expect(good).toMatchObject({ status: "completed", output: "said good" });
  expect(model.calls.map(({ userText }) => userText)).toEqual(["slow", "bad", "good"]);
  const rows = await kit.rows<{ status: string }>("SELECT status FROM perdure_agent_run ORDER BY seq");
  expect(rows.map(({ status }) => status)).toEqual(["aborted", "completed", "completed"]);
});

test("firstGood: nothing that will do is undefined", async () => {
  const { agent, tasks } = await team(({ userText }) => userText);
  expect(await firstGood(agent, tasks("a", "b"), { accept: () => false })).toBeUndefined();
});

test("supervise: a failed child is replaced by a new one, with growing waits, until one will do", async () => {
  let tries = 0;
  const { agent, tasks, kit, Researcher } = await team(() => {
    // One that is not tried again by the child itself.
    if (++tries === 1) throw refusal(401);
    return `try ${tries}`;
  }, true);
  const [task] = tasks("work");
  const done = supervise<string>(agent, task as never, {
    id: "s",
    backOffMs: 1_000,
    accept: ({ output }) => output === "try 3",
  });
  await eventually(() => {
    void kit.clock.advance(500);
    return tries === 3;
  }, "three tries");
  expect(await done).toMatchObject({ status: "completed", output: "try 3", runId: "s:2" });
  expect(agent.listSubAgents(Researcher).map(({ name }) => name)).toEqual(["s:0", "s:1", "s:2"]);
});

test("supervise: gives up after its restarts, and never repeats what was stopped", async () => {
  const { agent, tasks, model } = await team(() => Promise.reject(refusal(401)));
  const [task] = tasks("work");
  const failed = await supervise(agent, task as never, { maxRestarts: 1, backOffMs: 1 });
  expect(failed.status).toBe("error");
  const calls = model.calls.length;
  const stopped = await supervise(agent, task as never, { signal: AbortSignal.abort(), backOffMs: 1 });
  expect(stopped.status).toBe("aborted");
  expect(model.calls).toHaveLength(calls);
});
