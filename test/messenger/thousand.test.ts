// A thousand deliveries that are open when the life ends.
import { expect, test, vi } from "vitest";
import { type HostKit, type KitOptions, openKit, openSlack, openTelegram } from "./kit.ts";

/** As many as an agent serves side by side. */
const PLACES = 8;
/** So many are stored as sent when the life ends. */
const STORED = 50;

interface There {
  readonly kit: HostKit;
  readonly channel: string;
  thread(n: number): string;
  texts(thread: string): string[];
  /** The next messages, after `skip` others, are made then. */
  hold(until: Promise<unknown>, skip: number): void;
  /** The threads for which the network was called, and asked. */
  called(): string[];
  asked(): string[];
}
type Open = (host?: KitOptions["host"]) => Promise<There>;

const memory =
  (finds: boolean): Open =>
  async (host) => {
    const kit = await openKit({ network: { finds }, ...(host !== undefined && { host }) });
    const threads = (op: string) => kit.network.calls.filter((one) => one.op === op).map(({ thread }) => thread);
    return {
      ...{ kit, channel: "memory", texts: (thread) => kit.texts(thread), thread: (n) => `memory:${1_000 + n}` },
      hold(until, skip) {
        for (let i = 0; i < PLACES; i++) kit.network.plan("create", { kind: "held", until }, i === 0 ? skip : 0);
      },
      ...{ called: () => threads("create"), asked: () => threads("find") },
    };
  };

const telegram: Open = async (host) => {
  const kit = await openTelegram({ ...(host !== undefined && { host }) });
  const { calls } = kit.telegram;
  const called = () =>
    calls.filter(({ method }) => method === "sendMessage").map(({ params }) => `telegram:${String(params.chat_id)}`);
  return {
    ...{ kit, called, asked: () => [], channel: "telegram", thread: (n) => `telegram:${1_000 + n}` },
    texts: (thread) => kit.texts(Number(thread.split(":")[1])),
    hold: (until, skip) => kit.telegram.plan("sendMessage", { kind: "held", until }, { skip, times: PLACES }),
  };
};

const slack: Open = async (host) => {
  const kit = await openSlack({ ...(host !== undefined && { host }) });
  const threads = (name: string) =>
    kit.slack.calls.filter(({ method }) => method === name).map(({ params }) => `slack:${String(params.channel)}`);
  return {
    ...{ kit, channel: "slack", thread: (n) => `slack:D${1_000 + n}` },
    ...{ called: () => threads("chat.postMessage"), asked: () => threads("conversations.history") },
    texts: (thread) => kit.texts(thread.split(":")[1]),
    hold: (until, skip) => kit.slack.plan("chat.postMessage", { kind: "held", until }, { skip, times: PLACES }),
  };
};

/** A thousand notices, of which some are stored as sent and some are under way. The rest of the test lets these go on. */
async function openThousand(there: There) {
  const { kit, channel } = there;
  const [root] = kit.lives;
  const hold = (skip: number) => {
    const gate = Promise.withResolvers<void>();
    there.hold(gate.promise, skip);
    return gate.resolve;
  };
  const letGo = hold(STORED);
  const threads = Array.from({ length: 1_000 }, (_, i) => there.thread(i));
  for (const thread of threads) await root?.deliverNotice(`For ${thread}`, { channel, thread });
  const idsOf = () =>
    kit.ports[0]?.sql<{ thread: string }>(
      `SELECT thread FROM perdure_delivery_part JOIN perdure_delivery ON seq = delivery WHERE provider_id IS NOT NULL`,
    ) ?? [];
  await kit.until(() => expect(idsOf()).toHaveLength(STORED));
  const stored = idsOf().map(({ thread }) => thread);
  await kit.until(() => expect(there.called()).toHaveLength(STORED + PLACES));
  const underWay = there.called().filter((thread) => !stored.includes(thread));
  expect(underWay).toHaveLength(PLACES);
  const open = () => kit.lives.at(-1)?.listDeliveries({ state: "open" }).length;
  const untilDone = () => vi.waitFor(() => expect(open()).toBe(0), { timeout: 60_000, interval: 50 });
  const repeated = () =>
    kit.events
      .filter(({ type }) => type === "delivery:repeated")
      .map(({ payload }) => (payload as { thread: string }).thread);
  return { threads, underWay, hold, letGo, untilDone, repeated };
}

test.each([
  ["memory", memory(false)],
  ["Telegram", telegram],
])(
  "a thousand deliveries that are open at the start are made, each once, at %s; only what was under way is there twice, and says so",
  async (_name, open) => {
    const there = await open();
    const { kit, texts } = there;
    const { threads, underWay, hold, letGo, untilDone, repeated } = await openThousand(there);
    const again = hold(0);
    await kit.restart();
    letGo();
    await kit.until(() => expect(repeated()).toHaveLength(underWay.length));
    const rows = kit.ports.at(-1)?.sql<{ thread: string }>("SELECT thread FROM perdure_delivery WHERE maybe_twice = 1");
    expect(rows?.map(({ thread }) => thread).toSorted()).toEqual(underWay.toSorted());
    again();
    await untilDone();
    // The life ended while the network did these, and it cannot be asked. No other is there twice.
    for (const thread of threads)
      expect(texts(thread)).toEqual(Array(underWay.includes(thread) ? 2 : 1).fill(`For ${thread}`));
    expect(repeated().toSorted()).toEqual(underWay.toSorted());
  },
  120_000,
);

test.each([
  ["memory", memory(false)],
  ["Telegram", telegram],
  ["Slack", slack],
])(
  "a host that is given time to stop waits for what is under way: none of a thousand is at %s twice",
  async (_name, open) => {
    const there = await open({ graceMs: 30_000 });
    const { kit, texts } = there;
    const { threads, letGo, untilDone, repeated } = await openThousand(there);
    const restarted = kit.restart();
    letGo();
    await restarted;
    await untilDone();
    for (const thread of threads) expect(texts(thread)).toEqual([`For ${thread}`]);
    expect(repeated()).toEqual([]);
    expect(there.asked()).toEqual([]);
  },
  120_000,
);

test.each([
  ["memory", memory(true)],
  ["Slack", slack],
])(
  "where the network can be asked, of a thousand open deliveries none is there twice: %s",
  async (_name, open) => {
    const there = await open();
    const { kit, texts } = there;
    const { threads, underWay, letGo, untilDone, repeated } = await openThousand(there);
    await kit.host.stop();
    // The network has done these when nobody is there to hear of it.
    letGo();
    await vi.waitFor(() => expect(underWay.flatMap((thread) => texts(thread))).toHaveLength(PLACES));
    await kit.restart();
    await untilDone();
    for (const thread of threads) expect(texts(thread)).toEqual([`For ${thread}`]);
    expect(there.asked().toSorted()).toEqual(underWay.toSorted());
    expect(repeated()).toEqual([]);
  },
  120_000,
);
