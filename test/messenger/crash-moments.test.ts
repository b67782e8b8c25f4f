// The process is killed at moments that have a name, where the matrices go by commits: before a commit, and around calls.
import { type CrashScenario, crashRun, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { MATRIX_MS } from "../crash/drive.ts";
import { scenario, slackScenario, strays, telegramScenario, whileHeld } from "./crash-kit.ts";
import type { MessengerLook } from "./crash-program.ts";

type More = Readonly<Record<string, string>>;
const WAYS = {
  memory: (more: More) => scenario({ FINDS: "1", ...more }),
  "Telegram, by polling": (more: More) => telegramScenario(more),
  "Telegram, by webhook": (more: More) => telegramScenario({ ...more, WEBHOOK: "1" }),
  "Slack, by socket mode": (more: More) => slackScenario(more),
  "Slack, by webhook": (more: More) => slackScenario({ ...more, WEBHOOK: "1" }),
} satisfies Record<string, (more: More) => CrashScenario<MessengerLook>>;
type Way = keyof typeof WAYS;
const ways = Object.keys(WAYS) as Way[];
/** One for each network. */
const networks: readonly Way[] = ["memory", "Telegram, by polling", "Slack, by socket mode"];

const withoutCode = (text: string) => text.replaceAll(/(YES|NO) \w{4}/g, "$1");
const byItself = { when: (child: Program) => child.exited };

/** The whole conversation, with one death: as if nothing had been. */
async function expectWhole(way: Way, more: More): Promise<void> {
  const { died, result } = await crashRun({ ...WAYS[way](more), deaths: [byItself] });
  expect(died).toHaveLength(1);
  // Ada can be quicker than the commit that says what she sees is made: where nobody can be asked, that is there twice, and said.
  const twice = result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
  expect(twice).toBeLessThanOrEqual(way.startsWith("Telegram") && /^(press|tells)/.test(more.KILL_IN ?? "") ? 1 : 0);
  expect(result.seen).toHaveLength(7 + twice);
  expect(result.seen.filter((text) => text.includes("Approved by Ada"))).toHaveLength(1);
  expect(result.seen.at(-1)).toBe("Working.\n\n(stopped)");
  expect(result.deliveries.every(({ state }) => state === "done")).toBe(true);
  // One model call for the long answer, two around the question, one for what is stopped: none for what was ended already.
  expect({ inbound: result.inbound, ran: result.ran, calls: result.calls }).toEqual({ inbound: 3, ran: 1, calls: 4 });
}

test.each(ways)(
  "%s: killed when a message is verified and not committed: it is delivered again, and is one turn",
  { timeout: MATRIX_MS },
  (way) => expectWhole(way, { KILL_IN: "message:1" }),
);

test.each(ways)(
  "%s: killed when a press has come and is not committed: it comes again, and the call runs once",
  { timeout: MATRIX_MS },
  (way) => expectWhole(way, { KILL_IN: "press:1" }),
);

test.each(networks)(
  "%s: killed when a press is committed and its question not changed: the call runs once, and the question shows it",
  { timeout: MATRIX_MS },
  (way) => expectWhole(way, { KILL_IN: "before:Approved by Ada" }),
);

test.each(networks)(
  "%s: killed when a stop is stored and not shown, before the last change is sent: no model is asked, and it is shown",
  { timeout: MATRIX_MS },
  (way) => expectWhole(way, { KILL_IN: "before:(stopped)" }),
);

test.each(networks)(
  "%s: killed when the last change is sent and not stored: the message is as it was, once",
  { timeout: MATRIX_MS },
  (way) => expectWhole(way, { KILL_IN: "after:(stopped)" }),
);

test.each(networks.flatMap((way) => ["before-end", "after-end"].map((moment) => [way, moment] as const)))(
  "%s: killed when a turn is settled and the last change of its answer is due (%s): one message, the whole answer, no model is asked",
  { timeout: MATRIX_MS },
  async (way, moment) => {
    const more = { ACTS: "tool", STOP: "button", KILL_IN: `${moment}:of it.` };
    const { died, result } = await crashRun({ ...WAYS[way](more), deaths: [byItself] });
    expect(died).toHaveLength(1);
    expect(result.seen).toEqual(["Half\n\nof it."]);
    expect(result.deliveries).toMatchObject([{ state: "done" }]);
    expect(Boolean(result.deliveries[0]?.maybeTwice)).toBe(false);
    expect([result.inbound, result.turns, result.calls]).toEqual([1, 1, 2]);
  },
);

// The first message, the second one of a long answer, and a question.
test.each(
  [...networks, "memory, which cannot be asked" as const].flatMap((way) =>
    ["1", "2", "5"].map((n) => [way, n] as const),
  ),
)(
  "%s: killed when message %s is stored as being made, and the network was not called: it is there once, and what is above it is as it was",
  { timeout: MATRIX_MS },
  async (way, n) => {
    const open = way === "memory, which cannot be asked" ? scenario : WAYS[way];
    const reference = await crashRun({ ...open({}), deaths: [] });
    const { died, result } = await crashRun({ ...open({ KILL_IN: `calls:${n}` }), deaths: [byItself] });
    expect(died).toHaveLength(1);
    expect(result.seen.map(withoutCode)).toEqual(reference.result.seen.map(withoutCode));
    // Where nobody can be asked, it might be there twice, and that is said.
    const asks = way === "memory" || way.startsWith("Slack");
    expect(result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice))).toHaveLength(asks ? 0 : 1);
  },
);

