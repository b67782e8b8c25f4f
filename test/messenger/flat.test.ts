// What is known of what came is in rows: memory does not grow with it.
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type Channel, defineMessengers, messenger, type MessengerEvent } from "perdure/messengers";
import { expect, test } from "vitest";
import { ADA, BEN, type Kit, openKit } from "./kit.ts";

const COUNT = 100_000;
/** One in so many is answered, few enough that what their conversations hold is no part of it; the others are delivered again, of people who may not talk, or change what was said. */
const ANSWERED = 1_000;
const THREADS = 20;

function eventOf(at: number): MessengerEvent {
  const isAnswered = at % ANSWERED === 0;
  // Most are of strangers; some are known already.
  const n = at % 10 === 1 ? at - 1 : at;
  const thread = isAnswered ? `many:${(at / ANSWERED) % THREADS}` : "many:8";
  return {
    ...{ kind: at % 10 === 2 ? "edit" : "message", keys: [`k${n}`], thread, dm: true, messageId: `m${n}` },
    ...{ author: { ...(isAnswered ? ADA : BEN), isBot: false }, text: "hi", mentioned: false, files: [] },
  };
}

test(
  "over 100,000 things that come, the memory of the agent that takes them is flat",
  { timeout: 600_000 },
  async () => {
    setFlagsFromString("--expose-gc");
    const gc = runInNewContext("gc") as () => void;
    const begin = Promise.withResolvers<Kit>();
    const done = Promise.withResolvers<void>();
    const heap: number[] = [];
    const channel: Channel = {
      provider: "many",
      limits: { text: 4096, buttonData: 64, editable: true },
      pace: { perPlaceMs: () => 0, perSecond: 1_000_000 },
      self: () => Promise.resolve({ id: "bot", userName: "bot" }),
      parse: (input) => [input as MessengerEvent],
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
          await accept(eventOf(at));
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
              memory: messenger(channel, { allow: ["7"], refusedText: "", limits, coalesceMs: 0 }),
            });
          }
        },
    });
    begin.resolve(kit);
    await done.promise;
    const [{ n } = { n: 0 }] = kit.ports[0]?.sql<{ n: number }>("SELECT count(*) AS n FROM perdure_inbound") ?? [];
    expect(n).toBeGreaterThan(COUNT * 0.7);
    const [, first = 0] = heap;
    console.log("heap in MB after each quarter:", heap.map((bytes) => (bytes / 1e6).toFixed(1)).join(", "));
    // Three quarters of the names would take more than this.
    expect((heap.at(-1) ?? 0) - first).toBeLessThan(4_000_000);
  },
);
