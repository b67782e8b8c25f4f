import { join } from "node:path";
import { mkdtempSync } from "node:fs";
import { Agent, type AgentHost, Workspace, createWorkspaceTools } from "perdure";
import { createHost } from "perdure/node";
let given: AgentHost | undefined;
class Files extends Agent { constructor(host: AgentHost) { super(host); given = host; } ping(): void {} }
const host = createHost({ agents: { Files }, dir: mkdtempSync("/tmp/bt/h-"), idleMs: 1e9 });
await host.getAgentByName(Files, "one").ping();
const ws = new Workspace({ host: given! });
const what = process.argv[2];
const time = async (n: string, w: () => unknown) => { const b = performance.now(); await w(); console.log(n, (performance.now() - b).toFixed(1)); };
if (what === "mark") {
  for (let n = 0; n < 1000; n++) await ws.writeFile(`/points/${n}.md`, "x");
  for (let r = 0; r < 10; r++) await time("100 marks", () => { for (let i = 0; i < 100; i++) ws.mark(`m${r}-${i}`); });
}
if (what === "restore") {
  for (let n = 0; n < 1000; n++) await ws.writeFile(`/points/${n}.md`, "x".repeat(200));
  for (let r = 0; r < 10; r++) {
    ws.mark("before");
    for (let n = 0; n < 1000; n++) await ws.writeFile(`/points/${n}.md`, "changed");
    await time("restore", () => ws.restore("before"));
  }
}
if (what === "grep") {
  const { sampleFile } = await import("/work/main/bench/tools/sample.ts");
  for (let n = 0; n < 1000; n++) { const { path, text } = sampleFile(n); await ws.writeFile(path, text); }
  const { grep } = createWorkspaceTools(ws, { bash: false });
  for (let r = 0; r < 15; r++) await time("grep", () => grep!.execute!({ pattern: "error code 4[0-9]+" }, { toolCallId: "b", messages: [], context: {} }));
}
if (what === "read") {
  await ws.writeFile("/a/b.md", "x".repeat(200));
  for (let r = 0; r < 10; r++) await time("20000 reads", async () => { for (let i = 0; i < 20000; i++) await ws.readFile("/a/b.md"); });
}
if (what === "write") {
  for (let r = 0; r < 10; r++) await time("2000 writes", async () => { for (let i = 0; i < 2000; i++) await ws.writeFile(`/n/${r}-${i}.md`, "x".repeat(200)); });
}
await host.stop();
