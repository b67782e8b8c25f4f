import { expect, test } from "vitest";
import { chunksOf, RESUMING, textIn, UPDATED, user } from "./client.ts";
import { type ChatOptions, openChat } from "./harness.ts";

/** A turn that ended with calls that a person is to approve. */
async function asked(calls: readonly string[], options: ChatOptions = {}) {
  const chat = await openChat(options);
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  for (const call of calls) stage.ask(call, "send", { to: call });
  stage.end("tool-calls");
  if (options.manual === true) await chat.clock.advance(100);
  await a.done("r1");
  return { chat, a };
}

const callIn = (message: { readonly parts: readonly object[] } | undefined, id = "c1") =>
  message?.parts.find((part) => "toolCallId" in part && part.toolCallId === id);

test("the question is stored before the stream ends: a reload shows the buttons", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.ask("c1", "send", { to: "you" });
  await a.frame(({ body }) => body?.includes("tool-approval-request") === true);
  const [row] = await chat.rows<{ body: string }>("SELECT body FROM perdure_message WHERE role = 'assistant'");
  expect(row?.body).toContain("approval-requested");
  stage.end("tool-calls");
  await a.done("r1");
  expect(callIn((await chat.stored())[1])).toMatchObject({ state: "approval-requested", approval: { id: "ask-c1" } });
  expect((await chat.agent()).hasPendingInteraction()).toBe(true);
});

test("approved: the answer is shown to all, the turn goes on, and the tool's result lands in the same message", async () => {
  const { chat, a } = await asked(["c1"]);
  const b = await chat.connect();
  b.approve("c1", true);
  const updated = await a.frame(({ type }) => type === UPDATED);
  expect(callIn(updated.message)).toMatchObject({
    state: "approval-responded",
    approval: { id: "ask-c1", approved: true },
  });
  const stage = await chat.stage();
  const id = stage.options.requestId;
  expect(stage.options.continuation).toBe(true);
  stage.push({ type: "start" }, { type: "tool-output-available", toolCallId: "c1", output: "sent" });
  stage.push({ type: "start-step" }).say("It is sent.").end();
  await a.done(id);
  expect(chunksOf(a.of(id)).slice(0, 2)).toEqual([
    { type: "start" },
    { type: "tool-output-available", toolCallId: "c1", output: "sent" },
  ]);
  const stored = await chat.stored();
  expect(stored).toHaveLength(2);
  expect(callIn(stored[1])).toMatchObject({ state: "output-available", output: "sent", approval: { approved: true } });
  expect(textIn(stored[1])).toBe("It is sent.");
});

test("a tool that fails after it was approved", async () => {
  const { chat, a } = await asked(["c1"]);
  a.approve("c1", true);
  const stage = await chat.stage();
  stage.push({ type: "start" }, { type: "tool-output-error", toolCallId: "c1", errorText: "mailbox full" }).end();
  await a.done(stage.options.requestId);
  expect(callIn((await chat.stored())[1])).toMatchObject({ state: "output-error", errorText: "mailbox full" });
});

test("denied: the call ends, and the model is told", async () => {
  const { chat, a } = await asked(["c1"]);
  a.approve("c1", false);
  const stage = await chat.stage();
  expect(callIn(stage.messages[1])).toMatchObject({
    state: "output-denied",
    approval: { id: "ask-c1", approved: false },
  });
  // A model that repeats the call cannot take the denial back.
  stage.push({ type: "tool-input-available", toolCallId: "c1", toolName: "send", input: { to: "else" } });
  stage.push({ type: "tool-output-available", toolCallId: "c1", output: "sent anyway" });
  stage.say("As you wish.").end();
  await a.done(stage.options.requestId);
  expect(callIn((await chat.stored())[1])).toMatchObject({ state: "output-denied", input: { to: "c1" } });
});

test("a batch waits for all of its approvals; the first answer to each counts", async () => {
  const { chat, a } = await asked(["c1", "c2"]);
  a.approve("c1", false);
  a.approve("c1", true);
  a.approve("nobody", true);
  await a.flushed();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(a.ofType(UPDATED)).toHaveLength(1);
  a.approve("c2", true);
  const stage = await chat.stage();
  expect(callIn(stage.messages[1], "c1")).toMatchObject({ state: "output-denied" });
  expect(callIn(stage.messages[1], "c2")).toMatchObject({ state: "approval-responded" });
  stage.push({ type: "start" }, { type: "tool-output-available", toolCallId: "c2", output: 1 }).end();
  await a.done(stage.options.requestId);
});

test("without autoContinue the answer is only stored", async () => {
  const { chat, a } = await asked(["c1"]);
  a.approve("c1", true, { autoContinue: false });
  await a.frame(({ type }) => type === UPDATED);
  await chat.stable();
  expect(chat.calls).toBe(1);
});

test("a client tool can be approved too: an id for the question is made up", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).call("c1").end("tool-calls");
  await a.done("r1");
  a.approve("c1", true, { autoContinue: false });
  const updated = await a.frame(({ type }) => type === UPDATED);
  expect(callIn(updated.message)).toMatchObject({
    state: "approval-responded",
    approval: { id: "c1", approved: true },
  });
});

