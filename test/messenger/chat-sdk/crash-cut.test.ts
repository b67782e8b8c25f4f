// The process dies in the middle of a call of an adapter, which has done what it was asked.
import { crashRun } from "perdure/testing";
import { expect, test } from "vitest";
import { MATRIX_MS } from "../../crash/drive.ts";
import { strays } from "../crash-kit.ts";
import { scenario } from "./crash-kit.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";

const died = { when: (child: { readonly exited: Promise<unknown> }) => child.exited };
const cases = (Object.keys(NETWORKS) as NetworkName[]).flatMap((name) =>
  ["create:1", "create:3", "edit:1"].map((KILL_IN) => ({ name, KILL_IN })),
);

test.each(cases)(
  "$name: killed when the network has done $KILL_IN and nobody has heard of it",
  { timeout: MATRIX_MS },
  async ({ name, KILL_IN }) => {
    const reference = await crashRun({ ...scenario(name), deaths: [] });
    const run = await crashRun({ ...scenario(name, { KILL_IN }), deaths: [died] });
    expect(run.died).toHaveLength(1);
    const others = strays(run.result.seen, reference.result.seen);
    // A change may be made again; of what was made, only GitHub can be asked.
    const mayRepeat = KILL_IN.startsWith("create") && name !== "github";
    expect(others.length).toBeLessThanOrEqual(mayRepeat ? 1 : 0);
    for (const one of others) expect(reference.result.seen.some((text) => text.startsWith(one))).toBe(true);
    const { deliveries, inbound, ran } = run.result;
    expect(deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length).toBe(mayRepeat ? 1 : 0);
    expect(deliveries.every(({ state }) => state === "done")).toBe(true);
    expect([inbound, ran]).toEqual([2, 1]);
  },
);
