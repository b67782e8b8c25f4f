import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { withFolder } from "../foundation/agent.ts";
import { percentile } from "../foundation/measure.ts";
import { format, type Section, type Table } from "../foundation/section.ts";
import { PagedClient } from "./client.ts";
import { type LongServer, startServer } from "./server-process.ts";

const TURNS = 10_000;
const WINDOW = 1_000;
const PROMPT = "chunks=10 tag=x";
const KIB = 1024;
const MIB = 1024 ** 2;

/** Ten thousand turns of one agent, really held: what each costs, and what is left on the disk. */
export const manyTurns: Section = {
  title: "Ten thousand turns",
  notes: [
    "One conversation with `Think` in one process, its settings as they come; each turn is a question of 15 letters and an answer of 10 chunks.",
    "Written is every byte that SQLite writes for the agent; file is how much its database has grown, both per turn.",
    "What a turn takes follows how much the model is given: up to 10,000 of these small messages, until they are summarised. It does not follow the conversation.",
    "Other work may have run on the machine: processor times tell more than those of the clock.",
  ],
  run: (say) =>
    withFolder(async (dir) => {
      const server = await startServer(dir, "think");
      const { client } = await PagedClient.open(server.url);
      const windows: Record<string, number>[] = [];
      for (let from = 0; from < TURNS; from += WINDOW) {
        windows.push(await measureWindow(server, client, dir));
        say(`ten thousand turns: ${from + WINDOW} of ${TURNS}`);
      }
      await client.close();
      await server.stop();
      return toTable(windows);
    }),
};

async function measureWindow(server: LongServer, client: PagedClient, dir: string): Promise<Record<string, number>> {
  const before = { ...(await server.figures()), file: fileBytes(dir) };
  const times: number[] = [];
  for (let i = 0; i < WINDOW; i++) times.push((await client.turn(PROMPT)).ms);
  const after = { ...(await server.figures({ memory: true })), file: fileBytes(dir) };
  return {
    "turn, p50, ms": percentile(times, 50),
    "turn, processor of the server, ms": (after.cpuMs - before.cpuMs) / WINDOW,
    "written, KiB": (after.writtenBytes - before.writtenBytes) / WINDOW / KIB,
    "file, bytes": (after.file - before.file) / WINDOW,
    "heap at the end, MiB": after.heapBytes / MIB,
    "process at the end, MiB": after.rssBytes / MIB,
  };
}

/** The first thousand turns, some in the middle and the last. */
function toTable(windows: readonly Readonly<Record<string, number>>[]): Table {
  const last = windows.length - 1;
  const shown = [0, Math.floor(last / 2), last];
  const names = Object.keys(windows[0] ?? {});
  const count = (at: number) => (at * WINDOW).toLocaleString("en-US");
  return {
    head: ["what", ...shown.map((at) => `turns ${count(at)} to ${count(at + 1)}`), "last / first"],
    rows: names.map((name) => {
      const values = shown.map((at) => windows[at]?.[name] ?? Number.NaN);
      return [name, ...values.map(format), `${((values.at(-1) ?? 0) / (values[0] ?? 0)).toFixed(2)}x`];
    }),
  };
}

/** The database alone: its log comes and goes. */
function fileBytes(dir: string): number {
  const folder = join(dir, "agents", "Long");
  // Made by the first write.
  const name = existsSync(folder) ? readdirSync(folder).find((file) => file.endsWith(".db")) : undefined;
  return name === undefined ? 0 : statSync(join(folder, name)).size;
}
