import { expect, test } from "vitest";
import { RECOVERING, textIn, textOf, user } from "./client.ts";
import { openChat, type ChatOptions } from "./harness.ts";

const STALL_MS = 10_000;

async function stalling(options: ChatOptions = {}) {
  const chat = await openChat({ chatStreamStallTimeoutMs: STALL_MS, manual: true, ...options });
  const [a, b] = [await chat.connect(), await chat.connect()];
  a.request("r1", [user("u1")]);
  return { chat, a, b };
}

test("a stream that stalls is given up and carried on, under the eyes of the same clients", async () => {
  const { chat, a, b } = await stalling();
  const first = await chat.stage();
  first.say("one ");
  await chat.clock.advance(STALL_MS - 1);
  expect(chat.calls).toBe(1);
  first.say("two ");
  await chat.clock.advance(STALL_MS - 1);
  expect(chat.calls).toBe(1);
  await chat.clock.advance(2);
  await first.aborted;
  const second = await chat.stage();
  expect(second.options).toMatchObject({ requestId: "r1", continuation: true });
  expect(textIn(second.messages[1])).toBe("one two ");
  second.say("three").end();
  await chat.clock.advance(100);
  for (const client of [a, b]) {
    expect(await client.done("r1")).toMatchObject({ outcome: "completed" });
    expect(client.of("r1").filter(({ done }) => done)).toHaveLength(1);
    expect(textOf(client.of("r1"))).toBe("one two three");
    expect(client.ofType(RECOVERING).map(({ recovering }) => recovering)).toEqual([true, false]);
  }
  expect(textIn((await chat.stored())[1])).toBe("one two three");
});

test("a model that never answers at all", async () => {
  const { chat, a } = await stalling({ slow: true });
  await chat.stage();
  await chat.clock.advance(STALL_MS + 1);
  const second = await chat.stage();
  second.open().say("here").end();
  await chat.clock.advance(100);
  expect(await a.done("r1")).toMatchObject({ outcome: "completed" });
  expect(textIn((await chat.stored())[1])).toBe("here");
});

test("a plain text that stalls is not taken for a whole one", async () => {
  let calls = 0;
  const { chat, a } = await stalling({
    respond: () => {
      const text = ["one ", "two"][calls++] ?? "";
      const stalls = calls === 1;
      return new Response(
        new ReadableStream({
          start(controller) {
            controller.enqueue(new TextEncoder().encode(text));
            if (!stalls) controller.close();
          },
        }),
      );
    },
  });
  await a.flushed();
  await chat.clock.advance(100);
  await a.said("r1", "one ");
  await chat.clock.advance(STALL_MS + 1);
  await chat.clock.advance(100);
  expect(await a.done("r1")).toMatchObject({ outcome: "completed" });
  expect((await chat.stored())[1]?.parts).toEqual([{ type: "text", text: "one two", state: "done" }]);
});

test("stalls count against the same budget; at its end clients are told, and no longer that it is recovering", async () => {
  const { chat, a, b } = await stalling({ chatRecovery: { maxAttempts: 2, terminalMessage: "Given up." } });
  for (const word of ["one ", "two ", "three "]) {
    (await chat.stage()).say(word);
    await chat.clock.advance(100);
    await a.said("r1", word);
    await chat.clock.advance(STALL_MS + 1);
  }
  await chat.clock.advance(100);
  for (const client of [a, b]) {
    expect(await client.done("r1")).toMatchObject({ error: true, body: "Given up.", outcome: "error" });
    expect(client.ofType(RECOVERING).map(({ recovering }) => recovering)).toEqual([true, false]);
    expect(textOf(client.of("r1"))).toBe("one two three ");
  }
  expect(chat.calls).toBe(3);
});

test("who came while it was recovering, and never took the stream, hears of the end of it too", async () => {
  const { chat } = await stalling();
  await chat.stage();
  await chat.clock.advance(STALL_MS + 1);
  const second = await chat.stage();
  const late = await chat.connect();
  expect(late.ofType(RECOVERING)).toHaveLength(1);
  second.say("two").end();
  await chat.clock.advance(100);
  await late.done("r1");
  expect(late.ofType(RECOVERING).map(({ recovering }) => recovering)).toEqual([true, false]);
});

test("stop and clear while it is recovering end that too", async () => {
  for (const how of ["stop", "clear"] as const) {
    const { chat, a, b } = await stalling();
    (await chat.stage()).say("one ");
    await chat.clock.advance(STALL_MS + 100);
    const second = await chat.stage();
    await b.frame(({ type }) => type === RECOVERING);
    if (how === "stop") a.cancel("r1");
    else a.clear();
    await second.aborted;
    await chat.clock.advance(100);
    await b.done("r1");
    expect(
      b.ofType(RECOVERING).map(({ recovering }) => recovering),
      how,
    ).toEqual([true, false]);
    expect(chat.calls).toBe(2);
  }
});

test("without a limit nothing is ever given up", async () => {
  const { chat, a } = await stalling({ chatStreamStallTimeoutMs: 0 });
  const stage = await chat.stage();
  await chat.clock.advance(STALL_MS * 1_000);
  stage.say("at last").end();
  await chat.clock.advance(100);
  await a.done("r1");
  expect(chat.calls).toBe(1);
});
