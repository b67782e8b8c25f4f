import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { type AgentStub, Agent, PerdureError } from "perdure";
import { createHost, findAgents, memoryStorage } from "perdure/node";
import { expect, test } from "vitest";
import { connect, openHost, tempDir } from "../host/open-host.ts";
import { makeProject, speaker } from "./project.ts";

const named = (name: string) => `import { Agent } from "perdure";\nexport class ${name} extends Agent {}\n`;
const unnamed = 'import { Agent } from "perdure";\nexport default class extends Agent {}\n';

test("files and folders are agents, what lies in agents/ below one are its sub-agents, to any depth", async () => {
  const { agents, path } = makeProject({
    "support-desk.ts": unnamed,
    "billing.js": 'import { Agent } from "perdure";\nexport class Invoices extends Agent {}\n',
    "plain.mjs": unnamed,
    "typed.mts": unnamed,
    "research/agent.ts": named("Research"),
    "research/agents/reader.ts": named("Reader"),
    "research/agents/crawler/index.ts": unnamed,
    "research/agents/crawler/agents/page-parser.ts": unnamed,
    "support-desk/agents/clerk.ts": named("Clerk"),
    "support-desk/helper.ts": "throw new Error('not an agent');",
    // None of these is an agent.
    "_shared.ts": "throw new Error('loaded');",
    "_drafts/agent.ts": "throw new Error('loaded');",
    ".hidden.ts": "throw new Error('loaded');",
    "billing.test.ts": "throw new Error('loaded');",
    "types.d.ts": "export type Id = string;",
    "notes.md": "# Notes",
    "prompts/hello.txt": "Hello",
    "node_modules/x/agent.ts": "throw new Error('loaded');",
  });
  const found = await findAgents(agents);
  expect(found.manifest).toEqual([
    { name: "Invoices", route: "invoices", file: path("billing.js"), parent: undefined },
    { name: "Plain", route: "plain", file: path("plain.mjs"), parent: undefined },
    { name: "Research", route: "research", file: path("research/agent.ts"), parent: undefined },
    { name: "SupportDesk", route: "support-desk", file: path("support-desk.ts"), parent: undefined },
    { name: "Typed", route: "typed", file: path("typed.mts"), parent: undefined },
    { name: "Crawler", route: "crawler", file: path("research/agents/crawler/index.ts"), parent: "Research" },
    { name: "Reader", route: "reader", file: path("research/agents/reader.ts"), parent: "Research" },
    {
      name: "PageParser",
      route: "page-parser",
      file: path("research/agents/crawler/agents/page-parser.ts"),
      parent: "Crawler",
    },
    { name: "Clerk", route: "clerk", file: path("support-desk/agents/clerk.ts"), parent: "SupportDesk" },
  ]);
  expect(Object.keys(found.agents)).toEqual(["Invoices", "Plain", "Research", "SupportDesk", "Typed"]);
  expect(Object.keys(found.subAgents)).toEqual(["Crawler", "Reader", "PageParser", "Clerk"]);
  expect(found.agents["Research"]?.prototype).toBeInstanceOf(Agent);
});

test("paths start at the working directory; URLs of files work", async () => {
  const { agents } = makeProject({ "chat.ts": named("Chat") });
  const expected = [{ name: "Chat", route: "chat", file: join(agents, "chat.ts"), parent: undefined }];
  for (const dir of [relative(process.cwd(), agents), agents, pathToFileURL(agents), pathToFileURL(`${agents}/`)]) {
    expect((await findAgents(dir)).manifest).toEqual(expected);
  }
  await expect(findAgents(new URL("https://example.com/agents"))).rejects.toThrow(
    "The agents directory must be a file: URL, not https://example.com/agents.",
  );
});

test("which export counts: the default, else the one class that is an agent", async () => {
  const { agents } = makeProject({
    "a.ts": `${named("Helper")}export default class Chosen extends Agent {}\n`,
    "b.ts": `${named("Only")}export const limit = 5;\nexport class Plain {}\nexport default { limit };\n`,
    "c.ts": `${named("Twice")}export { Twice as default };\n`,
    "d.ts": 'import { Think } from "perdure";\nclass Base extends Think {}\nexport class Far extends Base {}\n',
    "e.ts": 'import { agent } from "perdure";\nexport const desk = agent({ model: "none" });\n',
    "f.ts": 'import { agent } from "perdure";\nexport default agent({ name: "Named", model: "none" });\n',
  });
  const { manifest } = await findAgents(agents);
  expect(manifest.map(({ name }) => name)).toEqual(["Chosen", "Only", "Twice", "Far", "E", "Named"]);
});

