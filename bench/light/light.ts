import { loadavg } from "node:os";
import { format, type Section, type Table } from "../foundation/section.ts";
import { chatRows, type PeerFigures, PEERS } from "./chat.ts";
import { childrenRows } from "./children.ts";
import { fileRows } from "./file.ts";
import { historyRows } from "./history.ts";
import { manyRows } from "./many.ts";
import { buildPackage, packageRows } from "./package.ts";
import { aimText, limitOf, type Row, TOLERANCE, verdictOf } from "./row.ts";
import { stepRows } from "./steps.ts";

/** What a line was before this table was made, as it was measured then. */
const BEFORE: Readonly<Record<string, string>> = {
  "process start to first turn done": "806–988",
  "import of `perdure` and `perdure/node`, built": "370–440",
  "memory of the process at start": "207",
  "memory per connected idle agent, of 2,000": "38–46",
  "new agent: connect to first chunk, p50": "17",
  "first chunk of a new conversation's fast reply, `Think`, p50": "14.3, with the end",
  "50 new conversations with a tool at once, `Think`, p50": "759",
  "file of an agent with one message and its answer": "224",
  "written to disk for an answer of 10 KiB, `Think`": "134",
  "a turn with 2,000 stored messages, all sent by its client, p50": "26, 4 at none",
  "bytes of that turn to a public client that watches": "672 KB",
  "3 tool steps and a text, `Think`, p50": "12.1, 8.9 `AIChatAgent`",
  "runs of children to their end, 50 at a time": "144",
  "first turn over 10,000 messages written as rows": "446",
  "the npm package": "4,184",
  "the npm package, unpacked": "12.3",
};

/** What is measured of the public servers beside lines of these names. */
const BESIDE: Readonly<Record<string, (figures: PeerFigures) => number>> = {
  "a turn with 2,000 stored messages, all sent by its client, p50": ({ longTurnMs }) => longTurnMs,
  "bytes of that turn to a public client that watches": ({ watchedKib }) => watchedKib,
  "3 tool steps and a text, `Think`, p50": ({ stepsMs }) => stepsMs,
};

/** What is measured of ours, in this order. */
const PARTS: readonly { readonly what: string; readonly rows: () => Promise<readonly Row[]> }[] = [
  { what: "the package", rows: packageRows },
  { what: "files of agents", rows: fileRows },
  { what: "long conversations", rows: historyRows },
  { what: "steps and what they write", rows: stepRows },
  { what: "children", rows: childrenRows },
  { what: "many agents", rows: manyRows },
];

/** Start, memory, disk and long histories: each figure beside its floor, with what we aim at. */
export const light: Section = {
  title: "Light",
  notes: [
    "A floor is the same work in the same run: by the least server that holds a chat (`bench/light/floor.ts`: Node, `ws`, SQLite, `streamText`; no resume, no recovery, no sync to the disk), or what is named behind it.",
    "`think` and `ai-chat` are the public servers in plain `workerd`, in the same run, with a client that sends and reads the same; they are measured where a line has a figure of theirs (`--peers=DIR` says where they are).",
    "Before is what was measured when the aims were set, by hand and on another machine of two cores.",
    `Met is a figure within its aim, missed one above it by up to ${Math.round((TOLERANCE - 1) * 100)} %, far one by more; \`npm run bench -- --only=light --check\` ends with 1 when one is far.`,
  ],
  async run(say) {
    const loads = [loadavg()[0] ?? 0];
    say("light: building the package");
    await buildPackage();
    const folder = process.argv.find((one) => one.startsWith("--peers="))?.slice("--peers=".length);
    const { rows, peers } = await chatRows(folder, (text) => say(`light: ${text}`));
    for (const { what, rows: measure } of PARTS) {
      say(`light: ${what}`);
      rows.push(...(await measure()));
    }
    loads.push(loadavg()[0] ?? 0);
    const load = `The machine had a load of ${loads.map(format).join(" at the start and ")} at the end.`;
    const named = new Set(rows.map(({ what }) => what));
    const absent = [...Object.keys(BEFORE), ...Object.keys(BESIDE)].filter((what) => !named.has(what));
    const lost = absent.length > 0 ? [`Not measured in this run: ${[...new Set(absent)].join("; ")}.`] : [];
    return { ...toTable(rows, peers), notes: [load, ...lost], far: farIn(rows) };
  },
};

function farIn(rows: readonly Row[]): string[] {
  const far = rows.filter((row) => verdictOf(row) === "far");
  return far.map((row) => `${row.what}: ${format(row.ours)} ${row.unit}, aim ${aimText(row)}`);
}

function toTable(rows: readonly Row[], peers: ReadonlyMap<string, PeerFigures>): Table {
  return {
    head: ["what", "unit", "before", "ours", "floor", ...PEERS, "aim", "as a figure", "verdict"],
    rows: rows.map((row) => {
      const floor = row.floor === undefined ? "" : format(row.floor);
      const beside = PEERS.map((name) => {
        const figures = peers.get(name);
        const other = row.others?.[name] ?? (figures === undefined ? undefined : BESIDE[row.what]?.(figures));
        return other === undefined ? "" : format(other);
      });
      return [
        ...[row.what, row.unit, BEFORE[row.what] ?? "", format(row.ours)],
        row.against === undefined ? floor : `${floor} (${row.against})`,
        ...[...beside, aimText(row), format(limitOf(row)), verdictOf(row)],
      ];
    }),
  };
}
