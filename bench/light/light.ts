import { loadavg } from "node:os";
import { format, type Section, type Table } from "../foundation/section.ts";
import { historyRows } from "./history.ts";
import { buildPackage, packageRows } from "./package.ts";
import { measurePeers, type PeerFigures, PEERS } from "./peers.ts";
import { aimText, limitOf, type Row, TOLERANCE, verdictOf } from "./row.ts";

/** What a line was before this table was made, as it was measured then, and what is measured of others beside it. */
interface Line {
  readonly before?: string;
  readonly others?: (figures: PeerFigures) => number;
}

const LINES: Readonly<Record<string, Line>> = {
  "the npm package": { before: "4,184" },
  "the npm package, unpacked": { before: "12.3" },
  "a turn with 2,000 stored messages, all sent by its client, p50": {
    before: "26 (4 at none)",
    others: ({ longTurnMs }) => longTurnMs,
  },
  "bytes of that turn to a public client that watches": { before: "672 KB", others: ({ watchedKib }) => watchedKib },
  "first turn over 10,000 messages written as rows": { before: "446" },
};

/** What is measured, in this order. Each in processes of its own. */
const PARTS: readonly { readonly what: string; readonly rows: () => Promise<readonly Row[]> }[] = [
  { what: "the package", rows: packageRows },
  { what: "long conversations", rows: historyRows },
];

/** Start, memory, disk and long histories: each figure beside its floor, with what we aim at. */
export const light: Section = {
  title: "Light",
  notes: [
    "A floor is the same work in the same run: by the least server that holds a chat (`bench/light/floor.ts`: Node, `ws`, SQLite, `streamText`; no resume, no recovery, no sync to the disk), or what is named behind it.",
    "`think` and `ai-chat` are the public servers in plain `workerd`, in the same run, with a client that sends and reads the same; they are measured where a line has a figure of theirs (`--peers=DIR` says where they are).",
    "Before is what was measured when the aims were set, on the same kind of machine, side by side in one run.",
    `Met is a figure within its aim, missed one above it by up to ${Math.round((TOLERANCE - 1) * 100)} %, far one by more; \`npm run bench -- --only=light --check\` ends with 1 when one is far.`,
  ],
  async run(say) {
    const loads = [loadavg()[0] ?? 0];
    say("light: building the package");
    await buildPackage();
    const rows: Row[] = [];
    for (const { what, rows: measure } of PARTS) {
      say(`light: ${what}`);
      rows.push(...(await measure()));
    }
    const folder = process.argv.find((one) => one.startsWith("--peers="))?.slice("--peers=".length);
    const peers = await measurePeers(folder, (text) => say(`light: ${text}`));
    loads.push(loadavg()[0] ?? 0);
    const load = `The machine had a load of ${loads.map(format).join(" at the start and ")} at the end.`;
    return { ...toTable(rows, peers), notes: [load], far: farIn(rows) };
  },
};

function farIn(rows: readonly Row[]): string[] {
  const far = rows.filter((row) => verdictOf(row) === "far");
  return far.map((row) => `${row.what}: ${format(row.ours)} ${row.unit}, aim ${aimText(row)}`);
}

function toTable(rows: readonly Row[], peers: Readonly<Record<string, PeerFigures>>): Table {
  const unmeasured = Object.keys(LINES).filter((what) => rows.every((row) => row.what !== what));
  if (unmeasured.length > 0) throw new Error(`Nothing measures: ${unmeasured.join("; ")}.`);
  return {
    head: ["what", "unit", "before", "ours", "floor", ...PEERS, "aim", "as a figure", "verdict"],
    rows: rows.map((row) => {
      const { before = "", others } = LINES[row.what] ?? {};
      const floor = row.floor === undefined ? "" : format(row.floor);
      const beside = PEERS.map((name) => {
        const figures = peers[name];
        return figures === undefined || others === undefined ? "" : format(others(figures));
      });
      return [
        ...[row.what, row.unit, before, format(row.ours)],
        row.against === undefined ? floor : `${floor} (${row.against})`,
        ...[...beside, aimText(row), format(limitOf(row)), verdictOf(row)],
      ];
    }),
  };
}
