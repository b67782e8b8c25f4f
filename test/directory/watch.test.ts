import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { killPrograms, startProgram } from "perdure/testing";
import { afterAll, expect, test } from "vitest";
import { connect, eventually } from "../host/open-host.ts";
import { makeProject, speaker } from "./project.ts";
import { watchProject } from "./watched.ts";

afterAll(killPrograms);

/** An agent that counts in its rows and in memory: how often it was asked, ever and in this life. */
function counter(name: string, text: string): string {
  return `import { Agent, type AgentEnv, callable } from "perdure";
export class ${name} extends Agent<AgentEnv, { count: number }> {
  static { callable(this, "add"); }
  override initialState = { count: 0 };
  life = 0;
  add(): string {
    this.setState({ count: this.state.count + 1 });
    return ${JSON.stringify(text)} + " " + this.state.count + " " + ++this.life;
  }
}
`;
}

test("a file that changes: rows and open sockets stay, the code is new, and others live on", async () => {
  const { project, url, prints } = await watchProject({ "a.ts": counter("A", "old"), "b.ts": counter("B", "other") });
  const [a, b] = [await connect({ url }, "/agents/a/one"), await connect({ url }, "/agents/b/one")];
  expect([await a.call("add"), await a.call("add"), await b.call("add")]).toEqual(["old 1 1", "old 2 2", "other 1 1"]);
  project.write("a.ts", counter("A", "new"));
  await prints("Agents reloaded: A.\n");
  expect([await a.call("add"), await b.call("add")]).toEqual(["new 3 1", "other 2 2"]);
  // As editors do that write into the file itself.
  writeFileSync(project.path("a.ts"), counter("A", "newest"));
  await prints("Agents reloaded: A.\nAgents reloaded: A.\n");
  expect([await a.call("add"), await b.call("add")]).toEqual(["newest 4 1", "other 3 3"]);
  expect([a.closed, b.closed]).toEqual([undefined, undefined]);
});

test("a helper that changes reloads what imports it, however far, and nothing else", async () => {
  const { project, url, says, prints, output } = await watchProject({
    "a.ts": speaker("A", "text", 'import { text } from "./_lib/middle.ts";'),
    "b.ts": counter("B", "b"),
    "_lib/middle.ts": 'export { text } from "./text.ts";',
    "_lib/text.ts": 'export const text: string = "one";',
  });
  const b = await connect({ url }, "/agents/b/one");
  expect([await says("a/one"), await b.call("add")]).toEqual(["one", "b 1 1"]);
  project.write("_lib/text.ts", 'export const text: string = "two";');
  await prints("Agents reloaded: A.\n");
  expect([await says("a/one"), await b.call("add")]).toEqual(["two", "b 2 2"]);
  expect(output()).toBe("Agents reloaded: A.\n");
});

test("a sub-agent that changes: its parent is loaded again with it, and finds it", async () => {
  const boss = (greeting: string) => `import { Agent, callable } from "perdure";
import { Worker } from "./boss/agents/worker.ts";
export class Boss extends Agent {
  static { callable(this, "ask"); }
  async ask(): Promise<string> { return ${JSON.stringify(greeting)} + (await (await this.subAgent(Worker, "w")).says()); }
}
`;
  const { project, url, says, prints } = await watchProject({
    "boss.ts": boss("it says "),
    "boss/agents/worker.ts": speaker("Worker", '"old"'),
  });
  const client = await connect({ url }, "/agents/boss/one");
  const child = await connect({ url }, "/agents/boss/one/sub/worker/w");
  expect([await client.call("ask"), await child.call("says")]).toEqual(["it says old", "old"]);
  project.write("boss/agents/worker.ts", speaker("Worker", '"new"'));
  await prints("Agents reloaded: Worker, Boss.\n");
  expect([await client.call("ask"), await child.call("says")]).toEqual(["it says new", "new"]);
  // The parent alone: the child keeps its class.
  project.write("boss.ts", boss("so it says "));
  await prints("Agents reloaded: Boss.\n");
  expect([await client.call("ask"), await says("boss/one/sub/worker/w")]).toEqual(["so it says new", "new"]);
});

test("files that are added, removed and added again", async () => {
  const { project, url, says, comesToSay } = await watchProject({ "a.ts": speaker("A", '"a"') });
  expect(await says("b/one")).toBe(400);
  project.write("b.ts", counter("B", "b"));
  // Counters do not answer HTTP: that one is known is enough.
  await comesToSay("b/one", 404);
  const b = await connect({ url }, "/agents/b/one");
  expect(await b.call("add")).toBe("b 1 1");
  project.write("deep/agent.ts", speaker("Deep", '"deep"'));
  project.write("deep/agents/deeper/index.ts", speaker("Deeper", '"deeper"'));
  await comesToSay("deep/one/sub/deeper/two", "deeper");
  project.remove("b.ts");
  expect(await b.whenClosed()).toEqual({ code: 1001, reason: "agent class removed" });
  expect(await says("b/one")).toBe(400);
  project.remove("deep");
  await comesToSay("deep/one", 400);
  project.write("b.ts", counter("B", "again"));
  await comesToSay("b/one", 404);
  expect(await (await connect({ url }, "/agents/b/one")).call("add")).toBe("again 2 1");
  expect(await says("a/one")).toBe("a");
});

