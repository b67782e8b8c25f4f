import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { format, type Section, type Table } from "../foundation/section.ts";
import { type Costs, measureHistory, seed, seededDir } from "./measure.ts";
import type { LongKind } from "./server.ts";

const SIZES = [2_000, 10_000, 100_000];
const ROUNDS = 3;

/** What a long conversation costs, beside a short one. */
export function longHistory(kind: LongKind, name: string, notes: readonly string[]): Section {
  return {
    title: `Long history: ${name}`,
    notes,
    run: (say) =>
      withFolder(async (dir) => {
        const firsts: Costs[] = [];
        const rounds = SIZES.map((): Costs[] => []);
        for (const count of SIZES) {
          say(`${name}: ${count} messages are written`);
          firsts.push(await seed(seededDir(dir, kind, count), kind, count));
        }
        // In turns, so that a busy moment of the machine meets all sizes.
        for (let round = 0; round < ROUNDS; round++) {
          for (const [i, count] of SIZES.entries()) {
            say(`${name}: ${count} messages, round ${round + 1}`);
            rounds[i]?.push({ ...firsts[i], ...(await measureHistory(seededDir(dir, kind, count), kind, round)) });
          }
        }
        return toTable(rounds);
      }),
  };
}

/** The median of each cost, and how it grows from the first length to the others. */
function toTable(rounds: readonly (readonly Costs[])[]): Table {
  const names = Object.keys(rounds[0]?.[0] ?? {});
  const size = (count: number) => count.toLocaleString("en-US");
  return {
    head: ["what", ...SIZES.map(size), ...SIZES.slice(1).map((count) => `${size(count)} / ${size(SIZES[0] ?? 1)}`)],
    rows: names.map((name) => {
      const values = rounds.map((costs) =>
        percentile(
          costs.map((one) => one[name] ?? Number.NaN),
          50,
        ),
      );
      const [least = Number.NaN] = values;
      return [name, ...values.map(format), ...values.slice(1).map((value) => `${(value / least).toFixed(2)}x`)];
    }),
  };
}

const NOTES = [
  "Messages of 350 bytes on average in one session, written as rows. One client reads in pages of 40 messages, one watches; both are in another process than the host.",
  "A turn is one answer of 50 chunks. Written to disk is every byte that SQLite writes for the agent: its log, and what is copied from that into the database.",
  "Open is from `connect` to the first page, with the agent asleep before: its file is opened and the agent made. Heap is after garbage collection, with what hangs on it.",
  "Other work may have run on the machine: processor times tell more than those of the clock.",
];

/** `Think` with its settings as they come. */
export const longThink = longHistory("think", "Think", [
  ...NOTES,
  "The first turn of all summarises, because nothing of what was written as rows was summarised before. It reads no more than a summary is made of.",
]);

/** `AIChatAgent`, whose app says what the model reads. */
export const longChat = longHistory("chat", "AIChatAgent", [
  ...NOTES,
  "The app gives its model the newest 20 messages, by `getHistory(null, { limit: 20 })`. `this.messages` is the whole conversation, and costs that.",
]);
