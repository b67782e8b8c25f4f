// What bounds tools in the background, and who may stop them.
import { action, durableTool, PerdureError } from "perdure";
import { jsonSchema, tool } from "ai";
import { expect, test } from "vitest";
import { until } from "../support/until.ts";
import { calling, gate, lastOf, openBackground, told } from "./background-kit.ts";
import { outputsSent, serverTool } from "./harness.ts";

test("no more go on than may: one more does not start and the model reads why, one with afterMs is waited for", async () => {
  const { work, runs, begun } = gate();
  const slow = gate({ background: { afterMs: 100 } });
  const script = (call: Parameters<typeof calling>[0]) =>
    call.step === 0 && call.userText === "wait"
      ? { toolCalls: [{ toolName: "slow", input: {}, toolCallId: "s1" }] }
      : calling(call);
  const kit = await openBackground(
    { work, slow: slow.work },
    { manual: true, script, settings: { maxBackgroundCalls: 2 } },
  );
  await kit.ask("go c1 c2 c3");
  expect(JSON.stringify(outputsSent(kit.model, 1).c3)).toContain("maxBackgroundCalls");
  await begun(2);
  expect(runs).toHaveLength(2);
  expect(kit.events).toContainEqual(expect.objectContaining({ type: "refused", toolCallId: "c3", reason: "running" }));
  const waited = kit.ask("wait");
  const run = await slow.begun();
  await kit.clock.advance(100);
  await until(() => kit.events.find(({ type, toolCallId }) => type === "refused" && toolCallId === "s1"));
  run.end.resolve("in its turn");
  expect(await waited).toMatchObject({ status: "completed" });
  expect(outputsSent(kit.model, 3)).toMatchObject({ s1: { type: "text", value: "in its turn" } });
});

test("a model that answers every result with the next call comes to an end", async () => {
  let n = 0;
  const work = durableTool(
    serverTool(() => "again"),
    { background: true },
  );
  const kit = await openBackground(
    { work },
    {
      settings: { maxAgentToolRuns: 3 },
      script: ({ step }) =>
        step === 0 ? { toolCalls: [{ toolName: "work", input: {}, toolCallId: `c${++n}` }] } : "ok",
    },
  );
  await kit.ask("go");
  await until(() => kit.events.find(({ type }) => type === "refused"));
  await kit.stable();
  expect(n).toBe(4);
  expect(kit.events.filter(({ type }) => type === "ended")).toHaveLength(3);
  expect(JSON.stringify(outputsSent(kit.model, kit.model.calls.length - 1).c4)).toContain("maxAgentToolRuns");
  // Another question has its own count.
  await kit.ask("go");
  await until(() => kit.events.filter(({ type }) => type === "refused").length === 2);
  await kit.stable();
  expect(n).toBe(8);
});

test.for(["method", "http", "frame"] as const)(
  "a call is listed and stopped by %s: the tool hears of it, the model is told",
  async (way) => {
    const { work, begun } = gate();
    const kit = await openBackground({ work });
    await kit.ask("go c1");
    const { signal } = await begun();
    const listed = (await (await fetch(`${kit.url}/chat/background`)).json()) as { calls: object[] };
    expect(listed.calls).toMatchObject([{ toolCallId: "c1", toolName: "work" }]);
    const agent = await kit.agent();
    expect(await agent.stopBackgroundCall("c2")).toBe(false);
    expect((await fetch(`${kit.url}/chat/background/c2`, { method: "DELETE" })).status).toBe(404);
    const client = await kit.connect();
    const stop = {
      method: () => agent.stopBackgroundCall("c1", { reason: "Closed." }),
      http: async () => (await fetch(`${kit.url}/chat/background/c1`, { method: "DELETE" })).ok,
      frame: () => {
        client.send({ type: "perdure_tool_stop", toolCallId: "c1" });
        return true;
      },
    };
    expect(await stop[way]()).toBe(true);
    await kit.ended();
    await kit.stable();
    expect(signal?.aborted).toBe(true);
    const reason = way === "method" ? "Closed." : "A person stopped it.";
    expect(lastOf(await kit.stored()).at(-2)).toBe(`user: ${told("c1", `was stopped. Reason: ${reason}`)}`);
    expect(agent.listBackgroundCalls()).toEqual([]);
  },
);

