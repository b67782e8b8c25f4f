import { Think } from "perdure";
import { createHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { jsonSchema, tool } from "ai";
import Database from "better-sqlite3";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
const model = scriptedModel(({ prompt }) => (prompt.at(-1)?.role === "user" ? { toolCalls: [{ toolName: "pay", toolCallId: "c1", input: { a: 1 } }] } : "Done."));
let paid = 0; let me: any;
class A extends Think {
  constructor(h: any) { super(h); me = this; }
  override getModel() { return model; }
  override getTools() { return { pay: tool({ inputSchema: jsonSchema<any>({ type: "object" }), needsApproval: true, execute: () => ++paid } as any) } as any; }
  async say() { await this.runTurn({ input: { id: `u1`, role: "user", parts: [{ type: "text", text: `hi` }] } } as any); }
  ping() { return 1; }
}
const dir = mkdtempSync("/tmp/breaker2/mig-");
let host = createHost({ agents: { A }, dir } as any);
await host.getAgentByName(A, "one").say();
await host.stop();
const file = readdirSync(dir, { recursive: true, withFileTypes: true } as any).filter((e: any) => e.name.startsWith("one") && e.name.endsWith(".db")).map((e: any) => join(e.parentPath, e.name))[0]!;
let db = new Database(file);
db.exec("DROP TABLE perdure_file; DROP TABLE perdure_file_body; DROP TABLE perdure_action; ALTER TABLE perdure_tool_call DROP COLUMN parked; ALTER TABLE perdure_tool_call DROP COLUMN state; DELETE FROM perdure_migration WHERE id = 6");
db.close();
host = createHost({ agents: { A }, dir } as any);
await host.getAgentByName(A, "one").ping();
console.log("pending", me.pendingApprovals().length, "approve", me.answerApproval("c1", true));
await delay(500); await me.waitUntilStable();
console.log("paid", paid, JSON.stringify(me.messages.at(-1).parts).slice(-200));
await me.workspace.writeFile("/a", "b"); console.log(await me.workspace.readFile("/a"), me.listActions());
await host.stop();
db = new Database(file); console.log(db.prepare("SELECT group_concat(id) v FROM perdure_migration").get()); db.exec("INSERT INTO perdure_migration VALUES (7)"); db.pragma("wal_checkpoint(TRUNCATE)"); db.close();
const before = readFileSync(file).toString("base64");
host = createHost({ agents: { A }, dir } as any);
await host.getAgentByName(A, "one").ping().then(() => console.log("OPENED?!"), (e: any) => console.log("refused", e.code, e.message));
await host.stop();
console.log("unchanged", readFileSync(file).toString("base64") === before);
process.exit(0);