test("a mistake is shown with its place, the old code goes on, and the correction is taken", async () => {
  const { project, says, comesToSay, prints, output } = await watchProject({
    "a.ts": speaker("A", '"old"'),
    "b.ts": speaker("B", '"b1"'),
  });
  project.write("a.ts", "export class A extends {\n");
  await prints("agents/a.ts could not be loaded: ");
  await prints("agents/a.ts:1\nexport class A extends {\n");
  await prints("A goes on with its old code.\n");
  expect(await says("a/one")).toBe("old");
  // Other files are taken meanwhile, and the mistake is not shown again.
  project.write("b.ts", speaker("B", '"b2"'));
  await comesToSay("b/one", "b2");
  expect(output().split("could not be loaded")).toHaveLength(2);
  project.write("a.ts", 'throw new Error("not today");');
  await prints("agents/a.ts could not be loaded: not today\nError: not today\n    at file://");
  project.write("a.ts", "export const nothing = 1;");
  await prints("a.ts exports no agent.");
  expect(await says("a/one")).toBe("old");
  project.write("a.ts", speaker("A", '"new"'));
  await comesToSay("a/one", "new");
});

test("an import that is missing, and comes later", async () => {
  const { project, says, comesToSay, prints } = await watchProject({ "a.ts": speaker("A", '"old"') });
  project.write("a.ts", speaker("A", "text", 'import { text } from "./_text.ts";'));
  await prints("_text.ts");
  expect(await says("a/one")).toBe("old");
  project.write("_text.ts", 'export const text: string = "new";');
  await comesToSay("a/one", "new");
});

test("names that clash: everything stays as it was", async () => {
  const { project, says, comesToSay, prints } = await watchProject({
    "a.ts": speaker("A", '"a"'),
    "b.ts": speaker("B", '"b"'),
  });
  project.write("b.ts", speaker("A", '"two"'));
  await prints('b.ts both give the agent "A" ("a" in URLs).');
  expect([await says("a/one"), await says("b/one")]).toEqual(["a", "b"]);
  project.write("b.ts", speaker("B", '"two"'));
  await comesToSay("b/one", "two");
});

test("the whole directory is replaced, as a checkout does", async () => {
  const { project, says, comesToSay } = await watchProject({ "a.ts": speaker("A", '"one"') });
  expect(await says("a/one")).toBe("one");
  project.remove(".");
  project.write("a.ts", speaker("A", '"two"'));
  await comesToSay("a/one", "two");
  project.write("a.ts", speaker("A", '"three"'));
  await comesToSay("a/one", "three");
});

test("what NODE_ENV and `watch` mean together", async () => {
  const project = makeProject({ "a.ts": speaker("A", '"old"') });
  const program = startProgram(new URL("./modes-program.ts", import.meta.url), { dir: project.dir });
  const urls = (await program.waitFor("listening"))["urls"] as Record<string, string>;
  const say = async () => {
    const texts = Object.entries(urls).map(async ([mode, url]) => [mode, await (await fetch(url)).text()] as const);
    return Object.fromEntries(await Promise.all(texts));
  };
  const still = { unset: "old", test: "old", production: "old", "production watch": "old", "development still": "old" };
  expect(await say()).toEqual({ ...still, development: "old", "test watch": "old" });
  project.write("a.ts", speaker("A", '"new"'));
  await eventually(() => program.output === "Agents reloaded: A.\nAgents reloaded: A.\n", "those that watch are told");
  expect(await say()).toEqual({ ...still, development: "new", "test watch": "new" });
});

test("an app that imports its agents itself, before anyone watches, is reloaded too", async () => {
  const project = makeProject({
    "a.ts": speaker("A", "text", 'import { text } from "./_middle.ts";'),
    "_middle.ts": 'export { text } from "./_text.ts";',
    "_text.ts": 'export const text: string = "old";',
  });
  const main = join(project.dir, "main.ts");
  const source = `import { join } from "node:path";
import { serve } from "perdure/node";
import { onCommand, programDir, report } from "perdure/testing";
import { A } from "./agents/a.ts";
const dir = programDir();
const host = await serve({ agents: new URL("./agents", import.meta.url), dir: join(dir, "data"), port: 0, watch: true });
onCommand(async () => report({ type: "said", text: await host.getAgentByName(A, "one").says() }));
`;
  writeFileSync(main, source);
  const program = startProgram(main, { dir: project.dir });
  const said = async (text: string) => {
    await program.send("say");
    await program.waitFor((fact) => fact.type === "said" && fact["text"] === text);
  };
  await said("old");
  for (const text of ["new", "newer"]) {
    const before = program.output.length;
    project.write("_text.ts", `export const text: string = "${text}";`);
    await eventually(() => program.output.slice(before) === "Agents reloaded: A.\n", "it is reloaded");
    await said(text);
  }
});
