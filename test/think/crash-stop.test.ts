import type { Program } from "perdure/testing";
import { expect, test } from "vitest";
import { isTerminal, toolParts } from "../../src/message/types.ts";
import { textIn, TRANSCRIPT, user } from "../chat/client.ts";
import { connect, type Driver } from "../chat/crash-drive.ts";
import { MATRIX_MS, ofType } from "../crash/drive.ts";
import { type Lives, withLives } from "../crash/lives.ts";
import { expectSums, program, release, resultIn, type StoredTurn, type ThinkCommand, type ThinkResult } from "./crash-drive.ts";

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

/** Stops it, is killed so many commits later, and looks how the next life finds it. */
async function stopAndKill({ live }: Lives, moment: Moment, commitsLater: number): Promise<void> {
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
  const later = await live(
    async (child) => {
      const found = await resultIn(child);
      expect(ofType(child.facts, "asked")).toEqual([]);
      expect(ofType(child.facts, "ran")).toEqual([]);
      expect(found.calls).toBe(ofType(first.facts, "asked").length);
      expect(found.turns.filter(({ status }) => status !== "aborted" && status !== "completed")).toEqual([]);
      expect(found.messages.map((message) => textIn(message))).toEqual(moment.shown);
      expectSums(found);
      await expectOfUse(child, found);
    },
    { env },
  );
  expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
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
    await Promise.all(killed);
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

test("one is stopped, and the one behind it is not: only that one is answered", { timeout: MATRIX_MS }, async () => {
  await withLives(program, async ({ live }) => {
    const first = await live(
      async (child) => {
        const driver = await connect(child);
        await crowd(child, driver);
        cancel(driver, "r2");
        await driver.frame(({ id, done }) => id === "r2" && done === true);
        cancel(driver, "r1");
        await driver.frame(({ id, done }) => id === "r1" && done === true);
      },
      { mayDie: true, env: { KILL_AFTER_STOP: "2" } },
    );
    const later = await live(async (child) => {
      const { messages, turns } = await resultIn(child);
      const status = (id: string) => turns.find((turn) => turn.id === id)?.status;
      const known = turns.filter(({ cancelled }) => cancelled === 1).map(({ id }) => id);
      for (const id of known) expect(status(id)).toBe("aborted");
      expect(status("r3")).toBe("completed");
      expect(textIn(messages.at(-1))).toBe("Looking. Noted it.");
    });
    expect(ofType([...first.facts, ...later.facts], "failed")).toEqual([]);
    const woken = ofType(later.facts, "woken")[0]?.turns as readonly StoredTurn[];
    const stopped = woken.filter(({ cancelled }) => cancelled === 1).map(({ id }) => id);
    expect(stopped).toContain("r2");
    const texts = ofType(later.facts, "asked").map(({ userText }) => userText);
    expect(texts).not.toContain("turn left");
    if (stopped.includes("r1")) expect(texts).not.toContain("hang on");
  });
});
