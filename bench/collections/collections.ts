import { cpus, loadavg } from "node:os";
import { configureIndexDevMode } from "@tanstack/db";
import type { Figure, Section } from "../foundation/section.ts";
import { measureEffects } from "./effects.ts";
import { measureWire } from "./wire.ts";

const reading = [
  "Each floor is measured in the same run and in turns with ours, and of both the best round counts (of round trips, the lowest median). Cost is how many times more it takes than the floor; below 1x it takes less.",
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
