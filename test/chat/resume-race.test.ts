import type { UIMessageChunk } from "ai";
import { expect, test } from "vitest";
import { type ChatClient, type Frame, RESUMING, textIn, user } from "./client.ts";
import { openChat, type TestChat } from "./harness.ts";

const WORDS = 3_000;
const TABS = 8;
const word = (n: number) => `w${n} `;

/** A fast model: bursts of words, with a turn for everybody else now and then. Its second half waits for `cue`. */
async function* fast(cue: Promise<void>): AsyncGenerator<UIMessageChunk> {
  yield { type: "start" };
  yield { type: "text-start", id: "t" };
  for (let n = 0; n < WORDS; n++) {
    if (n === WORDS / 2) await cue;
    if (n % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    if (n % 400 === 0) await new Promise((resolve) => setTimeout(resolve, 3));
    yield { type: "text-delta", id: "t", delta: word(n) };
    if (n % 50 === 0) yield { type: "data-tick", transient: true, data: n };
  }
  yield { type: "text-end", id: "t" };
  yield { type: "finish" };
}

/** What one socket saw of the stream must be a run of numbers without a gap, from 0 if it was a replay. */
function checkRun(frames: readonly Frame[], where: string): void {
  const numbered = frames.filter(({ seq }) => seq !== undefined);
  const first = numbered[0]?.seq ?? 0;
  expect(
    numbered.map(({ seq }) => seq),
    where,
  ).toEqual(numbered.map((_, at) => first + at));
  if (numbered[0]?.replay === true) expect(first, where).toBe(0);
}

/** Comes and goes until the turn is over. Calls `again` when it comes for the second time. */
async function restless(chat: TestChat, tab: number, again: () => void): Promise<void> {
  for (let visits = 1; ; visits++) {
    const client: ChatClient = await chat.connect();
    const offer = client.frames.find(({ type }) => type === RESUMING);
    if (offer === undefined) return;
    if (visits === 2) again();
    // Sometimes at once, sometimes a little later, so that chunks fall before, into and after the replay.
    for (let wait = 0; wait < (visits + tab) % 4; wait++) await new Promise((resolve) => setImmediate(resolve));
    client.ack("r1");
    await client.frame(({ replayComplete, done }) => replayComplete === true || done === true);
    await new Promise((resolve) => setTimeout(resolve, (visits * 7 + tab * 3) % 12));
    checkRun(client.of("r1"), `tab ${tab}, visit ${visits}`);
    await client.close();
    checkRun(client.of("r1"), `tab ${tab}, visit ${visits}, at its end`);
  }
}

test("replay then live, under a fast stream and many clients that come and go: no gap, nothing twice", async () => {
  const cue = Promise.withResolvers<void>();
  const chat = await openChat({ respond: () => fast(cue.promise) });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await a.frame(({ seq }) => seq === 0);
  await Promise.all(Array.from({ length: TABS }, (_, tab) => restless(chat, tab, cue.resolve)));
  await a.done("r1");
  const whole = Array.from({ length: WORDS }, (_, n) => word(n)).join("");
  const live = a.of("r1").filter(({ seq }) => seq !== undefined);
  expect(live.map(({ seq }) => seq)).toEqual(live.map((_, at) => at));
  expect(textIn((await chat.stored())[1])).toBe(whole);
});

test("a tab that stays after its replay has exactly what the others have", async () => {
  const cue = Promise.withResolvers<void>();
  const chat = await openChat({ respond: () => fast(cue.promise) });
  const a = await chat.connect();
  a.request("r1", [user("u1")]);
  await a.frame(({ seq }) => seq === 20);
  const late = await Promise.all(Array.from({ length: TABS }, () => chat.connect()));
  for (const tab of late) tab.ack("r1");
  // Some of it comes live to everybody.
  await Promise.all(late.map((tab) => tab.frame(({ replayComplete }) => replayComplete === true)));
  cue.resolve();
  await Promise.all([a, ...late].map((client) => client.done("r1")));
  const bodies = (client: ChatClient) =>
    client
      .of("r1")
      .filter(({ seq }) => seq !== undefined)
      .map(({ seq, body }) => `${seq} ${body}`);
  for (const tab of late) expect(bodies(tab)).toEqual(bodies(a));
  for (const tab of late) {
    expect(tab.of("r1").some(({ replay, seq }) => seq !== undefined && replay === undefined)).toBe(true);
  }
});
