import { crashMatrix, crashRun, type Program } from "perdure/testing";
import { expect, test } from "vitest";
import { allFacts, expectCovered, MATRIX_MS, ofType } from "../../crash/drive.ts";
import { strays } from "../crash-kit.ts";
import { chats, scenario } from "./crash-kit.ts";
import { NETWORKS, type NetworkName } from "./networks.ts";

test.each(Object.keys(NETWORKS) as NetworkName[])(
  "a conversation through the adapter for %s, killed after every commit: nothing is lost, and only what was being made may be there twice",
  { timeout: MATRIX_MS },
  async (name) => {
    const matrix = await crashMatrix({
      ...{ ...scenario(name), slack: 20, concurrency: 3 },
      check(outcome) {
        const { result } = outcome.after;
        const expected = outcome.reference.result;
        expect(ofType(allFacts(outcome), "failed")).toEqual([]);
        const others = strays(result.seen, expected.seen);
        // Only what was being made when the process died may be there twice, and the rows say so. It may show words that
        // stand in the next message in the end.
        const from = (at: number) => expected.seen.slice(at).join("\n\n");
        expect(others.length).toBeLessThanOrEqual(name === "github" ? 0 : 1);
        for (const one of others) expect(expected.seen.some((_, at) => from(at).startsWith(one))).toBe(true);
        const repeated = result.deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
        expect(repeated).toBeGreaterThanOrEqual(others.length);
        expect(result.deliveries.every(({ state }) => state === "done")).toBe(true);
        expect([result.inbound, result.turns, result.ran]).toEqual([expected.inbound, expected.turns, 1]);
      },
    });
    expect(matrix.reference.result.inbound).toBe(2);
    expectCovered(matrix, 10);
  },
);

test.each(Object.keys(NETWORKS) as NetworkName[])(
  "%s: killed as soon as the network was told that we have a message, it is answered",
  { timeout: MATRIX_MS },
  async (name) => {
    const deaths = [
      {
        async when(child: Program) {
          await child.waitFor(({ type }) => type === "serves");
          const chat = await chats.get(child.dir);
          while (chat?.taken === 0) await new Promise((resolve) => setTimeout(resolve, 1));
        },
      },
    ];
    const reference = await crashRun({ ...scenario(name), deaths: [] });
    const { result } = await crashRun({ ...scenario(name), deaths });
    expect(strays(result.seen, reference.result.seen).length).toBeLessThanOrEqual(name === "github" ? 0 : 1);
    expect([result.inbound, result.ran]).toEqual([2, 1]);
  },
);
