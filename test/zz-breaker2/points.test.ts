import { Think } from "perdure";
import { scriptedModel, type Script } from "perdure/testing";
import { expect, test } from "vitest";
import { user } from "../chat/client.ts";
import { openThink } from "../think/harness.ts";

const clerk: Script = ({ step, prompt }) => {
  if (step > 0) return "Written.";
  const last = prompt.findLast(({ role }) => role === "user");
  const text = last?.role === "user" ? last.content.map((p) => (p.type === "text" ? p.text : "")).join("") : "";
  if (text.startsWith("talk")) return "Talked.";
  return { toolCalls: [{ toolName: "write", input: { path: "/note.txt", content: `${text}\n` }, toolCallId: "w" }] };
};
async function writing() {
  const model = scriptedModel(clerk);
  const kit = await openThink((Base) => class extends (Base as unknown as typeof Think) {
    override getModel() { return model; }
    constructor(...args: ConstructorParameters<typeof Think>) { super(...args); Object.assign(this, { workspaceTools: {} }); }
  });
  return Object.assign(kit, { model });
}
test("talk, restart, write: back to a message before the first file", async () => {
  const kit = await writing();
  await kit.ask("talk 1");
  await kit.restart();
  await kit.ask("one");
  const m = await kit.stored();
  const agent = await kit.agent();
  const r = await agent.restoreFiles(m[1]!.id);
  expect(r.deleted).toEqual(["/note.txt"]);
});
test("a turn with a file, then clear, then again", async () => {
  const kit = await writing();
  await kit.ask("one");
  const agent = await kit.agent();
  await (agent as any).clearMessages();
  console.log("points after clear", agent.workspace.points?.() ?? JSON.stringify((agent.workspace as any).points()));
  await kit.ask("two");
  const m = await kit.stored();
  await agent.restoreFiles(m[0]!.id);
  expect(await agent.workspace.readFile("/note.txt")).toBe("one\n");
});
test("regenerate: the files at the question, and each version", async () => {
  const kit = await writing();
  await kit.ask("talk 0");
  await kit.ask("one");
  const c = await kit.connect();
  const m = await kit.stored();
  const agent = await kit.agent();
  await agent.workspace.writeFile("/other.txt", "between");
  c.send({ type: "cf_agent_use_chat_request", id: "r2", init: { method: "POST", body: JSON.stringify({ messages: m.slice(0, 3), trigger: "regenerate-message", messageId: m[3]?.id }) } } as never);
  await c.done("r2");
  const tree = await kit.rows<any>("SELECT seq,id,parent,role FROM perdure_message");
  console.log(JSON.stringify(tree), JSON.stringify((agent.workspace as any).points()));
  await agent.restoreFiles(tree[4].id);
  expect(await agent.workspace.exists("/other.txt")).toBe(true);
  await agent.restoreFiles(tree[3].id);
  expect(await agent.workspace.exists("/other.txt")).toBe(false);
  expect(await agent.workspace.readFile("/note.txt")).toBe("one\n");
  await agent.restoreFiles(m[2]!.id);
  expect(await agent.workspace.readFile("/note.txt")).toBe(null);
});
test("fork: both sessions know the files", async () => {
  const kit = await writing();
  await kit.ask("one");
  const agent = await kit.agent();
  const main = agent.getCurrentSessionId();
  const f = agent.forkSession(main).id;
  agent.switchSession(f);
  await kit.ask("two");
  const inFork = await kit.stored();
  agent.switchSession(main);
  await kit.ask("three");
  const inMain = await kit.stored();
  await agent.restoreFiles(inFork.at(-1)!.id);
  expect(await agent.workspace.readFile("/note.txt")).toBe("two\n");
  await agent.restoreFiles(inMain[1]!.id);
  expect(await agent.workspace.readFile("/note.txt")).toBe("one\n");
  agent.deleteSession(f);
  await agent.restoreFiles(inMain.at(-1)!.id);
  expect(await agent.workspace.readFile("/note.txt")).toBe("three\n");
  console.log(JSON.stringify((agent.workspace as any).points()));
  const r = await agent.erase({ session: main });
  console.log(JSON.stringify((agent.workspace as any).points()), JSON.stringify(r));
});
test("requests are byte-identical from turn to turn and over a restart", async () => {
  const kit = await writing();
  await kit.ask("talk 1");
  await kit.ask("one");
  await kit.restart();
  await kit.ask("talk 2");
  const heads = kit.model.calls.map((c: any) => JSON.stringify([c.prompt[0], c.tools]));
  expect(new Set(heads).size).toBe(1);
});
