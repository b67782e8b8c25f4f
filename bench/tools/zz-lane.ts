import { Machine } from "../../src/sandbox/quickjs/node/machine.ts";
import { loadEngine } from "../../src/sandbox/quickjs/node/engine.ts";
import { DEFAULT_LIMITS } from "../../src/sandbox/sandbox.ts";
const engine = await loadEngine(64);
const seq = `let sum = 0; for (let i = 0; i < 5000; i++) sum = await tools.add({ a: sum, b: 1 }); return sum;`;
const par = `return (await Promise.all(Array.from({ length: 5000 }, (_, a) => tools.add({ a, b: 1 })))).length;`;
const warm = `const rows = Array.from({ length: 50 }, (_, id) => ({ id, price: (id * 37) % 100 })); return rows.length`;
const how = process.argv[2]!;
const rounds = how === "warm" ? 300 : 6;
for (let r = 0; r < rounds; r++) {
  const b = performance.now();
  const counts: Record<string, number> = {};
  await new Promise<void>((resolve) => {
    const m: Machine = new Machine({ type: "start", run: 1, engine, limits: { ...DEFAULT_LIMITS, toolCalls: 6000, cpuMs: 60000 }, used: { cpuMs: 0, toolCalls: 0, outputBytes: 0 }, modules: {}, language: "ts", code: { seq, par, warm }[how]!, input: "null", world: { tools: { tools: ["add"] }, files: null, network: false, env: null }, keep: false }, (msg) => {
      counts[msg.type] = (counts[msg.type] ?? 0) + 1;
      if (msg.type === "call") setImmediate(() => { const { a, b } = JSON.parse(msg.args); m.answer({ call: msg.call, value: String(a + b) }); });
      if (msg.type === "done") { if (msg.outcome.status !== "ok") console.log(msg.outcome); resolve(); }
    });
    void m.begin();
  });
  if (r % 50 === 5 || how !== "warm") console.log(((performance.now() - b) * (how === "warm" ? 1 : 1 / 5)).toFixed(2), how === "warm" ? "ms" : "us per call", JSON.stringify(counts));
}
