// A thousand deliveries that are open when the life ends.
import { expect, test, vi } from "vitest";
import { openKit } from "./kit.ts";

/** As many as an agent serves side by side. */
const PLACES = 8;

/** A thousand notices, of which some are stored as sent and some are under way. The rest of the test lets these go on. */
async function openThousand(options: Parameters<typeof openKit>[0] = {}) {
  const kit = await openKit(options);
  const [root] = kit.lives;
  const STORED = 50;
  const hold = (skip: number) => {
    const gate = Promise.withResolvers<void>();
    for (let i = 0; i < PLACES; i++)
      kit.network.plan("create", { kind: "held", until: gate.promise }, i === 0 ? skip : 0);
    return gate.resolve;
  };
  const letGo = hold(STORED);
  const threads = Array.from({ length: 1_000 }, (_, i) => `memory:${1_000 + i}`);
  for (const thread of threads) await root?.deliverNotice(`For ${thread}`, { channel: "memory", thread });
  const idsOf = () =>
    kit.ports[0]?.sql<{ thread: string }>(
      `SELECT thread FROM perdure_delivery_part JOIN perdure_delivery ON seq = delivery WHERE provider_id IS NOT NULL`,
    ) ?? [];
  await kit.until(() => expect(idsOf()).toHaveLength(STORED));
  const stored = idsOf().map(({ thread }) => thread);
  const called = () => kit.network.calls.filter(({ op }) => op === "create").map(({ thread }) => thread);
  await kit.until(() => expect(called()).toHaveLength(STORED + PLACES));
  const underWay = called().filter((thread) => !stored.includes(thread));
  const open = () => kit.lives.at(-1)?.listDeliveries({ state: "open" }).length;
  const untilDone = () => vi.waitFor(() => expect(open()).toBe(0), { timeout: 30_000, interval: 50 });
  const repeated = () =>
    kit.events
      .filter(({ type }) => type === "delivery:repeated")
      .map(({ payload }) => (payload as { thread: string }).thread);
  return { kit, threads, underWay, hold, letGo, untilDone, repeated };
}

test("a thousand deliveries that are open at the start are made, each once; only what was under way is there twice, and says so", async () => {
  const { kit, threads, underWay, hold, letGo, untilDone, repeated } = await openThousand();
  expect(underWay).toHaveLength(PLACES);
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
    expect(kit.texts(thread)).toEqual(Array(underWay.includes(thread) ? 2 : 1).fill(`For ${thread}`));
  expect(repeated().toSorted()).toEqual(underWay.toSorted());
}, 60_000);

test("a host that is given time to stop waits for what is under way: none of a thousand is there twice", async () => {
  const { kit, threads, underWay, letGo, untilDone, repeated } = await openThousand({ host: { graceMs: 30_000 } });
  expect(underWay).toHaveLength(PLACES);
  const restarted = kit.restart();
  letGo();
  await restarted;
  await untilDone();
  for (const thread of threads) expect(kit.texts(thread)).toEqual([`For ${thread}`]);
  expect(repeated()).toEqual([]);
}, 60_000);

test("where the network can be asked, of a thousand open deliveries none is there twice", async () => {
  const { kit, threads, underWay, letGo, untilDone, repeated } = await openThousand({ network: { finds: true } });
  expect(underWay).toHaveLength(PLACES);
  await kit.host.stop();
  // The network has done these when nobody is there to hear of it.
  letGo();
  await vi.waitFor(() => expect(underWay.flatMap((thread) => kit.texts(thread))).toHaveLength(PLACES));
  await kit.restart();
  await untilDone();
  for (const thread of threads) expect(kit.texts(thread)).toEqual([`For ${thread}`]);
  const asked = kit.network.calls.filter(({ op }) => op === "find").map(({ thread }) => thread);
  expect(asked.toSorted()).toEqual(underWay.toSorted());
  expect(repeated()).toEqual([]);
}, 60_000);
