// A conversation at a messenger in a process that is killed, and what must be seen of it there.
import { crashRun, type CrashOutcome, type CrashScenario } from "perdure/testing";
import { type FakeTelegram, fakeTelegram, type Program } from "perdure/testing";
import { afterEach, expect } from "vitest";
import { allFacts, env, ofType } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { type Ada, isOver, nextAct } from "./crash-ada.ts";
import type { MessengerLook } from "./crash-program.ts";

const program = await bundleProgram(new URL("./crash-program.ts", import.meta.url));

export function scenario(more: Readonly<Record<string, string>> = {}): CrashScenario<MessengerLook> {
  return {
    program,
    env: { ...env, ...more },
    async finish(child) {
      await child.send({ type: "look" });
      return (await child.waitFor(({ type }) => type === "look")) as MessengerLook;
    },
    timeoutMs: 60_000,
  };
}

interface Chat {
  readonly fake: FakeTelegram;
  readonly ada: Ada;
  readonly timer: NodeJS.Timeout;
}
/** A Telegram for each folder: all lives of a run are at the same one. */
const chats = new Map<string, Promise<Chat>>();

/** @param times how often Telegram delivers each message */
async function openChat(times: number): Promise<Chat> {
  const fake = await fakeTelegram();
  const person = { id: 7, first_name: "Ada" };
  const ada: Ada = {
    said: () => fake.seen(7, "person").map(({ text }) => text),
    seen: () => fake.seen(7, "bot").map(({ id, text, buttons }) => ({ id: String(id), text, buttons })),
    pressed: false,
    says(text) {
      const update = fake.says(7, person, text);
      for (let i = 1; i < times; i++) setTimeout(() => fake.repeats(update), i * 150);
    },
    presses: (id) => void fake.presses(7, person, Number(id), "Approve"),
  };
  return { fake, ada, timer: setInterval(() => nextAct(ada), 10) };
}

afterEach(async () => {
  for (const chat of chats.values()) {
    const { fake, timer } = await chat;
    clearInterval(timer);
    await fake.close();
  }
  chats.clear();
});

export function telegramScenario(more: Readonly<Record<string, string>> = {}, times = 1): CrashScenario<MessengerLook> {
  const { finish, ...rest } = scenario({ NETWORK: "telegram", ...more });
  const chatOf = (child: Program) => {
    const chat = chats.get(child.dir) ?? openChat(times);
    chats.set(child.dir, chat);
    return chat;
  };
  const attach = async (child: Program) => {
    const { fake } = await chatOf(child);
    await child.waitFor(({ type }) => type === "asks");
    await child.send({ url: fake.url });
  };
  return {
    ...rest,
    drive: attach,
    resume: attach,
    async finish(child, before) {
      const { ada } = await chatOf(child);
      while (!isOver(ada)) {
        if ((await Promise.race([child.exited, new Promise((resolve) => setTimeout(resolve, 20))])) !== undefined)
          throw new Error("The program is gone.");
      }
      const look = await finish(child, before);
      return { ...look, seen: ada.seen().map(({ text }) => text) };
    },
  };
}

/** What Ada must see, whatever happened: the same messages in the same order. @returns what else stands there */
export function strays(seen: readonly string[], expected: readonly string[]): string[] {
  let at = 0;
  const others: string[] = [];
  for (const [i, text] of seen.entries()) {
    // Of two that are alike, the later one is the one that lives on.
    if (text === expected[at] && seen[i + 1] !== text) at++;
    else others.push(text);
  }
  expect(at, `seen: ${JSON.stringify(seen, null, 1)}`).toBe(expected.length);
  return others;
}

export function check(mayRepeat: boolean) {
  return (outcome: CrashOutcome<MessengerLook>) => {
    const { result } = outcome.after;
    const expected = outcome.reference.result;
    expect(ofType(allFacts(outcome), "failed")).toEqual([]);
    const others = strays(result.seen, expected.seen);
    // What may be there twice is the beginning of something, at most one per kill, and the rows say so.
    expect(others.length).toBeLessThanOrEqual(mayRepeat ? outcome.before.lives.length : 0);
    for (const one of others) expect(expected.seen.some((text) => text.startsWith(one))).toBe(true);
    const repeated = result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
    expect(repeated).toBeGreaterThanOrEqual(others.length > 0 ? 1 : 0);
    expect(repeated).toBeLessThanOrEqual(mayRepeat ? outcome.before.lives.length : 0);
    expect(result.deliveries.every(({ state }) => state === "done")).toBe(true);
    // One turn each, and one that went on after the yes.
    expect(result.inbound).toBe(3);
    expect(result.turns).toBe(expected.turns);
    expect(result.ran).toBe(1);
    expect(result.calls).toBeLessThanOrEqual(expected.calls + outcome.before.lives.length);
  };
}

/** The process is killed in the middle of a call of the network, which has done what it was asked. */
export async function expectKilledIn(
  KILL_IN: string,
  open: (more: Readonly<Record<string, string>>) => CrashScenario<MessengerLook>,
  own: Readonly<Record<string, string>>,
  mayRepeat: boolean,
): Promise<void> {
  const died = { when: (child: { exited: Promise<unknown> }) => child.exited };
  const reference = await crashRun({ ...open(own), deaths: [] });
  const run = await crashRun({ ...open({ ...own, KILL_IN }), deaths: [died] });
  const others = strays(run.result.seen, reference.result.seen);
  expect(others.length).toBeLessThanOrEqual(mayRepeat && KILL_IN.startsWith("create") ? 1 : 0);
  for (const one of others) expect(reference.result.seen.some((text) => text.startsWith(one))).toBe(true);
  expect(run.result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length).toBe(others.length);
  expect(run.result.ran).toBe(1);
}

/** The calls of a network that are cut in the middle. */
export const CUT_CALLS = ["create:1", "create:3", "create:4", "create:5", "edit:1", "edit:2"] as const;
