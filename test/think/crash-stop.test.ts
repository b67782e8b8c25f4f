import type { Fact, Program } from "perdure/testing";
import { expect, test } from "vitest";
import { isTerminal, toolParts } from "../../src/message/types.ts";
import { textIn, TRANSCRIPT, user } from "../chat/client.ts";
import { connect, type Driver } from "../chat/crash-drive.ts";
import { MATRIX_MS, ofType } from "../crash/drive.ts";
import { type Lives, withLives } from "../crash/lives.ts";
import { expectSums, program, release, resultIn, type ThinkCommand, type ThinkResult } from "./crash-drive.ts";

/** What is under way when somebody stops it, and what of it must be there afterwards. */
interface Moment {
  readonly name: string;
  /** Brings a life to the moment. */
  reach(child: Program, driver: Driver): Promise<unknown>;
  /** Stops what runs. By default as clients do: the request by its id. */
  stop?(child: Program, driver: Driver): unknown;
  readonly env?: Readonly<Record<string, string>>;
  /** What the user had written, and the beginning of the answer. */
  readonly shown: readonly string[];
}

const cancel = (driver: Driver, id: string) => driver.send({ type: "cf_agent_chat_request_cancel", id });
const stopAll = (child: Program) => child.send({ type: "stop all" } satisfies ThinkCommand);
const begun = (driver: Driver) => driver.frame(({ body }) => body?.includes('"let me"') === true);
const isStored = (driver: Driver, message: string) =>
  driver.frame(({ type, messages }) => type === TRANSCRIPT && messages?.some(({ id }) => id === message) === true);

/** Two more messages wait behind a turn that streams. */
async function crowd(child: Program, driver: Driver): Promise<void> {
  const other = await connect(child);
  driver.request("r1", [user("u1", "hang on")]);
  await begun(driver);
  driver.request("r2", [user("u2", "turn left")]);
  driver.request("r3", [user("u3", "note")]);
  await isStored(other, "u3");
}

const MOMENTS: readonly Moment[] = [
  {
    name: "while the model streams",
    async reach(_, driver) {
      driver.request("r1", [user("u1", "hang on")]);
      await begun(driver);
    },
    shown: ["hang on", "Well, let me"],
  },
  {
    name: "while a tool runs that may run again",
    async reach(child, driver) {
      driver.request("r1", [user("u1", "get stuck")]);
      await child.waitFor("ran");
    },
    shown: ["get stuck", "Trying. "],
  },
  {
    name: "while it waits before the next try",
    async reach(child, driver) {
      driver.request("r1", [user("u1", "busy")]);
      await child.waitFor("call-failed");
    },
    shown: ["busy"],
  },
  {
    name: "while an approval was just given",
    async reach(_, driver) {
      driver.request("r1", [user("u1", "ask")]);
      await driver.frame(({ id, done }) => id === "r1" && done === true);
    },
    stop: (child) => child.send({ type: "approve and stop all" } satisfies ThinkCommand),
    shown: ["ask", "May I? "],
  },
  {
    name: "with messages in the queue",
    reach: crowd,
    stop: stopAll,
    shown: ["hang on", "Well, let me", "turn left", "note"],
  },
  {
    name: "with messages that are to be taken in",
    reach: crowd,
    stop: stopAll,
    env: { STEER: "1" },
    shown: ["hang on", "Well, let me", "turn left", "note"],
  },
];

