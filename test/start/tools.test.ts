import type { UIMessage } from "ai";
import { fakeOpenAI } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { TOUR } from "../../examples/start/model/guide-tour.ts";
import { lookAround } from "../../examples/start/toolbox.ts";
import { openTalk, settings, startAgents, type Talk, watchLog } from "./talk.ts";
import { callsOf, nameOf, tour } from "./tour.ts";

/** What only some machines have: programs in a jail, and a browser in one. */
const MACHINE = /^(?:run_process|browser_)/;

async function start(env: Readonly<Record<string, string>> = {}) {
  settings(env);
  // The tour takes no longer than this: without it what the machine has might come too late for it.
  await lookAround();
  const host = await startAgents();
  return { host, talk: await openTalk(host) };
}

/** The names of the tools that were called, and whether each of them has worked once. */
function usedIn(message: UIMessage | undefined): string[] {
  const worked = callsOf(message).filter(({ state, ...part }) => state === "output-available" && !hasError(part));
  return [...new Set(worked.map(nameOf))];
}

function hasError(part: object): boolean {
  const output: unknown = "output" in part ? part.output : undefined;
  return typeof output === "object" && output !== null && "error" in output;
}

test("every tool in one conversation, over the wire; two mistakes are mended by what the tools say", async () => {
  const { host, talk } = await start();
  const log = watchLog();
  const { answer, questions } = await tour(host, talk, "Show me every tool");
  expect(answer.error).toBeUndefined();
  const used = usedIn(answer.message);
  const wanted = TOUR.flatMap(({ tools }) => tools).map((name) => name.replace("*", "tool_library"));
  expect(used.filter((name) => !MACHINE.test(name)).toSorted()).toEqual(
    [...new Set(wanted)].filter((name) => !MACHINE.test(name)).toSorted(),
  );
  expect(questions).toEqual([
    { tool: "load_extension", reason: undefined },
    { tool: "execute", reason: 'The code wants to call "deleteFiles" with {"files":["draft-1.md"]}' },
    { tool: "execute", reason: 'The code wants to call "deleteFiles" with {"files":["draft-2.md"]}' },
    { tool: "book_table", reason: "Book a table for 2 at The Kettle on 2031-05-04 (risk: low)" },
    { tool: "deleteFiles", reason: undefined },
  ]);
  const { text } = answer;
  expect(text).toContain("old_string is not in /notes/plan.md. Nothing was changed. These lines come near: 4 Drink tea");
  expect(text).toContain("There is no tools.wether. There are: weather, deleteFiles");
  expect(text).toContain(`Allowed: ${host.url}`);
  expect(text.match(/That was a mistake, on purpose/g)).toHaveLength(3);
  expect(text).not.toContain("It did not work");
  expect(text).toMatch(/That was every tool that I have here[^]*$/);
  expect(log).toEqual([]);
  // All of it is stored, in one answer; the helper in the background reports behind it.
  const [asked, stored] = await talk.stored();
  expect([asked?.role, stored?.id]).toEqual(["user", answer.message?.id]);
}, 60_000);

test.each([
  { asked: "Show me files", uses: ["write", "read", "edit", "list", "find", "grep", "bash"] },
  { asked: "Show me skills", uses: ["activate_skill", "read_skill_resource", "run_skill_script"] },
  { asked: "Show me code", uses: ["execute"] },
  { asked: "Show me an extension", uses: ["load_extension", "list_extensions"] },
])("$asked: only these tools", async ({ asked, uses }) => {
  const { host, talk } = await start();
  const { answer } = await tour(host, talk, asked);
  expect([answer.error, usedIn(answer.message)]).toEqual([undefined, uses]);
  if (!uses.includes("load_extension")) return;
  const counted = await talk.ask("Count the words");
  // The plan was never written, and the tool says so to the model.
  expect(counted.text).toMatch(/ENOENT|not there|no file/i);
});

test("whoever says no is told what was not done, and the tour goes on", async () => {
  const { talk } = await start();
  await talk.ask("Show me code");
  const { text, message } = await talk.answer((id) => talk.approve(id, false, { reason: "Keep them." }));
  expect(callsOf(message).at(-1)?.state).toBe("output-denied");
  expect(text).toContain("You said no, so it was not done.");
});

test("the guide has these tools only where it was asked about them, so that its window stays small", async () => {
  const { talk } = await start();
  await talk.ask("Hello");
  const small = await contextOf(talk);
  await talk.ask("Show me skills");
  expect(await contextOf(talk)).toBeGreaterThan(small * 2);
  expect(small).toBeLessThan(3_000);
});

