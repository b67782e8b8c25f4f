import { mkdtempSync, mkdirSync, writeFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Think, skills } from "perdure";
import { scriptedModel } from "perdure/testing";
import { expect, test } from "vitest";
import { openThink, outputsSent } from "../think/harness.ts";
const wait = (ms: number) => new Promise((r) => setTimeout(r, ms));
async function kitOf(script: any, more: (a: any) => void = () => {}, sk?: () => any) {
  const model = scriptedModel(script);
  const kit = await openThink((Base) => class extends (Base as unknown as typeof Think) {
    override getModel() { return model; }
    override getSkills() { return sk ? sk() : []; }
    constructor(...a: ConstructorParameters<typeof Think>) { super(...a); Object.assign(this, { workspaceTools: {} }); more(this); }
  });
  return Object.assign(kit, { model });
}
test("in one step: writes, edits, renames, bash", async () => {
  const calls = [
    { toolName: "write", input: { path: "/a.txt", content: "one two three\n".repeat(900) } },
    { toolName: "edit", input: { path: "/b.txt", old_string: "beta", new_string: "BETA" } },
    { toolName: "edit", input: { path: "/b.txt", old_string: "alpha", new_string: "ALPHA" } },
    { toolName: "edit", input: { path: "/b.txt", old_string: "gamma", new_string: "GAMMA" } },
    { toolName: "bash", input: { command: "for i in 1 2 3 4 5 6 7 8 9 10; do echo line$i >> /b.txt; sleep 0.01; done" } },
    { toolName: "bash", input: { command: "mv /c.txt /d.txt; echo x > /e.txt; cat /d.txt" } },
    { toolName: "delete", input: { path: "/f.txt" } },
    { toolName: "read", input: { path: "/f.txt" } },
  ].map((c, i) => ({ ...c, toolCallId: `t${i}` }));
  const kit = await kitOf(({ step }: any) => (step === 0 ? { toolCalls: calls } : "ok"));
  const agent = await kit.agent();
  await agent.workspace.writeFile("/b.txt", `alpha\nbeta\ngamma\n${"pad\n".repeat(3000)}`);
  await agent.workspace.writeFile("/c.txt", "c\n");
  await agent.workspace.writeFile("/f.txt", "f\n");
  await kit.ask("go");
  const b = (await agent.workspace.readFile("/b.txt"))!;
  console.log(b.slice(0, 30).replaceAll("\n", "|"), b.split("\n").filter((l: string) => l.startsWith("line")).length, (await agent.workspace.glob("/*")).map((e: any) => e.path).join(" "));
  console.log(JSON.stringify(outputsSent(kit.model, 1)).slice(0, 1500));
});
test("restore while bash writes", async () => {
  const kit = await kitOf(({ step }: any) => (step === 0 ? { toolCalls: [{ toolName: "bash", toolCallId: "b", input: { command: "for i in $(seq 1 40); do echo $i >> /log.txt; echo $i > /f$i.txt; sleep 0.01; done; wc -l /log.txt" } }] } : "ok"));
  const agent = await kit.agent();
  await agent.workspace.writeFile("/log.txt", "start\n");
  (agent.workspace as any).mark("before");
  const running = kit.ask("go");
  await wait(250);
  const r = (agent.workspace as any).restore("before");
  console.log("RESTORED", r.created.length, r.updated.length, r.deleted.length);
  await running;
  console.log(JSON.stringify(outputsSent(kit.model, 1)).slice(0, 400), (await agent.workspace.readFile("/log.txt"))!.split("\n").length, (await agent.workspace.glob("/f*")).length);
  const refs = await kit.rows("SELECT hash, refs FROM perdure_file_body WHERE n = -1 ORDER BY hash");
  const real = await kit.rows("SELECT hash, count(*) AS refs FROM perdure_file WHERE hash IS NOT NULL GROUP BY hash ORDER BY hash");
  expect(refs).toEqual(real);
});
test("skills directory changes between and in turns; the prompt is stable when nothing changes", async () => {
  const dir = mkdtempSync("/tmp/breaker2/sk-");
  const put = (name: string, text: string) => { mkdirSync(join(dir, name), { recursive: true }); writeFileSync(join(dir, name, "SKILL.md"), `---\nname: ${name}\ndescription: Does ${name}.\n---\n${text}\n`); };
  put("zeta", "Z body"); put("alpha", "A body");
  const kit = await kitOf(({ step, userText }: any) => { if (userText === "use" && step === 0) { put("alpha", "A body changed"); put("mid", "M"); rmSync(join(dir, "zeta"), { recursive: true }); return { toolCalls: [{ toolName: "activate_skill", toolCallId: "s1", input: { name: "zeta" } }, { toolName: "activate_skill", toolCallId: "s2", input: { name: "alpha" } }] }; } return "ok"; }, () => {}, () => [skills.fromDirectory ? (skills as any).fromDirectory(dir) : (skills as any).directory(dir)]);
  await kit.ask("hi"); await kit.ask("hi2"); await kit.restart(); await kit.ask("hi3");
  const head = (i: number) => JSON.stringify([kit.model.calls[i]?.prompt[0], (kit.model.calls[i] as any)?.tools]);
  expect(head(0)).toBe(head(1)); expect(head(0)).toBe(head(2));
  console.log((kit.model.calls[0]!.prompt[0] as any).content.slice(-600));
  await kit.ask("use");
  console.log("STEP heads same", head(3) === head(4), JSON.stringify(outputsSent(kit.model, 4)).slice(0, 900));
  await kit.ask("hi5");
  console.log("after change", (kit.model.calls[5]!.prompt[0] as any).content.slice(-300), kit.takeErrors());
});
