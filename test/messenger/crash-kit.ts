// A conversation at a messenger in a process that is killed, and what must be seen of it there.
import { crashRun, type CrashOutcome, type CrashScenario, type Death } from "perdure/testing";
import { fakeSlack, fakeTelegram, type Program, slackRateLimited, tooManyRequests } from "perdure/testing";
import { afterEach, expect } from "vitest";
import { allFacts, env, ofType } from "../crash/drive.ts";
import { bundleProgram } from "../support/bundle-program.ts";
import { type Ada, type Acts, isOver, type Many, nextAct } from "./crash-ada.ts";
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
  readonly fake: {
    readonly url: string;
    readonly calls: readonly { readonly method: string }[];
    close(): Promise<void>;
  };
  readonly ada: Ada;
  readonly timer: NodeJS.Timeout;
  /** With `HELD`: the network does the message that it was asked for, which it has not done yet. */
  lets(): void;
  /** Where the agent of this life can be reached. */
  reaches(webhook: string): void;
  /** The next message is made then. */
  hold(until: Promise<void>): void;
}
/** A network for each folder: all lives of a run are at the same one. */
const chats = new Map<string, Promise<Chat>>();

const actsOf = ({ ACTS, MANY }: Readonly<Record<string, string>>) =>
  [(ACTS ?? "talk") as Acts, MANY === undefined ? undefined : (JSON.parse(MANY) as Many)] as const;
const pictures = [1, 2].map((n) => ({
  ...{ name: `p${n}.png`, mediaType: "image/png", bytes: new Uint8Array(1_000).fill(n) },
}));

/** @param times how often the network delivers each message */
type Open = (times: number, more: Readonly<Record<string, string>>) => Promise<Omit<Chat, "timer" | "lets">>;

const atTelegram: Open = async (times, more) => {
  const fake = await fakeTelegram();
  if (more.RATE !== undefined) fake.plan("sendMessage", tooManyRequests(Number(more.RATE)));
  const hold = (until: Promise<void>) => fake.plan("sendMessage", { kind: "held", until });
  const person = { id: 7, first_name: "Ada" };
  const ada: Ada = {
    said: () => fake.seen(7, "person").map(({ text }) => text),
    seen: () =>
      fake.seen(7, "bot").map(({ id, text, file, buttons }) => ({
        ...{ id: String(id), text: file === undefined ? text : `file of ${file.bytes.length}` },
        buttons: buttons.map((one) => one.text),
      })),
    pressed: false,
    stopsByButton: more.STOP === "button",
    says(text) {
      const update = fake.says(7, person, text);
      for (let i = 1; i < times; i++) setTimeout(() => fake.repeats(update), i * 150);
    },
    sends: (text) =>
      pictures.forEach((one, i) => fake.sends(7, person, one, { group: "g", ...(i === 0 && { caption: text }) })),
    presses: (id, label) => void fake.presses(7, person, Number(id), label),
  };
  const reaches = (url: string) => {
    fake.webhook = { url, secret: "s3cret" };
    // What could not be delivered to the life before.
    fake.offers({});
  };
  return { fake, ada, reaches, hold };
};

const atSlack: Open = async (times, more) => {
  const fake = await fakeSlack();
  if (more.RATE !== undefined) fake.plan("chat.postMessage", slackRateLimited(Number(more.RATE)));
  const hold = (until: Promise<void>) => fake.plan("chat.postMessage", { kind: "held", until });
  const person = { id: "U7", name: "Ada" };
  const ada: Ada = {
    said: () => fake.seen("D7", "person").map(({ text }) => text),
    seen: () =>
      fake.seen("D7", "bot").map(({ ts: id, text, file, buttons }) => ({
        ...{ id, text: file === undefined ? text : `file of ${file.bytes.length}` },
        buttons: buttons.map(({ label }) => label),
      })),
    pressed: false,
    stopsByButton: more.STOP === "button",
    says(text) {
      const said = fake.says("D7", person, text);
      for (let i = 1; i < times; i++) setTimeout(() => fake.repeats(said), i * 150);
    },
    sends: (text) => void fake.sends("D7", person, pictures, text),
    // Slack delivers a press once, and says so when nobody has taken it.
    presses: (id, label) =>
      void fake.presses("D7", person, id, label).then(({ status }) => {
        if (status !== 200) ada.pressed = false;
      }),
  };
  return { fake, ada, hold, reaches: (url) => void (fake.webhook = url) };
};

afterEach(async () => {
  for (const chat of chats.values()) {
    const { fake, timer } = await chat;
    clearInterval(timer);
    await fake.close();
  }
  chats.clear();
});

export function telegramScenario(more: Readonly<Record<string, string>> = {}, times = 1): CrashScenario<MessengerLook> {
  return networkScenario(atTelegram, { NETWORK: "telegram", ...more }, times);
}

