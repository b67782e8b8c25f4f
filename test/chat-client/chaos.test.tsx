import { openTab, type Tab } from "./harness.tsx";
import { expect, test } from "vitest";
import { eventually } from "../clients/harness.ts";
import { startTalk } from "./talk.ts";

/*
 * Two tabs do whatever comes: send, stop, regenerate, lose the line, reload. Whatever the order, in the end both show
 * what is stored, and no render on the way showed an id twice.
 *
 * The hook is not made for several requests of one tab at once. On the way, a tab that regenerates twice, or stops one
 * of two, can show more answers than questions until the next transcript; hence `stray`.
 */

const SEEDS = (process.env.CHAOS_SEEDS ?? "1,5,25,92,105,117").split(",").map(Number);
const STEPS = 25;
const ANY = { stray: Number.POSITIVE_INFINITY };

/** Numbers that look random and are the same every time. */
function dice(seed: number): (sides: number) => number {
  let state = seed * 2654435761;
  return (sides) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) | 0;
    return Math.abs(state >> 4) % sides;
  };
}

for (const seed of SEEDS) {
  test(`whatever happens, seed ${seed}`, async () => {
    const roll = dice(seed);
    let sent = 0;
    const { host, agent, clock } = await startTalk({
      script: ({ userText }) => ({ text: ["re ", userText, " and ", "so ", "on"], delayMs: 1 }),
    });
    const tabs: Tab[] = [await openTab(host, ANY), await openTab(host, ANY)];
    const log: string[] = [];
    for (let step = 0; step < STEPS; step++) {
      const which = roll(2);
      const tab = tabs[which];
      if (tab === undefined) throw new Error("no tab");
      const what = roll(12);
      log.push(`${which}:${what}`);
      if (what < 3) tab.send(`m${++sent}`);
      else if (what === 3) void tab.chat().stop();
      else if (what === 4 && tab.chat().messages.length > 0) void tab.chat().regenerate();
      else if (what === 5) tab.line.cut();
      else if (what === 6) tab.line.mend();
      else if (what === 7) {
        await tab.unmount();
        tabs[which] = await openTab(host, ANY);
      } else await clock.advance(roll(3) + 1);
      await new Promise((resolve) => setTimeout(resolve, roll(15)));
    }
    for (const tab of tabs) tab.line.mend();
    // Not faster than a model: the AI SDK takes some turns of the event loop per piece, and writes late what comes at once.
    const rest = setInterval(() => void clock.advance(1), 10);
    try {
      await eventually(async () => expect(await agent.waitUntilStable({ timeout: 50 })).toBe(true));
      for (const tab of tabs) {
        await tab.waitFor(
          ({ status, isServerStreaming }) => (status === "ready" || status === "error") && !isServerStreaming,
        );
        const shape = (messages: readonly { id: string; parts: readonly unknown[] }[]) =>
          messages.map(({ id, parts }) => [id, JSON.stringify(parts).match(/"text":"[^"]*"/g)]);
        await eventually(async () =>
          expect(shape(tab.chat().messages), log.join(" ")).toEqual(shape(await agent.stored())),
        );
      }
    } finally {
      clearInterval(rest);
    }
  });
}
