import { format, type Section, type Table } from "../foundation/section.ts";
import { analysis } from "./analysis.ts";
import { coding } from "./coding.ts";
import type { Conversation } from "./conversation.ts";
import { play, type Played } from "./play.ts";
import type { SummariserKind } from "./summarisers.ts";
import { support } from "./support.ts";

const WINDOWS = [16_000, 64_000, 200_000] as const;
const SUMMARISERS = ["faithful", "lossy", "forgetful"] as const;
const PER_THOUSAND = 1_000;

/** What a model is sent of long conversations: how much of it is of use, what it costs, and what is forgotten. */
export const context: Section = {
  title: "Context",
  notes: [
    "Three conversations that are made by code, the same in every run, held with `Think` as it comes and a model that plays a script; each request that the model is sent is looked at. Tokens are what `estimateTokens` says.",
    "Useful: the share of all tokens sent that are not in a stale output. An output of a tool is stale when a later one, seen by then, shows the same: the same file, folder, search, test command, query, table or order. A note in the place of an output is not stale; nothing but outputs is.",
    "Price: thousands of tokens for each turn, summaries included. A token that the provider reads anew counts 1, one in its cache 0.1, one that the model says 5. In the cache is the longest beginning that a request shares with the one before it.",
    "Recall: of all facts that were planted up to then and that no later one replaces, those whose exact words are in the requests of the last three turns; then the same for facts that the user said and for those that a tool told (the assistant had repeated these once).",
    "Figures: the same conversation with a useless number in every other sentence of all that is said, so that facts do not stand out by having one. At 16k nothing can hold all of that: words that are carried have 2,000 tokens there, and the support chat says some 60,000 tokens of sentences with a number.",
    "Prefix: of requests that follow one another with no summary and no prune in between, how much of the first the second begins with, by tokens.",
    "Faithful writes down each fact that it reads, lossy every third fact of each kind, forgetful nothing but general words; failing never answers. Lost is a turn that did not end with its answer. The model refuses what is longer than its window.",
  ],
  async run(say) {
    const rows: (readonly string[])[] = [];
    const measure = async (conversation: Conversation, window: number, kind: SummariserKind) => {
      const row = toRow(conversation, window, kind, await play(conversation, window, kind));
      rows.push(row);
      say(row.join(", "));
    };
    for (const make of [coding, support, analysis]) {
      for (const window of WINDOWS) {
        const kinds: readonly SummariserKind[] = window === WINDOWS[0] ? [...SUMMARISERS, "failing"] : SUMMARISERS;
        for (const kind of kinds) await measure(make(), window, kind);
        await measure(make(true), window, "lossy");
      }
    }
    return { head: HEAD, rows } satisfies Table;
  },
};

const HEAD = [
  ...["conversation", "window", "summaries by", "useful", "price", "summaries", "prunes"],
  ...["recall", "of the user", "of tools", "prefix", "turns lost"],
];

function toRow({ name }: Conversation, window: number, kind: SummariserKind, played: Played): readonly string[] {
  const { model, writer, recall, turns } = played;
  return [
    ...[name, `${window / PER_THOUSAND}k`, kind],
    percent(1 - model.staleTokens / model.sentTokens),
    format((model.price + writer.price) / turns / PER_THOUSAND),
    ...[String(played.summaries), String(played.prunes)],
    ...[percent(recall.all), percent(recall.of("user")), percent(recall.of("tool"))],
    percent(model.keptTokens / model.prefixTokens),
    `${played.lost} of ${turns}`,
  ];
}

function percent(share: number): string {
  return Number.isNaN(share) ? "" : `${(100 * share).toFixed(1)} %`;
}
