import { Think } from "perdure";
import { createHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { mkdtempSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
const model = scriptedModel(() => "Hello there.");
function sizes(dir: string): string[] { return readdirSync(dir, { recursive: true, withFileTypes: true } as any).filter((e: any) => e.isFile()).map((e: any) => `${e.name} ${statSync(join(e.parentPath, e.name)).size}`); }
for (const round of [0, 1]) for (const tools of [true, false]) {
  class A extends Think { override workspaceTools = (tools ? {} : false) as any; override getModel() { return model; } async say(n: number) { await this.runTurn({ input: { id: `u${n}`, role: "user", parts: [{ type: "text", text: `hi ${n}` }] } } as any); } ping() { return 1; } }
  const dir = mkdtempSync("/tmp/breaker2/cost-");
  let commits = 0;
  const host = createHost({ agents: { A }, dir, onCommit: () => commits++ } as any);
  await host.getAgentByName(A, "empty").ping();
  const c0 = commits;
  const a = host.getAgentByName(A, "one");
  await a.say(0);
  const c1 = commits - c0;
  const t = performance.now();
  const N = 150;
  for (let i = 1; i <= N; i++) await a.say(i);
  const ms = performance.now() - t;
  console.log({ round, tools, start: c0, firstTurn: c1, commitsPerTurn: (commits - c0 - c1) / N, turnsPerS: (N / ms * 1000).toFixed(0) });
  await host.stop();
  console.log(sizes(dir).join(" | "));
}
process.exit(0);
