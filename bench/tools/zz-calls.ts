import { createQuickJsSandbox } from "perdure";
const sandbox = createQuickJsSandbox();
const can = { tools: { tools: { add: (x: any) => x.a + x.b } } };
const seq = `let sum = 0; for (let i = 0; i < 5000; i++) sum = await tools.add({ a: sum, b: 1 }); return sum;`;
const par = `return (await Promise.all(Array.from({ length: 5000 }, (_, a) => tools.add({ a, b: 1 })))).length;`;
for (const [n, code] of [["seq", seq], ["par", par]] as const) if (n === process.argv[2]) for (let r = 0; r < 6; r++) { const b = performance.now(); const cpu = process.cpuUsage(); const x = await sandbox.run({ language: "js", code, can, limits: { toolCalls: 6000, cpuMs: 60000 } }); const c = process.cpuUsage(cpu); console.log(n, x.status, ((performance.now() - b) / 5).toFixed(1), "us per call; cpu", ((c.user + c.system) / 5000).toFixed(1)); }
await sandbox.dispose();
