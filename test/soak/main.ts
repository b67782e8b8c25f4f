// npm run soak -- --minutes 10 [--seed N]: mixed load on a host that is killed and started again; then one long life.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Program, startProgram } from "perdure/testing";
import { seeded } from "../support/seeded.ts";
import { Books, compare, putLoadOn } from "./load.ts";

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "10" }, seed: { type: "string", default: "1" } },
});
const TOTAL_MS = Number(values.minutes) * 60_000;
/** In this share of the time the host is killed; the rest is one life, in which nothing may grow. */
const KILLS = 0.5;
/** What is new in a life is not counted: code that is compiled, caches that fill. */
const WARM_UP = 0.15;
const PATIENCE_MS = 120_000;
/** Agents that were looked at last have left memory after this. */
const IDLE_MS = 15_000;
const random = seeded(Number(values.seed));
const dir = mkdtempSync(join(tmpdir(), "perdure-soak-"));
const program = new URL("./program.ts", import.meta.url);
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

type Measure = Readonly<Record<string, number>>;

/** Lives that were ended here. What ends by itself has crashed. */
const ended = new WeakSet<Program>();

async function end(life: Program): Promise<void> {
  ended.add(life);
  await life.kill();
}

async function start(port: number): Promise<{ life: Program; port: number }> {
  const life = startProgram(program, { dir, env: { PORT: String(port), NODE_NO_WARNINGS: "1" } });
  void life.exited.then((how) => {
    if (ended.has(life)) return;
    console.error(`The host ended by itself: ${JSON.stringify(how)}\n${life.output}`);
    process.exit(1);
  });
  const { port: taken } = (await life.waitFor("listening", PATIENCE_MS)) as unknown as { port: number };
  return { life, port: taken };
}

async function measure(life: Program): Promise<Measure> {
  const before = life.facts.filter(({ type }) => type === "measure").length;
  await life.send("measure");
  for (;;) {
    const told = life.facts.filter(({ type }) => type === "measure");
    if (told.length > before) return told.at(-1) as unknown as Measure;
    await pause(20);
  }
}

// What clients say while the host is away.
console.warn = () => undefined;
const begun = Date.now();
const passed = () => (Date.now() - begun) / TOTAL_MS;
const books = new Books();
let { life, port } = await start(0);
const url = `http://127.0.0.1:${port}`;
const load = putLoadOn(url, Number(values.seed), books, () => passed() >= 1);

let kills = 0;
while (passed() < KILLS) {
  await pause(Math.min(4_000 + random(10_000), Math.max(0, (KILLS - passed()) * TOTAL_MS)));
  await end(life);
  kills++;
  ({ life, port } = await start(port));
}
const rows: [string, Measure][] = [];
for (const share of [KILLS + WARM_UP, (KILLS + WARM_UP + 1) / 2, 0.99]) {
  await pause(Math.max(0, (share - passed()) * TOTAL_MS));
  rows.push([`${Math.round(((share - KILLS) * TOTAL_MS) / 1000)} s`, await measure(life)]);
  process.stderr.write(`${Math.round(passed() * 100)} %: ${books.count} acknowledged, ${kills} kills\n`);
}
await load;

// Schedules and turns that were accepted last are still on their way. Lost is what does not come while others do.
let verdict = await compare(url, books);
for (let late = Date.now() + PATIENCE_MS; verdict.lost.length > 0 && Date.now() < late;) {
  await pause(1_000);
  const missing = verdict.lost.length;
  verdict = await compare(url, books);
  if (verdict.lost.length < missing) late = Date.now() + PATIENCE_MS;
}
await pause(IDLE_MS);
rows.push(["idle", await measure(life)]);
await end(life);
const isWhole = verdict.lost.length + verdict.twice.length === 0;
if (isWhole) rmSync(dir, { recursive: true, force: true });

const MIB = 1024 * 1024;
const lines: readonly (readonly [string, (one: Measure) => string])[] = [
  ["memory (RSS, MiB)", ({ rss = 0 }) => String(Math.round(rss / MIB))],
  ["heap after collection (MiB)", ({ heapUsed = 0 }) => (heapUsed / MIB).toFixed(1)],
  ["heap that V8 holds (MiB)", ({ heapTotal = 0 }) => (heapTotal / MIB).toFixed(1)],
  ["outside of the heap (MiB)", ({ external = 0 }) => (external / MIB).toFixed(1)],
  ["handles", ({ handles = 0 }) => String(handles)],
  ["file descriptors", ({ fds = 0 }) => String(fds)],
  ["agents in memory", ({ live = 0 }) => String(live)],
  ["connections", ({ connections = 0 }) => String(connections)],
  ["files on disk", ({ files = 0 }) => String(files)],
  ["bytes on disk (MiB)", ({ bytes = 0 }) => (bytes / MIB).toFixed(1)],
  ["event loop, 99 % (ms)", ({ lagMs = 0 }) => String(lagMs)],
  ["event loop, worst (ms)", ({ worstMs = 0 }) => String(worstMs)],
];
console.log(`\n| in the life without kills, after | ${rows.map(([when]) => when).join(" | ")} |`);
console.log(`| --- | ${rows.map(() => "---").join(" | ")} |`);
for (const [name, show] of lines) console.log(`| ${name} | ${rows.map(([, one]) => show(one)).join(" | ")} |`);
console.log(`\n${books.tried} tried, ${books.failed} refused or cut off, ${books.count} acknowledged, ${kills} kills`);
console.log(`approved calls that say that they were cut off: ${verdict.cut.length}`);
console.log(
  `acknowledged and not found: ${verdict.lost.length}; approved calls that ran twice: ${verdict.twice.length}`,
);
for (const one of [...verdict.lost, ...verdict.twice].slice(0, 20)) console.log(`  ${one}`);
if (!isWhole) console.log(`The directory is kept, to look at: ${dir}`);
process.exit(isWhole ? 0 : 1);