/** Stops it, is killed so many commits later, and looks how the next life finds it. @returns what that life called. */
async function stopAndKill({ live }: Lives, moment: Moment, commitsLater: number): Promise<Fact[]> {
  // In real time, so that a wait before a try is longer than this takes.
  const env = { ...moment.env, REAL_TIME: "1", KILL_AFTER_STOP: String(commitsLater) };
  const first = await live(
    async (child) => {
      const driver = await connect(child);
      await moment.reach(child, driver);
      await (moment.stop ?? (() => cancel(driver, "r1")))(child, driver);
      // There may be fewer commits than that: then it ends after them.
      await driver.flushed();
      await resultIn(child);
    },
    { mayDie: true, env },
  );
  const called: Fact[] = [];
  const later = await live(
    async (child) => {
      const found = await resultIn(child);
      called.push(...ofType(child.facts, "asked"), ...ofType(child.facts, "ran"));
      expect(found.calls).toBe(ofType(first.facts, "asked").length);
      expect(found.turns.filter(({ status }) => status !== "aborted" && status !== "completed")).toEqual([]);
      expect(found.messages.map((message) => textIn(message))).toEqual(moment.shown);
      expectSums(found);
      await expectOfUse(child, found);
    },
    { env },
  );
  expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
  return called;
}

/** The next message is answered, and nothing is left open. */
async function expectOfUse(child: Program, { calls }: ThinkResult): Promise<void> {
  const driver = await connect(child);
  driver.request("after", [user("u9", "hello")]);
  await driver.frame(({ id, done }) => id === "after" && done === true);
  const after = await resultIn(child);
  expect(textIn(after.messages.at(-1))).toBe("Hello.");
  expect(after.calls).toBe(calls + 1);
  expect(after.messages.flatMap((message) => toolParts(message)).filter((part) => !isTerminal(part))).toEqual([]);
  expectSums(after);
}

test.for(MOMENTS.map((moment) => [moment.name, moment] as const))(
  "stopped %s, and killed soon after: the model is not called again, nor any tool",
  { timeout: MATRIX_MS },
  async ([, moment]) => {
    const killed = [0, 1, 2].map((n) => withLives(program, (lives) => stopAndKill(lives, moment, n)));
    expect((await Promise.all(killed)).flat()).toEqual([]);
  },
);

test("stopped while an approval is open: it stays open, and may still be given", { timeout: MATRIX_MS }, async () => {
  await withLives(program, async ({ live }) => {
    await live(async (child) => {
      const driver = await connect(child);
      driver.request("r1", [user("u1", "ask")]);
      await driver.frame(({ id, done }) => id === "r1" && done === true);
      cancel(driver, "r1");
      await stopAll(child);
      await driver.flushed();
    });
    const later = await live(async (child) => {
      const { calls, questions, messages, ran } = await resultIn(child);
      expect({ calls, questions, ran }).toEqual({ calls: 1, questions: 1, ran: [] });
      const driver = await connect(child);
      const toolCallId = toolParts(messages[1] ?? messages[0]!)[0]?.toolCallId;
      expect(ofType(child.facts, "asked")).toEqual([]);
      driver.send({ type: "cf_agent_tool_approval", toolCallId, approved: true, autoContinue: true });
      await driver.frame(({ done }) => done === true);
      await release(child);
      const after = await resultIn(child);
      expect(textIn(after.messages[1])).toBe("May I? It is sent.");
      expect(after.ran).toHaveLength(1);
      expectSums(after);
    });
    expect(ofType(later.facts, "failed")).toEqual([]);
  });
});

test("two are stopped, and the one behind them is not: only that one is answered", { timeout: MATRIX_MS }, async () => {
  await withLives(program, async ({ live }) => {
    const first = await live(async (child) => {
      const driver = await connect(child);
      await crowd(child, driver);
      cancel(driver, "r2");
      cancel(driver, "r1");
      await driver.flushed();
    });
    const later = await live(async (child) => {
      const { messages, turns } = await resultIn(child);
      expect(turns.map(({ id, status }) => [id, status])).toEqual([
        ["r1", "aborted"],
        ["r2", "aborted"],
        ["r3", "completed"],
      ]);
      expect(textIn(messages.at(-1))).toBe("Looking. Noted it.");
    });
    expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
    const asked = ofType(later.facts, "asked").map(({ userText }) => userText);
    expect(asked.filter((text) => text !== "note")).toEqual([]);
  });
});