const clash = (name: string) => ({ "a.ts": named(name), "b.ts": named(name) });

test.each<[string, Record<string, string>, RegExp]>([
  ["nothing in it", { "_shared.ts": "", "notes.md": "" }, /^The agents directory \S+agents has no agents\. Add a file/],
  ["the same class name twice", clash("Chat"), /a\.ts and \S+b\.ts both give the agent "Chat" \("chat" in URLs\)\./],
  [
    "the same route from two names",
    { "a.ts": named("URL"), "b.ts": named("Url") },
    /a\.ts and \S+b\.ts both give the agent "Url" \("url" in URLs\)\. Rename the class/,
  ],
  [
    "two files for one agent",
    { "a.ts": named("A"), "a/agent.ts": named("B") },
    /a\.ts and \S+a.agent\.ts are two files for the same agent/,
  ],
  [
    "agent and index in one folder",
    { "a/agent.ts": named("A"), "a/index.ts": named("B") },
    /agent\.ts and \S+index\.ts are two files for the same agent/,
  ],
  ["no agent", { "a.ts": "export class NotOne {}" }, /a\.ts exports no agent\. Export a class that extends Agent/],
  [
    "several agents",
    { "a.ts": `${named("A")}export class B extends A {}\n` },
    /a\.ts exports several agents: A, B\. Make one the default export/,
  ],
  [
    "a sub-agent of another meaning",
    { "a.ts": named("Reader"), "b.ts": named("B"), "b/agents/reader.ts": named("Reader") },
    /a\.ts is a top-level agent and \S+reader\.ts another one's sub-agent, but both are called "Reader"/,
  ],
  [
    "two sub-agents of one name",
    { "a.ts": named("A"), "b.ts": named("B"), "a/agents/x.ts": named("X"), "b/agents/x.ts": named("X") },
    /a.agents.x\.ts and \S+b.agents.x\.ts both give the agent "X"/,
  ],
  [
    "sub-agents without a parent",
    { "a.ts": named("A"), "b/agents/x.ts": named("X") },
    /b.agents has sub-agents, but their parent is missing\. Add \S+b.agent\.ts/,
  ],
  ["a name that URLs need", { "sub.ts": unnamed }, /sub\.ts: The class name "Sub" becomes "sub" in URLs/],
  ["a name that URLs cannot have", { "-.ts": unnamed }, /-\.ts: The class name "" cannot be used in a URL/],
])("%s is refused", async (_, files, message) => {
  const { agents } = makeProject(files);
  const error: unknown = await findAgents(agents).catch((thrown: unknown) => thrown);
  expect(PerdureError.is(error, "bad_config"), String(error)).toBe(true);
  expect(error).toMatchObject({ message: expect.stringMatching(message) as string });
});

test("a directory that is not there, or is a file, is refused", async () => {
  const dir = join(tempDir(), "nothing");
  await expect(findAgents(dir)).rejects.toThrow(`There is no agents directory ${dir}. Create it`);
  await expect(findAgents("no-such-agents")).rejects.toThrow(
    `There is no agents directory no-such-agents. Create it with a file for each agent, or give \`agents\` another path; paths start at ${process.cwd()}.`,
  );
  const { agents } = makeProject({ "a.ts": named("A") });
  await expect(findAgents(join(agents, "a.ts"))).rejects.toMatchObject({ code: "bad_config" });
});

test("a file that throws is named, and what it threw is kept", async () => {
  const { agents, path } = makeProject({ "a.ts": "throw new RangeError('out of luck');" });
  await expect(findAgents(agents)).rejects.toMatchObject({
    code: "bad_config",
    message: `${path("a.ts")} could not be loaded: out of luck`,
    cause: { name: "RangeError", message: "out of luck" },
  });
});

