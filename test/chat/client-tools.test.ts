import { expect, test } from "vitest";
import { chunksOf, NONE, PENDING, RESUMING, textIn, TRANSCRIPT, UPDATED, user } from "./client.ts";
import { openChat, type ChatOptions } from "./harness.ts";

const TOOLS = [{ name: "where", parameters: { type: "object" } }, { name: "when" }];

/** A turn that ended with calls that the client is to run. */
async function asked(calls: readonly string[], options: ChatOptions = {}) {
  const chat = await openChat(options);
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")], { clientTools: TOOLS, city: "Rome" });
  const stage = await chat.stage();
  stage.say("Let me see. ");
  for (const call of calls) stage.call(call, "where", { near: call });
  stage.end("tool-calls");
  await Promise.all([a.done("r1"), b.done("r1")]);
  const [, answer] = await chat.stored();
  return { chat, a, b, answer };
}

test("an answer is stored and shown to everyone; with autoContinue the turn goes on in the same message", async () => {
  const { chat, a, b, answer } = await asked(["c1"]);
  a.result("c1", { city: "Rome" });
  const updated = await a.frame(({ type }) => type === UPDATED);
  const part = { type: "tool-where", toolCallId: "c1", state: "output-available", output: { city: "Rome" } };
  expect(updated.message).toMatchObject({ id: answer?.id, parts: [{}, { type: "text" }, part] });
  await b.frame(({ type }) => type === UPDATED);
  const stage = await chat.stage();
  const id = stage.options.requestId;
  expect(stage.options).toMatchObject({ continuation: true, body: { city: "Rome" }, clientTools: TOOLS });
  expect(id).not.toBe("r1");
  expect(stage.messages[1]).toMatchObject({ id: answer?.id, parts: [{}, {}, part] });
  stage.say("In Rome.").end();
  await Promise.all([a.done(id), b.done(id)]);
  for (const frame of a.of(id)) expect(frame.continuation).toBe(true);
  expect(chunksOf(a.of(id))[0]).toEqual({ type: "start" });
  // Whoever answered has to get the transcript too: its own view of a continuation is a stray message.
  for (const client of [a, b]) {
    const last = client.frames.findLastIndex(({ type }) => type === TRANSCRIPT);
    expect(client.frames[last]?.messages).toEqual(await chat.stored());
    expect(last).toBeLessThan(client.frames.findIndex((frame) => frame.id === id && frame.done === true));
  }
  const [, after] = await chat.stored();
  expect(after?.id).toBe(answer?.id);
  expect(textIn(after)).toBe("Let me see. In Rome.");
  expect(await chat.stored()).toHaveLength(2);
});

test("without autoContinue there is no turn", async () => {
  const { chat, a } = await asked(["c1"]);
  a.result("c1", 1, { autoContinue: false });
  await a.frame(({ type }) => type === UPDATED);
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect((await chat.agent()).hasPendingInteraction()).toBe(false);
});

test.each([[["c1", "c2", "c3"]], [["c3", "c1", "c2"]]])(
  "all answers of a step are waited for, in whatever order they come: %j",
  async (order) => {
    const { chat, a } = await asked(["c1", "c2", "c3"], { manual: true });
    for (const [at, call] of order.entries()) {
      expect(chat.calls).toBe(1);
      a.result(call, at);
      await a.flushed();
      await chat.clock.advance(1_000);
    }
    const stage = await chat.stage();
    expect(chat.calls).toBe(2);
    stage.end();
    await chat.clock.advance(100);
    await a.done(stage.options.requestId);
    await chat.clock.advance(1_000);
    expect(chat.calls).toBe(2);
  },
);

test("answers in quick succession start one turn, 50 ms after the last of them", async () => {
  const { chat, a } = await asked(["c1", "c2"], { manual: true });
  a.result("c1", 1);
  a.result("c2", 2);
  await a.flushed();
  await chat.clock.advance(49);
  expect(chat.calls).toBe(1);
  await chat.clock.advance(1);
  const stage = await chat.stage();
  stage.end();
  await chat.clock.advance(100);
  await a.done(stage.options.requestId);
  expect(chat.calls).toBe(2);
});

