import type { ChatRecoveryContext } from "perdure";
import { expect, test } from "vitest";
import { chunksOf, RECOVERING, RESUMING, textIn, textOf, user } from "./client.ts";
import { type ChatOptions, openChat, type TestChat } from "./harness.ts";

/** A turn that was cut after some of its answer was seen. */
async function cut(options: ChatOptions = {}): Promise<{ chat: TestChat; id: string | undefined }> {
  const chat = await openChat(options);
  const a = await chat.connect();
  a.request("r1", [user("u1")], { city: "Rome" });
  (await chat.stage()).say("one ");
  await a.said("r1", "one ");
  const [start] = chunksOf(a.of("r1"));
  await chat.restart();
  return { chat, id: start?.type === "start" ? start.messageId : undefined };
}

test("a turn that was cut goes on by itself, under the same id, in the same message", async () => {
  const seen: ChatRecoveryContext[] = [];
  const { chat, id } = await cut({ recover: (context) => void seen.push(context) });
  const stage = await chat.stage();
  expect(stage.options).toMatchObject({ requestId: "r1", continuation: true, body: { city: "Rome" } });
  expect(stage.messages.map((message) => textIn(message))).toEqual(["u1", "one "]);
  expect(seen).toMatchObject([
    {
      requestId: "r1",
      attempt: 1,
      recoveryKind: "continue",
      partialText: "one ",
      body: { city: "Rome" },
      messages: [user("u1")],
    },
  ]);
  const a = await chat.connect();
  expect(a.frames).toEqual([
    { type: RESUMING, id: "r1" },
    { type: RECOVERING, recovering: true, id: "r1" },
  ]);
  a.ack("r1");
  await a.said("r1", "one ");
  stage.say("two").end();
  expect(await a.done("r1")).toMatchObject({ outcome: "completed", messageIds: ["u1"] });
  expect(textOf(a.of("r1"))).toBe("one two");
  const numbered = a.of("r1").filter(({ seq }) => seq !== undefined);
  expect(numbered.map(({ seq }) => seq)).toEqual(numbered.map((_, at) => at));
  expect(a.ofType(RECOVERING).at(-1)).toEqual({ type: RECOVERING, recovering: false, id: "r1" });
  const stored = await chat.stored();
  expect(stored.map((message) => message.id)).toEqual(["u1", id]);
  expect(stored[1]?.parts).toEqual([{ type: "step-start" }, { type: "text", text: "one two", state: "done" }]);
});

test("a turn that had said nothing yet is tried again, and still gets its id from us", async () => {
  const seen: ChatRecoveryContext[] = [];
  const chat = await openChat({ slow: true, recover: (context) => void seen.push(context) });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await chat.stage();
  await chat.restart();
  const stage = await chat.stage();
  expect(stage.options).toMatchObject({ requestId: "r1", continuation: false });
  expect(stage.messages).toEqual([user("u1")]);
  expect(seen).toMatchObject([{ recoveryKind: "retry", partialText: "", partialParts: [] }]);
  const b = await chat.connect();
  b.ack("r1");
  await b.flushed();
  stage.open().say("whole").end();
  await b.done("r1");
  const stored = await chat.stored();
  expect(textIn(stored[1])).toBe("whole");
  expect(chunksOf(b.of("r1"))[0]).toEqual({ type: "start", messageId: stored[1]?.id });
});

test("what waited behind it keeps its place", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("one ");
  await a.said("r1", "one ");
  a.request("r2", [user("u2")]);
  a.request("r3", [user("u3")]);
  await a.flushed();
  await chat.restart();
  const order: string[] = [];
  for (const text of ["more", "two", "three"]) {
    const stage = await chat.stage();
    order.push(stage.options.requestId);
    stage.say(text).end();
  }
  await chat.stable();
  expect(order).toEqual(["r1", "r2", "r3"]);
  expect((await chat.stored()).map((message) => textIn(message))).toEqual([
    "u1",
    "one more",
    "u2",
    "two",
    "u3",
    "three",
  ]);
});

test("the app may end it: with what there is, or without", async () => {
  const kept = await cut({ recover: () => ({ continue: false }) });
  await kept.chat.stable();
  expect(kept.chat.calls).toBe(1);
  expect((await kept.chat.stored()).map((message) => textIn(message))).toEqual(["u1", "one "]);
  expect(kept.chat.responses).toMatchObject([{ requestId: "r1", status: "aborted" }]);

  const gone = await cut({ recover: async () => ({ continue: false, persist: false }) });
  await gone.chat.stable();
  expect(gone.chat.calls).toBe(1);
  expect(await gone.chat.stored()).toEqual([user("u1")]);
});

test("a hook that throws does not stop the recovery", async () => {
  const { chat } = await cut({
    recover() {
      throw new Error("no opinion");
    },
  });
  (await chat.stage()).say("two").end();
  await chat.stable();
  expect(textIn((await chat.stored())[1])).toBe("one two");
  expect(chat.takeErrors()).toEqual(["no opinion"]);
});