test("a call of another session is neither listed nor stopped", async () => {
  const { work, begun } = gate();
  const kit = await openBackground({ work });
  const agent = await kit.agent();
  const other = agent.createSession({ name: "other" }).id;
  await agent.runTurn({ input: "go c1", session: other });
  const run = await begun();
  const here = (await (await fetch(`${kit.url}/chat/background`)).json()) as { calls: object[] };
  expect(here.calls).toEqual([]);
  expect((await fetch(`${kit.url}/chat/background/c1`, { method: "DELETE" })).status).toBe(404);
  expect(agent.listBackgroundCalls({ session: other })).toHaveLength(1);
  run.end.resolve("there");
  await kit.ended();
  await kit.stable();
  // Told where it was asked for.
  expect(agent.getHistory(null, { session: other })).toHaveLength(4);
  expect(await kit.stored()).toEqual([]);
});

test("a model that names a call as a way up in an address gets another name for it", async () => {
  const { work, begun } = gate();
  const kit = await openBackground({ work });
  await kit.ask("go .. .");
  await begun(2);
  const calls = (await kit.agent()).listBackgroundCalls().map(({ toolCallId }) => toolCallId);
  expect(calls).toEqual(["call", "call-2"]);
  for (const call of calls) {
    const stopped = await fetch(`${kit.url}/chat/background/${encodeURIComponent(call)}`, { method: "DELETE" });
    expect(await stopped.json()).toEqual({ toolCallId: call, stopped: true });
  }
  expect((await kit.stored()).length).toBeGreaterThan(1);
});

test.for(["clear", "delete", "message", "regenerate"] as const)(
  "%s stops what goes on, and nobody is told but the event",
  async (how) => {
    const { work, begun } = gate();
    const kit = await openBackground({ work });
    const agent = await kit.agent();
    const session = how === "delete" ? agent.createSession({ name: "other" }).id : "main";
    await agent.runTurn({ input: "go c1", session });
    const run = await begun();
    if (how === "clear") agent.clearMessages();
    if (how === "delete") agent.deleteSession(session);
    if (how === "message") agent.session.deleteMessages([agent.session.getHistory().at(-1)?.id ?? ""]);
    if (how === "regenerate") {
      const client = await kit.connect();
      client.request("again", await kit.stored(), { trigger: "regenerate-message" });
      await begun(2);
    }
    expect(await kit.ended()).toMatchObject({ toolCallId: "c1", status: "dropped" });
    expect(run.signal?.aborted).toBe(true);
    run.end.resolve("late");
    await kit.stable();
    expect(lastOf(await kit.stored()).filter((text) => text.startsWith("user: The call"))).toEqual([]);
  },
);

test("regenerating in a fork stops nothing of the session that it comes of", async () => {
  const { work, begun } = gate();
  const kit = await openBackground({ work });
  await kit.ask("go c1");
  const run = await begun();
  const agent = await kit.agent();
  const fork = agent.session.fork();
  const body = JSON.stringify({ messages: await kit.stored(), trigger: "regenerate-message" });
  const headers = { "content-type": "application/json" };
  expect((await fetch(`${kit.url}/chat?_session=${fork.id}`, { method: "POST", headers, body })).ok).toBe(true);
  await begun(2);
  expect(agent.listBackgroundCalls().map(({ sessionId }) => sessionId)).toEqual(["main", fork.id]);
  run.end.resolve("whole");
  await kit.ended();
  await until(() => agent.session.getHistory().length === 4);
  expect(lastOf(await kit.stored())[2]).toBe(`user: ${told("c1", "is done. Its output:\n\nwhole")}`);
});

test("what cannot work is refused when it is declared", () => {
  const plain = serverTool(() => 1);
  const bad = (background: unknown) => () => durableTool(plain, { background: background as boolean });
  for (const background of ["yes", {}, { afterMs: -1 }, { afterMs: 1, more: 2 }, { afterMs: Number.NaN }])
    expect(bad(background)).toThrow(/background must be/);
  const pay = action({ description: "Pays.", inputSchema: jsonSchema<object>({ type: "object" }), execute: () => 1 });
  expect(() => durableTool(pay, { background: true })).toThrow(/action cannot run in the background/);
  const elsewhere = durableTool(tool({ inputSchema: jsonSchema<object>({ type: "object" }), execute: () => 1 }), {
    background: true,
  });
  const run = () => elsewhere.execute?.({}, { toolCallId: "c", messages: [], context: {} });
  expect(run).toThrow(PerdureError);
  expect(run).toThrow(/only Think can do/);
});
