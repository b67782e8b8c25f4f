import { Think } from "perdure";
import { createHost } from "perdure/node";
import { scriptedModel } from "perdure/testing";
import { mkdtempSync, readdirSync, writeFileSync, existsSync } from "node:fs";
import { join } from "node:path";
const wait = (ms: number) => new Promise((r) => setTimeout(r, ms));
const tree = (dir: string) => readdirSync(dir, { recursive: true, withFileTypes: true } as any).filter((e: any) => e.isFile()).map((e: any) => join(e.parentPath, e.name).slice(dir.length));
setInterval(() => {}, 1000);
let big = 200_000;
const model = scriptedModel(({ step, userText }) => (userText.startsWith("write") && step === 0 ? { toolCalls: [{ toolName: "write", toolCallId: `w${userText}`, input: { path: `/${userText}.txt`, content: Array.from({ length: big / 8 }, () => Math.random().toString(36).slice(2, 9)).join("\n") } }] } : "ok"));
let me: any;
class A extends Think {
  constructor(h: any) { super(h); me = this; }
  override getModel() { return model; }
  override onError(e: unknown) { console.log("onError", String(e).slice(0, 200)); }
  async say(t: string) { return this.runTurn({ input: { id: `u-${t}`, role: "user", parts: [{ type: "text", text: t }] } } as any); }
  ping() { return 1; }
  async bye() { return (this as any).destroy(); }
}
{
  const dir = mkdtempSync("/tmp/breaker2/full-");
  const host = createHost({ agents: { A }, dir, limits: { databaseBytes: 2_000_000 } } as any);
  const a = host.getAgentByName(A, "one");
  for (let i = 0; i < 8; i++) { const r: any = await a.say(`write${i}`).catch((e: any) => ({ thrown: String(e).slice(0, 200) })); console.log(i, JSON.stringify(r).slice(0, 250), JSON.stringify(me.messages.at(-1)?.parts?.map((p: any) => p.errorText ?? p.output ?? p.text ?? "")).slice(0, 260)); if (r.thrown) break; }
  console.log("files", (await me.workspace.glob("/*").catch((e: any) => String(e))).length, "read", (await me.workspace.readFile("/write0.txt"))?.length);
  await me.workspace.writeFile("/x.txt", "q".repeat(900_000)).then(() => console.log("w ok"), (e: any) => console.log("w", String(e).slice(0, 200)));
  await me.workspace.writeFileBytes("/l.bin", new Uint8Array(3_000_000)).then(() => console.log("large ok"), (e: any) => console.log("large", String(e).slice(0, 200)));
  await me.workspace.rm("/write0.txt").then(() => console.log("rm ok"), (e: any) => console.log("rm", String(e).slice(0, 200)));
  await host.stop();
}
{
  const dir = mkdtempSync("/tmp/breaker2/gone-");
  const host = createHost({ agents: { A }, dir } as any);
  const a = host.getAgentByName(A, "one");
  await a.ping();
  await me.workspace.writeFileBytes("/l.bin", new Uint8Array(3_000_000));
  console.log(tree(dir));
  await a.bye().catch((e: any) => console.log("bye", String(e).slice(0, 100)));
  await wait(500);
  console.log("after", tree(dir));
  await a.ping(); console.log("again", (await me.workspace.glob("/*")).length);
  await host.stop();
}
process.exit(0);
