// npm run fuzz -- --seed N --count M [--runs R]
import { parseArgs } from "node:util";
import { fuzz } from "./run.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    count: { type: "string", default: "10000" },
    runs: { type: "string", default: "1" },
  },
});
const all = new Map<string, number>();
let sent = 0;
for (let run = 0; run < Number(values.runs); run++) {
  const seed = Number(values.seed) + run;
  const told = await fuzz(seed, Number(values.count));
  sent += told.sent;
  for (const [kind, count] of told.kinds) all.set(kind, (all.get(kind) ?? 0) + count);
  console.log(`seed ${seed}: ${told.sent} sent, all promises held`);
}
console.log(`${sent} in all: ${[...all].map(([kind, count]) => `${kind} ${count}`).join(", ")}`);
