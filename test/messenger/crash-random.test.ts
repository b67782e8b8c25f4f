// Ada talks for a minute, each message is delivered ten times, and the process is killed at random all the while.
import { crashRun, type CrashScenario, type Death } from "perdure/testing";
import { expect, test } from "vitest";
import { isWhole, MATRIX_MS, ofType } from "../crash/drive.ts";
import { seeded } from "../support/seeded.ts";
import { answerTo } from "./crash-ada.ts";
import { scenario, slackScenario, strays, telegramScenario } from "./crash-kit.ts";
import type { MessengerLook } from "./crash-program.ts";

const TALK_MS = isWhole ? 60_000 : 3_000;
/** More than there is time for: the run ends when all is said and answered. */
const MOST_DEATHS = 2_000;
/** A life that ends by time does not always come to listen. */
const LIFE_MS = 700;
const MOST_COMMITS = 30;

type Open = (more: Readonly<Record<string, string>>) => CrashScenario<MessengerLook>;
const NETWORKS: readonly (readonly [string, boolean, Open])[] = [
  ["memory, which can be asked", false, (more) => scenario({ ...more, FINDS: "1" })],
  ["memory, which cannot", true, (more) => scenario({ ...more, FINDS: "0" })],
  ["Telegram", true, (more) => telegramScenario(more, 10)],
  ["Telegram by webhook", true, (more) => telegramScenario({ ...more, WEBHOOK: "1" }, 10)],
  ["Slack", false, (more) => slackScenario(more, 10)],
  ["Slack by webhook", false, (more) => slackScenario({ ...more, WEBHOOK: "1" }, 10)],
];

/** After some commit of the life, or at some time of it. */
function deathsOf(seed: number): Death[] {
  const random = seeded(seed);
  return Array.from({ length: MOST_DEATHS }, (): Death => {
    if (random(3) > 0) return { commit: 1 + random(MOST_COMMITS) };
    const ms = random(LIFE_MS);
    return { when: () => new Promise((resolve) => setTimeout(resolve, ms)) };
  });
}

test(
  "much is said, each message ten times, while the process is killed at random: one turn and one answer each, none lost",
  { timeout: MATRIX_MS },
  async () => {
    const from = Date.now();
    const MANY = JSON.stringify({ from, until: from + TALK_MS });
    const runs = NETWORKS.map(async ([name, mayRepeat, open], seed) => {
      const { died, last, result } = await crashRun({ ...open({ MANY }), deaths: deathsOf(seed), timeoutMs: 180_000 });
      const { said, asked, answers, seen, deliveries, inbound } = result;
      const facts = [...died.flatMap((life) => life.facts), ...last.facts];
      expect(ofType(facts, "failed"), name).toEqual([]);
      expect(died.length, name).toBeGreaterThan(0);
      // Networks that deliver again may change the order. What was taken first is answered first.
      expect(asked.toSorted(), name).toEqual(said.toSorted());
      expect([inbound, answers], name).toEqual([said.length, said.length]);
      const others = strays(seen, asked.map(answerTo));
      // Only what was being made when the process died may be there twice, and its row says so.
      const repeated = deliveries.filter(({ maybeTwice }) => Boolean(maybeTwice)).length;
      expect(repeated, name).toBeLessThanOrEqual(mayRepeat ? died.length : 0);
      expect(new Set(others).size, `${name}: ${others.join()}`).toBeLessThanOrEqual(repeated);
      expect(others.length, name).toBeLessThanOrEqual(mayRepeat ? died.length : 0);
      expect(
        deliveries.map(({ state }) => state),
        name,
      ).toEqual(said.map(() => "done"));
      return `${name}: ${died.length} kills, ${said.length} messages, ${others.length} twice`;
    });
    const ends = await Promise.allSettled(runs);
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  },
);
