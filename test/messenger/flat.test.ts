// What is known of what came is in rows: memory does not grow with it.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Channel, defineMessengers, messenger, type MessengerEvent } from "perdure/messengers";
import { slackMessenger } from "perdure/messengers/slack";
import { telegramMessenger } from "perdure/messengers/telegram";
import { fakeSlack } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { ADA, BEN, type Kit, openKit } from "./kit.ts";

const COUNT = 100_000;
/** One in so many is answered, few enough that what their conversations hold is no part of it; the others are delivered again, of people who may not talk, or change what was said. */
const ANSWERED = 1_000;
const THREADS = 20;

/** One of many things that come. */
interface One {
  readonly at: number;
  /** What it is known by. */
  readonly n: number;
  /** Who is answered says something in this one of several threads. */
  readonly thread: number | undefined;
  readonly isEdit: boolean;
}

function one(at: number): One {
  const isAnswered = at % ANSWERED === 0;
  return {
    ...{ at, isEdit: at % 10 === 2, thread: isAnswered ? (at / ANSWERED) % THREADS : undefined },
    // Most are of strangers; some are known already.
    n: at % 10 === 1 ? at - 1 : at,
  };
}

interface Network {
  /** What reads it, which is told by the test, and says what it likes. */
  readonly channel: Pick<Channel, "provider" | "parse" | "complete">;
  readonly allowed: string;
  tells(one: One): unknown;
}

const NETWORKS: Readonly<Record<string, () => Promise<Network>>> = {
  async memory() {
    const tells = ({ n, thread, isEdit }: One): MessengerEvent => ({
      ...{ kind: isEdit ? "edit" : "message", keys: [`k${n}`], thread: `many:${thread ?? "8"}`, dm: true },
      ...{ messageId: `m${n}`, author: { ...(thread === undefined ? BEN : ADA), isBot: false } },
      ...{ text: "hi", mentioned: false, files: [] },
    });
    const parse: Channel["parse"] = (input) => [input as MessengerEvent];
    return Promise.resolve({ channel: { provider: "many", parse }, allowed: ADA.id, tells });
  },
  async Telegram() {
    const { channel } = telegramMessenger({ token: "1:fake" });
    const tells = ({ n, thread, isEdit }: One) => {
      const id = thread === undefined ? 8 : 7;
      // Where two talk, a thread is a topic.
      const place = { chat: { id, type: "private" }, is_topic_message: true, message_thread_id: (thread ?? 0) + 1 };
      const message = { message_id: n + 1, date: 1, from: { id, first_name: "N" }, text: "hi", ...place };
      return { update_id: n, ...(isEdit ? { edited_message: { ...message, edit_date: 2 } } : { message }) };
    };
    return Promise.resolve({ channel, allowed: "7", tells });
  },
  async Slack() {
    const slack = await fakeSlack();
    onTestFinished(() => slack.close());
    slack.says("D0", { id: "U7", name: "Ada" }, "hi");
    const { botToken, appToken, url: apiUrl } = slack;
    const { channel } = slackMessenger({ botToken, appToken, apiUrl });
    const tells = ({ at, n, thread, isEdit }: One) => {
      const user = thread === undefined ? "U8" : "U7";
      const place = { channel: `D${thread ?? "8"}`, channel_type: "im" };
      // Each names people whom nobody has heard of.
      const said = { type: "message", user, text: `hi <@U${at}00>`, ts: `${n}.000001` };
      const edited = { type: "message", subtype: "message_changed", message: { ...said, edited: { ts: "9.1" } } };
      const event = isEdit ? { ...edited, ...place } : { ...said, ...place };
      return { payload: { type: "event_callback", event_id: `E${n}`, event }, names: {} };
    };
    return { channel, allowed: "U7", tells };
  },
};

test.each(Object.keys(NETWORKS))(
  "over 100,000 things that come, the memory of the agent that takes them is flat: %s",
  { timeout: 600_000 },
  async (name) => {
    const network = await NETWORKS[name]?.();
    if (network === undefined) throw new Error(name);
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const begin = Promise.withResolvers<Kit>();
    const done = Promise.withResolvers<void>();
    const heap: number[] = [];
    const channel: Channel = {
      provider: network.channel.provider,
      limits: { text: 4096, buttonData: 64, editable: true },
      pace: { perPlaceMs: () => 0, perSecond: 1_000_000 },
      self: () => Promise.resolve({ id: "bot", userName: "bot" }),
      parse: network.channel.parse,
      ...(network.channel.complete !== undefined && { complete: network.channel.complete }),
      create: () => Promise.resolve({ id: "m" }),
      edit: () => Promise.resolve(),
      async listen(accept) {
        const { events, lives, ports, model } = await begin.promise;
        const measure = async () => {
          // Children leave memory when they have nothing to do.
          await new Promise((resolve) => setTimeout(resolve, 500));
          events.length = 0;
          lives.length = 1;
          ports.length = 1;
          (model.calls as unknown[]).length = 0;
          gc();
          heap.push(process.memoryUsage().heapUsed);
        };
        for (let at = 0; at < COUNT; at++) {
          await accept(network.tells(one(at)));
          if (at % (COUNT / 4) === 0) await measure();
        }
        await measure();
        done.resolve();
      },
    };
    const kit = await openKit({
      host: { idleMs: 50 },
      make: (Base) =>
        class extends Base {
          override getMessengers() {
            const limits = { perHour: 1e9, waiting: 1e9 };
            return defineMessengers({
              memory: messenger(channel, { allow: [network.allowed], refusedText: "", limits, coalesceMs: 0 }),
            });
          }
        },
    });
    begin.resolve(kit);
    await done.promise;
    const [{ n } = { n: 0 }] = kit.ports[0]?.sql<{ n: number }>("SELECT count(*) AS n FROM perdure_inbound") ?? [];
    expect(n).toBeGreaterThan(COUNT * 0.7);
    const [, first = 0] = heap;
    console.log(`${name}: heap in MB after each quarter:`, heap.map((bytes) => (bytes / 1e6).toFixed(1)).join(", "));
    // Three quarters of the names would take more than this.
    expect((heap.at(-1) ?? 0) - first).toBeLessThan(4_000_000);
  },
);
