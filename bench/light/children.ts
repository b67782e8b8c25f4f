import { measureChildren } from "../together/children.ts";
import type { Row } from "./row.ts";

/** A thousand runs of children of one agent, in the process that measures. */
export async function childrenRows(): Promise<Row[]> {
  const { alone, ended, stoppedMs } = await measureChildren(() => {});
  return [
    {
      what: "runs of children to their end, 50 at a time",
      ...{ unit: "runs/s", ours: ended, floor: alone, against: "turns of agents that are nobody's children" },
      aim: { atLeast: 500 },
    },
    {
      what: "1,000 running children stopped, their ends stored",
      ...{ unit: "ms", ours: stoppedMs },
      aim: { atMost: 1_000 },
    },
  ];
}