test.each([true, false])(
  "an answer while the stream runs, to an approval that was asked for, survives a restart: %s",
  async (approved) => {
    const chat = await openChat();
    const a = await chat.connect();
    a.request("r1", [user("u1")]);
    const stage = await chat.stage();
    stage.ask("c1");
    await a.frame(({ body }) => body?.includes("approval-request") === true);
    a.approve("c1", approved);
    const updated = await a.frame(({ type }) => type === UPDATED);
    const b = await chat.connect();
    b.ack("r1");
    await b.frame(({ replayComplete }) => replayComplete === true);
    stage.push({ type: "data-x", data: 1 });
    await a.frame(({ body }) => body?.includes("data-x") === true);
    await chat.restart();
    await chat.agent();
    const part = callIn((await chat.agent()).messages.at(-1));
    // What was approved and then cut may have run, so it is not run again; a denial is an end.
    const kept = approved ? { approval: { approved: true }, state: "output-error" } : callIn(updated.message);
    expect(part).toMatchObject(kept ?? {});
    expect(part).toMatchObject({ approval: { approved } });
    // The model is called once more for what was cut, and has seen the answer then.
    (await chat.stage()).say("On it.").end();
    await chat.stable();
    expect(chat.calls).toBe(2);
  },
);

test("approvals from server code, with a reason", async () => {
  const { chat, a } = await asked(["c1", "c2"]);
  const agent = await chat.agent();
  expect(agent.answerApproval("c1", false, { reason: "not on Sundays" })).toBe(true);
  expect(agent.answerApproval("c1", true)).toBe(false);
  expect(agent.answerApproval("nobody", true)).toBe(false);
  expect(agent.answerToolCall("c2", "done by hand")).toBe(true);
  expect(agent.answerToolCall("c2", "again")).toBe(false);
  const stage = await chat.stage();
  expect(callIn(stage.messages[1], "c1")).toMatchObject({ approval: { approved: false, reason: "not on Sundays" } });
  expect(callIn(stage.messages[1], "c2")).toMatchObject({ state: "output-available", output: "done by hand" });
  const { requestId } = stage.options;
  stage.say("ok");
  await a.said(requestId, "ok");
  // Nobody owns it, so anybody may have it.
  expect(await (await chat.connect()).probe()).toMatchObject({ type: RESUMING, id: requestId });
  stage.end();
  await a.done(requestId);
});

test("an approval that nobody gives is denied when its time is over", async () => {
  const { chat, a } = await asked(["c1"], { approvalTimeoutMs: 60_000, manual: true });
  await chat.clock.advance(59_000);
  await a.flushed();
  expect(a.ofType(UPDATED)).toEqual([]);
  await chat.clock.advance(1_100);
  const updated = await a.frame(({ type }) => type === UPDATED);
  expect(callIn(updated.message)).toMatchObject({
    state: "output-denied",
    approval: { approved: false, reason: "The approval has expired." },
  });
  const stage = await chat.stage();
  stage.say("Too late then.").end();
  await chat.clock.advance(100);
  await a.done(stage.options.requestId);
  a.approve("c1", true);
  await a.flushed();
  expect(callIn((await chat.stored())[1])).toMatchObject({ state: "output-denied" });
});

test("an approval in time does not expire, and an old one expires after a restart", async () => {
  const { chat, a } = await asked(["c1", "c2"], { approvalTimeoutMs: 60_000, manual: true });
  a.approve("c1", true);
  await a.flushed();
  await chat.restart();
  await chat.clock.advance(120_000);
  await chat.clock.advance(100);
  const stage = await chat.stage();
  expect(callIn(stage.messages[1], "c1")).toMatchObject({ state: "approval-responded" });
  expect(callIn(stage.messages[1], "c2")).toMatchObject({ state: "output-denied" });
  expect(await chat.rows("SELECT 1 FROM perdure_tool_call WHERE status = 'asked'")).toEqual([]);
  stage.push({ type: "start" }, { type: "tool-output-available", toolCallId: "c1", output: 1 }).end();
  await chat.clock.advance(100);
});

test("a question that was settled by something else expires silently", async () => {
  const { chat, a } = await asked(["c1"], { approvalTimeoutMs: 60_000, manual: true });
  a.request("r2", [user("u2", "Forget it.")]);
  const stage = await chat.stage();
  stage.say("Forgotten.").end();
  await chat.clock.advance(100);
  await a.done("r2");
  await chat.clock.advance(120_000);
  await a.flushed();
  expect(chat.calls).toBe(2);
  expect(await chat.rows("SELECT 1 FROM perdure_tool_call WHERE status = 'asked'")).toEqual([]);
});

test("typing instead of answering: the call gets an end that the provider accepts, and everyone sees it", async () => {
  const { chat, a } = await asked(["c1", "c2"]);
  const b = await chat.connect();
  a.approve("c2", true);
  await a.flushed();
  a.request("r2", [...(await chat.stored()), user("u2", "Never mind.")]);
  const stage = await chat.stage();
  expect(stage.options.requestId).toBe("r2");
  expect(callIn(stage.messages[1], "c1")).toMatchObject({ state: "output-error" });
  expect(callIn(stage.messages[1], "c2")).toMatchObject({ state: "output-error" });
  expect(stage.messages.at(-1)?.id).toBe("u2");
  await b.frame(
    ({ type, message }) => type === UPDATED && JSON.stringify(callIn(message, "c1")).includes("output-error"),
  );
  stage.say("Fine.").end();
  await a.done("r2");
  a.approve("c1", true);
  await a.flushed();
  await chat.stable();
  expect(chat.calls).toBe(2);
});

test("the app may give the call that was typed over its own end", async () => {
  const { chat, a } = await asked(["c1"], {
    repair: (part) => ({ ...part, state: "output-available", output: "postponed" }),
  });
  a.request("r2", [user("u2")]);
  const stage = await chat.stage();
  expect(callIn(stage.messages[1])).toMatchObject({ state: "output-available", output: "postponed" });
  stage.end();
  await a.done("r2");
});