test("one class may be a sub-agent in several places, and an agent at the top too", async () => {
  const reader = 'export { Reader } from "../../_reader.ts";';
  const { agents } = makeProject({
    "_reader.ts": named("Reader"),
    "a.ts": named("A"),
    "b.ts": named("B"),
    "reader.ts": 'export { Reader } from "./_reader.ts";',
    "a/agents/reader.ts": reader,
    "b/agents/reader.ts": reader,
  });
  const found = await findAgents(agents);
  expect(Object.keys(found.agents)).toEqual(["A", "B", "Reader"]);
  expect(Object.keys(found.subAgents)).toEqual(["Reader"]);
  expect(found.manifest.filter(({ name }) => name === "Reader").map(({ parent }) => parent)).toEqual([
    undefined,
    "A",
    "B",
  ]);
  const host = createHost({ ...found, storage: memoryStorage() });
  await host.stop();
});

const boss = speaker("Boss", '"boss"', 'import { Worker } from "./boss/agents/worker.ts";').replace(
  "says(): string",
  'async ask(): Promise<string> { return (await this.subAgent(Worker, "w")).says(); }\n  says(): string',
);

test("served: agents by HTTP and socket, children by their class and by their address", async () => {
  const { agents } = makeProject({
    "boss.ts": boss.replace('"says");', '"says"); callable(this, "ask");'),
    "boss/agents/worker.ts": speaker("Worker", "`worker of ${this.parentPath.map(({ name }) => name)}`"),
    "help-desk.ts": 'import { Agent } from "perdure";\nexport default class extends Agent {}\n',
  });
  const host = await openHost({ agents });
  const client = await connect(host, "/agents/boss/b");
  expect(await client.call("says")).toBe("boss");
  expect(await client.call("ask")).toBe("worker of b");
  expect(await (await fetch(`${host.url}/agents/boss/b/sub/worker/w`)).text()).toBe("worker of b");
  const child = await connect(host, "/agents/boss/b/sub/worker/other");
  expect(await child.call("says")).toBe("worker of b");
  // A sub-agent has no address of its own, and a class without a name has that of its file.
  expect((await fetch(`${host.url}/agents/worker/w`)).status).toBe(400);
  const greeting = (await connect(host, "/agents/help-desk/h")).frames.find(({ type }) => type === "cf_agent_identity");
  expect(greeting).toMatchObject({ agent: "help-desk", name: "h" });
});

test("a sub-agent's folder says whose child it is: clients reach it there, and below no other agent", async () => {
  const { agents } = makeProject({
    "boss.ts": named("Boss"),
    "boss/agents/worker.ts": named("Worker"),
    "boss/agents/worker/agents/tool.ts": named("Tool"),
    "guest.ts": named("Guest"),
  });
  const host = await openHost({ agents });
  const greeted = async (path: string) => {
    const client = await connect(host, path, { greeted: false });
    const greeting = client.frame(({ type }) => type === "cf_agent_identity").then(({ agent }) => agent);
    return Promise.race([greeting, client.whenClosed().then(({ code }) => code)]);
  };
  expect(await greeted("/agents/boss/b/sub/worker/w")).toBe("worker");
  expect(await greeted("/agents/boss/b/sub/worker/w/sub/tool/t")).toBe("tool");
  expect(await greeted("/agents/boss/b/sub/tool/t")).toBe(4404);
  expect(await greeted("/agents/guest/g/sub/worker/w")).toBe(4404);
  expect(await greeted("/agents/guest/g/sub/boss/b")).toBe(4404);
});

test("classes that are not in the directory can be sub-agents beside it", async () => {
  class Extra extends Agent {
    hello(): string {
      return "extra";
    }
  }
  const { agents } = makeProject({ "boss.ts": named("Boss"), "boss/agents/worker.ts": named("Worker") });
  const host = await openHost({ agents: pathToFileURL(agents), subAgents: [Extra] });
  const stub: AgentStub<Extra> = host.getAgentByName(Extra, "x");
  expect(await stub.hello()).toBe("extra");
  class Worker extends Agent {}
  await expect(openHost({ agents, subAgents: { Worker } })).rejects.toThrow(
    '"Worker" is in `subAgents` and in the agents directory. Register one of them under another name.',
  );
});
