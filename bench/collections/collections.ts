import { cpus, loadavg } from "node:os";
import { configureIndexDevMode } from "@tanstack/db";
import type { Figure, Section } from "../foundation/section.ts";
import { measureEffects } from "./effects.ts";
import { measureWire } from "./wire.ts";

const reading = [
  "Each floor is measured in the same run and in turns with ours, and of both the best round counts (of round trips, the lowest median). Cost is how many times more it takes than the floor; below 1x it takes less.",
  "An execution effect reads each call again before it runs, writes `executing` and the result under conditions, and knows what it has run; the floor writes the same two rows without looking. Default settings: 8 calls at a time.",
  "A durable tool call (hold) is three writes one behind the other, each waited for until its writer has read it back: the call, that it is taken, the result. Caller and executor are two readers in one process. The floor is one message there and one back, with the public client and its tail.",
  "A claim is two conditional writes: it is taken, and given back. On Durable Streams whether it was had is known when it is read back.",
  "Both servers are in one process of their own, with their files in a file system in memory: on a disk each write of the stream server waits for it (fsync), which is most of what it takes there.",
];

/** What durable collections cost beside TanStack DB and the client of Durable Streams alone. */
export const collections: Section = {
  title: "Collections",
  // Asked for after it was measured.
  get notes() {
    return [
      ...reading,
      `Load of the machine (average of 1 minute, ${cpus().length} cores): ${loadavg()[0]?.toFixed(1)}.`,
    ];
  },
  async run(say) {
    // In development mode it measures each query to advise indexes.
    configureIndexDevMode({ enabled: false });
    const figures: Figure[] = [];
    for (const measure of [measureEffects, measureWire]) {
      const some = await measure();
      figures.push(...some);
      for (const { what, ours, unit, bare } of some)
        say(`${what}: ${ours.toFixed(2)} ${unit}, floor ${bare?.toFixed(2)}`);
    }
    return figures;
  },
};
