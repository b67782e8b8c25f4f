// `npm run bench` measures and prints; `--write` also updates RESULTS.md, `--only=call` measures sections of that title,
// `--only=stall --input=rows` one kind of input. `--only=light` takes `--peers=DIR`, a folder with other servers to measure beside
// ours, and `--check`, which ends with 1 when a figure is far from its aim.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, totalmem, type } from "node:os";
import { backup } from "./backup/backup.ts";
import { callPaths } from "./chat/call-paths.ts";
import { collections } from "./collections/collections.ts";
import { context } from "./context/context.ts";
import { foundation } from "./foundation/foundation.ts";
import { replaceSection, toMarkdown } from "./foundation/section.ts";
import { longChat, longThink } from "./history/history.ts";
import { manyTurns } from "./history/turns.ts";
import { light } from "./light/light.ts";
import { children } from "./together/children.ts";
import { stall } from "./stall/stall.ts";
import { tools } from "./tools/tools.ts";

const results = new URL("./RESULTS.md", import.meta.url);
const head = "# Results\n\nMeasured by `npm run bench -- --write`. Ratios travel between machines, rates do not.\n";

const only = process.argv.find((one) => one.startsWith("--only="))?.slice("--only=".length);

for (const section of [
  foundation,
  callPaths,
  children,
  longThink,
  longChat,
  manyTurns,
  tools,
  collections,
  stall,
  context,
  light,
  backup,
]) {
  if (only !== undefined && !section.title.toLowerCase().includes(only)) continue;
  const measured = await section.run((line) => process.stderr.write(`  ${line}\n`));
  const text = toMarkdown(section, measured, machine());
  process.stdout.write(`\n${text}\n`);
  const far = "far" in measured ? (measured.far ?? []) : [];
  if (process.argv.includes("--check") && far.length > 0) {
    for (const line of far) process.stderr.write(`far from its aim: ${line}\n`);
    process.exitCode = 1;
  }
  if (!process.argv.includes("--write")) continue;
  const before = existsSync(results) ? readFileSync(results, "utf8") : head;
  writeFileSync(results, replaceSection(before, section.title, text));
}

function machine(): string {
  const cores = cpus();
  const model = cores[0]?.model.trim() ?? "unknown";
  const gib = Math.round(totalmem() / 1024 ** 3);
  const day = new Date().toISOString().slice(0, 10);
  return `${day}, Node ${process.versions.node}, ${type()}, ${cores.length} x ${model}, ${gib} GiB.`;
}