/** What the next request of a conversation would hold, in tokens. */
async function contextOf(talk: Talk): Promise<number> {
  const messages = await talk.stored();
  return JSON.stringify(messages).length;
}

interface Bad {
  readonly tool: string;
  readonly input: unknown;
  /** What the model reads: what was wrong, and what to do. */
  readonly hint: RegExp;
}

const BAD: readonly Bad[] = [
  { tool: "read", input: { path: "/none.md" }, hint: /./ },
  { tool: "read", input: { file: "/none.md" }, hint: /./ },
  { tool: "write", input: { path: "a.md" }, hint: /./ },
  { tool: "edit", input: { path: "/none.md", old_string: "a", new_string: "b" }, hint: /./ },
  { tool: "list", input: { path: "/none" }, hint: /./ },
  { tool: "find", input: {}, hint: /./ },
  { tool: "grep", input: { pattern: "(" }, hint: /./ },
  { tool: "delete", input: { path: "/none" }, hint: /./ },
  { tool: "bash", input: { command: "" }, hint: /./ },
  { tool: "bash", input: { command: "nosuchcommand" }, hint: /./ },
  { tool: "execute", input: { code: "return 1 +" }, hint: /./ },
  { tool: "execute", input: { script: "1" }, hint: /./ },
  { tool: "fetch_url", input: { url: "nowhere" }, hint: /./ },
  { tool: "fetch_url", input: { url: "http://127.0.0.1:1/" }, hint: /./ },
  { tool: "activate_skill", input: { name: "plain-writin" }, hint: /./ },
  { tool: "read_skill_resource", input: { name: "plain-writing", path: "references/none.txt" }, hint: /./ },
  { tool: "run_skill_script", input: { name: "plain-writing", script: "scripts/none.js", input: {} }, hint: /./ },
  { tool: "load_extension", input: { name: "1", version: "1", source: "({})" }, hint: /./ },
  { tool: "load_extension", input: { name: "bad", version: "1", source: "({ tools: {" }, hint: /./ },
  { tool: "list_extensions", input: { all: true }, hint: /./ },
  { tool: "unload_extension", input: { name: "none" }, hint: /./ },
  { tool: "echo_say", input: { txt: "x" }, hint: /./ },
  { tool: "connect_library", input: [], hint: /./ },
  { tool: "tool_library_find_books", input: { topic: "tea" }, hint: /./ },
  { tool: "book_table", input: { restaurant: "The Kettle", date: "tomorrow", people: 2 }, hint: /./ },
  { tool: "weather", input: {}, hint: /./ },
  { tool: "deleteFiles", input: { files: [] }, hint: /./ },
  { tool: "research", input: {}, hint: /./ },
  { tool: "run_process", input: {}, hint: /./ },
  { tool: "run_process", input: { command: "nosuchprogram" }, hint: /./ },
  { tool: "browser_open", input: { url: "https://example.com/" }, hint: /./ },
  { tool: "browser_act", input: { ref: "e1", action: "jump" }, hint: /./ },
  { tool: "browser_read", input: {}, hint: /./ },
];

const ECHO = `({ tools: { say: {
  description: "Says it.", parameters: { text: { type: "string" } }, required: ["text"], execute: async ({ text }) => ({ text }),
} } })`;

test("bad input to each tool gives the model a message by which it can correct itself", async () => {
  const prepare = [
    { id: "p1", name: "load_extension", input: { name: "echo", version: "1", source: ECHO } },
    { id: "p2", name: "connect_library", input: {} },
  ];
  const calls = BAD.map(({ tool, input }, at) => ({ id: `bad${at}`, name: tool, input: JSON.stringify(input) }));
  const server = await fakeOpenAI([{ toolCalls: prepare }, "Ready.", { toolCalls: calls }, "I see."]);
  onTestFinished(() => server.close());
  const { talk } = await start({ OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "sk-test", PERDURE_MODEL: "tiny" });
  expect((await talk.ask("Prepare")).error).toBeUndefined();
  expect((await talk.ask("Now be wrong")).error).toBeUndefined();
  const offered = server.requests[2]?.body.tools?.map((one) => one.function?.name) ?? [];
  const read = new Map(
    server.requests[3]?.body.messages?.flatMap(({ role, content, ...rest }) =>
      role === "tool" ? [[String(Reflect.get(rest, "tool_call_id")), String(content)] as const] : [],
    ),
  );
  for (const [at, { tool, input }] of BAD.entries())
    console.log(tool, JSON.stringify(input), "=>", offered.includes(tool), read.get(`bad${at}`));
}, 60_000);