export function slackScenario(more: Readonly<Record<string, string>> = {}, times = 1): CrashScenario<MessengerLook> {
  return networkScenario(atSlack, { NETWORK: "slack", ...more }, times);
}

function networkScenario(
  open: Open,
  more: Readonly<Record<string, string>>,
  times: number,
): CrashScenario<MessengerLook> {
  const { finish, ...rest } = scenario(more);
  const openChat = async (): Promise<Chat> => {
    const chat = await open(times, more);
    const held = Promise.withResolvers<void>();
    if (more.HELD === "1") chat.hold(held.promise);
    const act = () => nextAct(chat.ada, ...actsOf(more));
    // Before anybody asks the network for it.
    act();
    return { ...chat, timer: setInterval(act, 10), lets: () => held.resolve() };
  };
  const chatOf = (child: Program) => {
    const chat = chats.get(child.dir) ?? openChat();
    chats.set(child.dir, chat);
    return chat;
  };
  const attach = async (child: Program) => {
    const { fake, reaches, lets } = await chatOf(child);
    // Whoever had asked for it is dead when the next life begins.
    if (fake.calls.some(isCreate)) lets();
    await child.waitFor(({ type }) => type === "asks");
    await child.send({ url: fake.url });
    if (more.WEBHOOK !== "1") return;
    const { url } = await child.waitFor(({ type }) => type === "webhook");
    reaches(String(url));
  };
  return {
    ...rest,
    drive: attach,
    resume: attach,
    async finish(child, before) {
      const { ada } = await chatOf(child);
      while (!isOver(ada, ...actsOf(more))) {
        if ((await Promise.race([child.exited, new Promise((resolve) => setTimeout(resolve, 20))])) !== undefined)
          throw new Error("The program is gone.");
      }
      const look = await finish(child, before);
      return { ...look, said: ada.said(), seen: ada.seen().map(({ text }) => text) };
    },
  };
}

const isCreate = ({ method }: { readonly method: string }) => method === "sendMessage" || method === "chat.postMessage";

/** Dies when the network was asked for a message, and has not done it. */
export const whileHeld: Death = {
  async when(child: Program) {
    while ((await chats.get(child.dir))?.fake.calls.some(isCreate) !== true)
      await new Promise((resolve) => setTimeout(resolve, 5));
  },
};

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

/** Questions that are answered in words name themselves anew in each run. */
function worded({ seen }: MessengerLook): string[] {
  // Who answered is told beside what follows from the answer: either may be first.
  return seen.filter((text) => text !== "Approved by Ada").map((text) => text.replaceAll(/(YES|NO) \w{4}/g, "$1 CODE"));
}

/**
 * @param counts how many turns were asked for, and how often the tool has to run
 * @param isStray whether that is what may be there twice; `known` is what must be there
 */
export function check(
  mayRepeat: boolean,
  { inbound, ran } = { inbound: 3, ran: 1 },
  isStray = (one: string, known: readonly string[]) => known.some((text) => text.startsWith(one)),
) {
  return (outcome: CrashOutcome<MessengerLook>) => {
    const { result } = outcome.after;
    const expected = outcome.reference.result;
    expect(ofType(allFacts(outcome), "failed")).toEqual([]);
    const known = worded(expected);
    const others = strays(worded(result), known);
    // What may be there twice is the beginning of something, at most one per kill, and the rows say so.
    expect(others.length).toBeLessThanOrEqual(mayRepeat ? outcome.before.lives.length : 0);
    for (const one of others) expect(isStray(one, known), one).toBe(true);
    const repeated = result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
    expect(repeated).toBeGreaterThanOrEqual(others.length > 0 ? 1 : 0);
    expect(repeated).toBeLessThanOrEqual(mayRepeat ? outcome.before.lives.length : 0);
    expect(result.deliveries.every(({ state }) => state === "done")).toBe(true);
    // One turn each, and one that went on after the yes.
    expect(result.inbound).toBe(inbound);
    expect(result.turns).toBe(expected.turns);
    expect(result.ran).toBe(ran);
    expect(result.files).toBe(expected.files);
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

/** The process dies when the network has the second file: the others are there once, it at most twice, and the row says so. */
export async function expectFileOnce(
  open: CrashScenario<Pick<MessengerLook, "seen" | "deliveries">>,
  mayRepeat: boolean,
): Promise<void> {
  const died = { when: (child: { exited: Promise<unknown> }) => child.exited };
  const { result } = await crashRun({ ...open, deaths: [died] });
  const twice = mayRepeat ? ["file of 200"] : [];
  expect(result.seen).toEqual(["Here.", "file of 100", ...twice, "file of 200", "file of 300"]);
  expect(result.deliveries).toMatchObject([{ state: "done" }]);
  expect(Boolean(result.deliveries[0]?.maybeTwice)).toBe(mayRepeat);
}

/** The calls of a network that are cut in the middle. */
export const CUT_CALLS = ["create:1", "create:3", "create:4", "create:5", "edit:1", "edit:2"] as const;