test.each<Way>(["Telegram, by polling", "Telegram, by webhook", "Slack, by socket mode", "Slack, by webhook"])(
  "%s: killed while the network does what it was asked for, which is there only then: found at Slack, else there twice, and said",
  { timeout: MATRIX_MS },
  async (way) => {
    const open = WAYS[way];
    const reference = await crashRun({ ...open({}), deaths: [] });
    const { result } = await crashRun({ ...open({ HELD: "1" }), deaths: [whileHeld] });
    const others = strays(result.seen, reference.result.seen);
    expect(others).toHaveLength(way.startsWith("Slack") ? 0 : 1);
    for (const one of others) expect(reference.result.seen[0]?.startsWith(one)).toBe(true);
    expect(result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice))).toHaveLength(others.length);
  },
);

test.each<Way>(["memory", "Telegram, by polling"])(
  "%s: killed when a stop by its button is stored and who pressed is not told: no model is asked, and it is shown",
  { timeout: MATRIX_MS },
  (way) => expectWhole(way, { KILL_IN: "tells:2", STOP: "button" }),
);

test.each<Way>(["memory", "Telegram, by polling"])(
  "%s: two messages come in one batch; killed when one is answered and the other not stored: each is answered once",
  { timeout: MATRIX_MS },
  async (way) => {
    const { died, result } = await crashRun({ ...WAYS[way]({ ACTS: "pair", KILL_IN: "between" }), deaths: [byItself] });
    expect(died).toHaveLength(1);
    expect(result.seen).toEqual(["re: one", "re: two"]);
    expect([result.inbound, result.turns, result.calls]).toEqual([2, 2, 2]);
  },
);

test.each(networks)(
  "%s: killed while it waits for a 429 of a minute: it waits for the rest, and not anew",
  { timeout: MATRIX_MS },
  async (way) => {
    const waits = { when: (child: Program) => child.waitFor(({ type }) => type === "waits") };
    const { died, last, result } = await crashRun({ ...WAYS[way]({ ACTS: "pair", RATE: "60" }), deaths: [waits] });
    const creates = [...died, last].map(({ facts }) => facts.filter(({ type }) => type === "creates"));
    const [refused] = creates[0] ?? [];
    const due = Number(died[0]?.facts.find(({ type }) => type === "waits")?.due);
    expect(creates[0]).toHaveLength(1);
    expect(due).toBeGreaterThanOrEqual(Number(refused?.at) + 60_000);
    // What the next life waits for is what the first one was told, and nobody calls before.
    expect(creates[1]?.[0]?.due).toBe(due);
    expect(Number(creates[1]?.[0]?.at)).toBeGreaterThanOrEqual(due);
    expect(result.seen).toEqual(["re: one", "re: two"]);
    expect(result.deliveries).toMatchObject([{ state: "done" }, { state: "done" }]);
    expect(result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice))).toEqual([]);
  },
);