test("an errored answer without autoContinue completes a batch that others opted in to, but starts nothing alone", async () => {
  const { chat, a } = await asked(["c1", "c2"]);
  a.result("c1", 1);
  a.result("c2", undefined, { state: "output-error", errorText: "no permission", autoContinue: false });
  const stage = await chat.stage();
  expect(stage.messages[1]?.parts.slice(2)).toMatchObject([
    { state: "output-available", output: 1 },
    { state: "output-error", errorText: "no permission" },
  ]);
  stage.end();
  await a.done(stage.options.requestId);
  const alone = await asked(["c9"]);
  alone.a.result("c9", undefined, { state: "output-error", autoContinue: false });
  const updated = await alone.a.frame(({ type }) => type === UPDATED);
  expect(updated.message?.parts.at(-1)).toMatchObject({ errorText: "Tool execution denied by user" });
  await alone.chat.stable();
  expect(alone.chat.calls).toBe(1);
});

test("an answer without an output is null, not missing", async () => {
  const { chat, a } = await asked(["c1"]);
  a.result("c1", undefined, { autoContinue: false });
  await a.frame(({ type }) => type === UPDATED);
  expect((await chat.stored())[1]?.parts.at(-1)).toMatchObject({ state: "output-available", output: null });
});

test("the first answer wins: a repeated or conflicting one, from any tab, changes and tells nothing", async () => {
  const { chat, a, b } = await asked(["c1"]);
  const answered = () =>
    b.ofType(UPDATED).filter(({ message }) => JSON.stringify(message).includes('"state":"output-available"'));
  const before = b.ofType(UPDATED).length;
  a.result("c1", "first", { autoContinue: false });
  await expect.poll(() => answered().length).toBe(1);
  b.result("c1", "second");
  b.result("c1", "first");
  b.approve("c1", false);
  a.result("nobody", 1);
  a.result("c1", undefined, { state: "output-error", errorText: "x" });
  await Promise.all([a.flushed(), b.flushed()]);
  await chat.stable();
  expect(b.ofType(UPDATED)).toHaveLength(before + 1);
  expect(chat.calls).toBe(1);
  expect((await chat.stored())[1]?.parts.at(-1)).toMatchObject({ output: "first" });
});

test("answers while the stream still runs: they are in the message, and one turn follows its end", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.call("c1", "where").call("c2", "where");
  await a.frame(({ body }) => body?.includes('"c2"') === true && body.includes("available"));
  a.result("c2", 2);
  a.result("c1", 1);
  await a.flushed();
  // Until its step is over, a call may be one that the server runs.
  expect(a.ofType(UPDATED)).toEqual([]);
  const b = await chat.connect();
  b.ack("r1");
  await b.frame(({ replayComplete }) => replayComplete === true);
  stage.end("tool-calls");
  await Promise.all([a.done("r1"), b.done("r1")]);
  expect(a.ofType(UPDATED)).toHaveLength(2);
  // The log alone tells the answers too: who comes later, and a restart, read nothing else.
  const outputs = chunksOf(b.of("r1")).filter(({ type }) => type === "tool-output-available");
  expect(outputs).toHaveLength(2);
  const next = await chat.stage();
  expect(next.messages[1]?.parts).toMatchObject([{}, { output: 1 }, { output: 2 }]);
  next.say("both").end();
  await a.done(next.options.requestId);
  await chat.stable();
  expect(chat.calls).toBe(2);
});

test("a sibling that the model asks for after the first answer is waited for", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.call("c1", "where");
  await a.frame(({ body }) => body?.includes("tool-input-available") === true);
  a.result("c1", 1);
  await a.flushed();
  stage.call("c2", "where").end("tool-calls");
  await a.done("r1");
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect(chat.calls).toBe(1);
  a.result("c2", 2);
  const next = await chat.stage();
  next.end();
  await a.done(next.options.requestId);
});

test("answers that come while a continuation runs are gathered into one more", async () => {
  const { chat, a } = await asked(["c1"]);
  a.result("c1", 1);
  const second = await chat.stage();
  second.call("c2", "where").call("c3", "where");
  await a.frame(({ body }) => body?.includes('"c3"') === true && body.includes("available"));
  a.result("c2", 2);
  a.result("c3", 3);
  await a.flushed();
  second.end("tool-calls");
  const third = await chat.stage();
  expect(third.messages[1]?.parts.filter((part) => "output" in part)).toHaveLength(3);
  third.say("done").end();
  await a.done(third.options.requestId);
  await chat.stable();
  expect(chat.calls).toBe(3);
});

test("a call that the server ran itself while a client answered it has the server's result, and no further turn", async () => {
  const chat = await openChat();
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  const stage = await chat.stage();
  stage.call("c1", "both");
  await a.frame(({ body }) => body?.includes("tool-input-available") === true);
  a.result("c1", "from the client");
  await a.flushed();
  stage.push({ type: "tool-output-available", toolCallId: "c1", output: "from the server" }, { type: "finish-step" });
  stage.push({ type: "start-step" }).say("All done.").end("stop");
  await a.done("r1");
  await new Promise((resolve) => setTimeout(resolve, 120));
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect((await chat.stored())[1]?.parts[1]).toMatchObject({ output: "from the server" });
  expect(await a.probe()).toMatchObject({ type: NONE, reason: "idle" });
});