test("the tries are counted over all lives and never start again, whatever progress there was", async () => {
  const exhausted: ChatRecoveryContext[] = [];
  const attempts: number[] = [];
  const { chat } = await cut({
    recover: (context) => void attempts.push(context.attempt),
    chatRecovery: { maxAttempts: 3, terminalMessage: "Sorry.", onExhausted: (context) => void exhausted.push(context) },
  });
  for (const word of ["two ", "three ", "four "]) {
    const stage = await chat.stage();
    const a = await chat.connect();
    a.ack("r1");
    stage.say(word);
    await a.said("r1", word);
    await chat.restart();
  }
  await chat.stable();
  expect(attempts).toEqual([1, 2, 3]);
  expect(chat.calls).toBe(4);
  expect(exhausted).toMatchObject([{ attempt: 4, maxAttempts: 3, partialText: "one two three four " }]);
  expect(textIn((await chat.stored())[1])).toBe("one two three four ");
  expect(chat.responses).toMatchObject([{ status: "error", error: "Sorry." }]);
  // It is told to whoever comes back, as any failure is.
  const b = await chat.connect();
  expect(await b.probe()).toMatchObject({ type: RESUMING, id: "r1" });
  b.ack("r1");
  expect(await b.done("r1")).toMatchObject({ error: true, body: "Sorry." });
  expect(textOf(b.of("r1").slice(0, -1))).toBe("one two three four ");
});

test("no tries at all, and a turn that is too old", async () => {
  const none = await cut({ chatRecovery: { maxAttempts: 0 } });
  await none.chat.stable();
  expect(none.chat.calls).toBe(1);
  expect(none.chat.responses).toMatchObject([
    { status: "error", error: expect.stringContaining("interrupted") as string },
  ]);

  const chat = await openChat({ manual: true, chatRecovery: { maxAgeMs: 1_000 } });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("one ");
  await chat.clock.advance(1_500);
  await a.said("r1", "one ");
  await chat.restart();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(chat.responses).toMatchObject([{ status: "error" }]);
});

test("shouldKeepRecovering is asked from the second try on, and its no is final", async () => {
  const asked: number[] = [];
  const { chat } = await cut({
    chatRecovery: {
      shouldKeepRecovering(context) {
        asked.push(context.attempt);
        return context.attempt < 3;
      },
    },
  });
  for (let life = 0; life < 2; life++) {
    (await chat.stage()).say("x");
    await chat.restart();
  }
  await chat.stable();
  expect(asked).toEqual([2, 3]);
  expect(chat.calls).toBe(3);
  expect(chat.responses).toMatchObject([{ status: "error" }]);
});

test("a turn that was cut after its last chunk is only finished: no further call", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  // Everything but the end of the stream itself.
  stage
    .say("all of it")
    .push({ type: "text-end", id: "text-1" }, { type: "finish-step" }, { type: "finish", finishReason: "stop" });
  await a.frame(({ body }) => body?.includes('"finish"') === true);
  await chat.restart();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(textIn((await chat.stored())[1])).toBe("all of it");
  expect(chat.responses).toMatchObject([{ status: "completed" }]);
});

test("a cut while a person is asked is not carried on: the question stays open", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.say("May I? ").ask("c1");
  await a.frame(({ body }) => body?.includes("approval-request") === true);
  await chat.restart();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect((await chat.agent()).hasPendingInteraction()).toBe(true);
  const b = await chat.connect();
  b.approve("c1", true);
  const next = await chat.stage();
  expect(next.options.continuation).toBe(true);
  next.push({ type: "start" }, { type: "tool-output-available", toolCallId: "c1", output: 1 }).say("Done.").end();
  await chat.stable();
  expect(textIn((await chat.stored())[1])).toBe("May I? Done.");
});

test("a cut while a person is asked and another tool runs: only the question stays open, and its answer goes on", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")], { clientTools: [{ name: "where" }] });
  const stage = await chat.stage();
  const call = (toolCallId: string, toolName: string) =>
    stage.push({ type: "tool-input-available", toolCallId, toolName, input: {} });
  stage.push({ type: "start" }, { type: "start-step" });
  call("c1", "put");
  call("c2", "pay");
  call("c3", "where");
  stage.push({ type: "tool-approval-request", approvalId: "a2", toolCallId: "c2" });
  await a.frame(({ body }) => body?.includes("approval-request") === true);
  await chat.restart();
  await chat.stable();
  const [, answer] = await chat.stored();
  expect(answer?.parts.slice(1)).toMatchObject([
    { toolCallId: "c1", state: "output-error" },
    { toolCallId: "c2", state: "approval-requested" },
    { toolCallId: "c3", state: "input-available" },
  ]);
  const b = await chat.connect();
  b.approve("c2", true);
  b.result("c3", "home");
  (await chat.stage()).say("Done.").end();
  await chat.stable();
  expect(textIn((await chat.stored())[1])).toBe("Done.");
});

test("a cut while the server ran a tool: the call ends with an error, and is not waited for", async () => {
  const { chat } = await (async () => {
    const opened = await openChat();
    const a = await opened.connect();
    a.request("r1", [user("u1")]);
    (await opened.stage()).say("Looking. ").call("c1");
    await a.frame(({ body }) => body?.includes("input-available") === true);
    await opened.restart();
    return { chat: opened };
  })();
  const stage = await chat.stage();
  expect(stage.messages[1]?.parts[2]).toMatchObject({ toolCallId: "c1", state: "output-error" });
  stage.say("It did not work.").end();
  await chat.stable();
  expect(textIn((await chat.stored())[1])).toBe("Looking. It did not work.");
});

test("a regenerate that was cut goes on, and what it replaced does not come back", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  (await chat.stage()).say("old").end();
  await a.done("r1");
  a.request("again", [user("u1")], { trigger: "regenerate-message" });
  (await chat.stage()).say("new ");
  await a.said("again", "new ");
  await chat.restart();
  (await chat.stage()).say("answer").end();
  await chat.stable();
  expect((await chat.stored()).map((message) => textIn(message))).toEqual(["u1", "new answer"]);
});