test("the tab that answered is told to wait and is offered the continuation; the others hear it live", async () => {
  const { chat, a, b } = await asked(["c1"], { slow: false });
  a.result("c1", 1);
  expect(await a.probe("p")).toMatchObject({ type: PENDING, probeId: "p" });
  expect(await b.probe("q")).toMatchObject({ type: NONE, reason: "continuation-owned", probeId: "q" });
  const stage = await chat.stage();
  const id = stage.options.requestId;
  await a.frame(({ type }) => type === RESUMING);
  stage.say("one ");
  await b.said(id, "one ");
  await a.flushed();
  expect(a.of(id)).toEqual([]);
  expect(await b.probe()).toMatchObject({ type: NONE, reason: "continuation-owned" });
  a.ack(id);
  await a.said(id, "one ");
  const replayed = a.of(id);
  expect(replayed.every(({ continuation, replay }) => continuation === true && replay === true)).toBe(true);
  expect(replayed.at(-1)).toMatchObject({ replayComplete: true, done: false });
  stage.say("two").end();
  await Promise.all([a.done(id), b.done(id)]);
});

test("the owner leaves before the continuation starts: it runs, and another tab may have it", async () => {
  const { chat, a, b } = await asked(["c1", "c2"]);
  a.result("c1", 1);
  a.result("c2", 2);
  await a.flushed();
  await a.close();
  const stage = await chat.stage();
  stage.say("one");
  await b.said(stage.options.requestId, "one");
  expect(await b.probe()).toMatchObject({ type: RESUMING, id: stage.options.requestId });
  stage.end();
  await b.done(stage.options.requestId);
});

test("a client that never answers holds nothing up but itself", async () => {
  const { chat, a } = await asked(["c1", "c2"]);
  a.result("c1", 1);
  await a.flushed();
  await chat.stable();
  expect(chat.calls).toBe(1);
  expect(await a.probe()).toMatchObject({ type: PENDING });
  const other = await chat.connect();
  expect(other.frames).toEqual([]);
});

test("client tools from the answer replace the stored ones, unless there are none", async () => {
  const { chat, a } = await asked(["c1", "c2"]);
  a.result("c1", 1, { clientTools: [{ name: "new" }] });
  a.result("c2", 2, { clientTools: [] });
  const stage = await chat.stage();
  expect(stage.options.clientTools).toEqual([{ name: "new" }]);
  stage.end();
  await a.done(stage.options.requestId);
});

test("a continuation that says nothing, and one that fails, end what waits for them", async () => {
  const mode: { now: "silent" | "broken" } = { now: "silent" };
  const chat = await openChat({
    respond: (options) => {
      if (!options.continuation)
        return new Response(
          'data: {"type":"tool-input-available","toolCallId":"c1","toolName":"where","input":{}}\n\n',
          { headers: { "content-type": "text/event-stream" } },
        );
      if (mode.now === "silent") return undefined;
      throw new Error("no model today");
    },
  });
  for (const now of ["silent", "broken"] as const) {
    mode.now = now;
    const a = await chat.connect();
    a.clear();
    a.request(`r-${now}`, [user("u1")]);
    await a.done(`r-${now}`);
    a.result("c1", 1);
    const pending = await a.probe();
    expect(pending.type).toBe(PENDING);
    await a.frame(({ type }) => type === NONE);
    const end = await a.done(pending.id ?? "");
    expect(end.continuation).toBe(true);
    expect(end.error).toBe(now === "broken" ? true : undefined);
    await a.close();
  }
  expect(chat.takeErrors()).toEqual(["no model today"]);
});

test("answers survive a restart, and so does the wish to go on", async () => {
  const { chat, a } = await asked(["c1", "c2"], { manual: true });
  a.result("c1", 1);
  a.result("c2", 2);
  await a.flushed();
  await chat.restart();
  await chat.agent();
  // Not before the restart, however slow the machine is.
  await chat.clock.advance(100);
  const stage = await chat.stage();
  expect(stage.options).toMatchObject({ continuation: true, clientTools: TOOLS });
  expect(stage.messages[1]?.parts.slice(2)).toMatchObject([{ output: 1 }, { output: 2 }]);
  stage.say("back").end();
  await chat.stable();
  expect(textIn((await chat.stored())[1])).toBe("Let me see. back");
});
