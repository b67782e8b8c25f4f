import type { UIMessage } from "ai";
import { fakeOpenAI } from "perdure/testing";
import { expect, onTestFinished, test } from "vitest";
import { TOUR } from "../../examples/start/model/guide-tour.ts";
import { lookAround } from "../../examples/start/toolbox.ts";
import { openTalk, settings, startAgents, watchLog } from "./talk.ts";
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

test("every tool in one conversation, over the wire; three mistakes are mended by what the tools say", async () => {
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
    { tool: "load_extension", reason: expect.stringContaining("It asks for: workspace read.") as unknown },
    { tool: "execute", reason: 'The code wants to call "deleteFiles" with {"files":["draft-1.md"]}' },
    { tool: "execute", reason: 'The code wants to call "deleteFiles" with {"files":["draft-2.md"]}' },
    { tool: "book_table", reason: "Book a table for 2 at The Kettle on 2031-05-04 (risk: low)" },
    { tool: "deleteFiles", reason: undefined },
  ]);
  const { text } = answer;
  expect(text).toContain(
    "old_string is not in /notes/plan.md. Nothing was changed. These lines come near: 4 Drink tea",
  );
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
  expect(counted.text).toContain("There is no file /notes/plan.md.");
});

test("whoever says no is told what was not done, and the tour goes on", async () => {
  const { talk } = await start();
  await talk.ask("Show me code");
  const { text, message } = await talk.answer((id) => talk.approve(id, false, { reason: "Keep them." }));
  expect(callsOf(message).at(-1)?.state).toBe("output-denied");
  expect(text).toContain("You said no, so it was not done.");
});

interface Bad {
  readonly tool: string;
  readonly input: unknown;
  /** What the model reads: what was wrong, and what to do. */
  readonly hint: RegExp;
}

const BAD: readonly Bad[] = [
  { tool: "read", input: { path: "/none.md" }, hint: /no file \/none\.md\. List the directory, or find it/ },
  { tool: "read", input: { file: "/none.md" }, hint: /"path" is missing\. Give an absolute path, such as/ },
  { tool: "write", input: { path: "a.md" }, hint: /"content" is missing\. Give all that the file is to hold/ },
  {
    tool: "edit",
    input: { path: "/none.md", old_string: "a", new_string: "b" },
    hint: /no file \/none\.md\. To make it, give an empty old_string, or use write/,
  },
  { tool: "edit", input: { path: "/a.md" }, hint: /"old_string" is missing\. Give the text to replace/ },
  { tool: "list", input: { path: "/none" }, hint: /no file or directory \/none\. List the directory above it/ },
  { tool: "list", input: { offset: "x" }, hint: /"offset" must be a whole number from 0/ },
  { tool: "find", input: {}, hint: /"pattern" is missing\. Give a glob, such as "\*\.md"/ },
  { tool: "grep", input: { pattern: "(" }, hint: /a \( is never closed; write \\\( for the character itself/ },
  { tool: "grep", input: {}, hint: /"pattern" is missing\. Give a regular expression/ },
  { tool: "delete", input: {}, hint: /"path" is missing\. Give an absolute path/ },
  { tool: "delete", input: { path: "/none" }, hint: /There was no \/none/ },
  { tool: "bash", input: { command: "" }, hint: /Give `command`: the script to run, as a text/ },
  { tool: "bash", input: { command: "nosuchcommand" }, hint: /nosuchcommand: command not found/ },
  { tool: "execute", input: { code: "return 1 +" }, hint: /Expression expected \(line 2, column 1\)/ },
  {
    tool: "execute",
    input: { code: "return await tools.rad({})" },
    hint: /no tools\.rad\. There are: weather, .*read/,
  },
  { tool: "execute", input: { script: "1" }, hint: /Give the code as a text: \{ "code": "return 1 \+ 1" \}/ },
  { tool: "fetch_url", input: { url: "nowhere" }, hint: /no absolute URL\. Write it as https:\/\/host\/path/ },
  { tool: "fetch_url", input: { url: "http://127.0.0.1:1/" }, hint: /allowed only as http:\/\/127\.0\.0\.1:\d+/ },
  { tool: "activate_skill", input: { name: "plain-writin" }, hint: /Near to it: plain-writing/ },
  {
    tool: "read_skill_resource",
    input: { name: "plain-writing", path: "references/none.txt" },
    hint: /It has: references\/lighter-words\.txt/,
  },
  {
    tool: "run_skill_script",
    input: { name: "plain-writing", script: "scripts/none.js", input: {} },
    hint: /It has: scripts\/measure\.js/,
  },
  {
    tool: "run_skill_script",
    input: { name: "plain-writing", script: "scripts/measure.js", input: {} },
    hint: /Give \{ \\"text\\": \\"…\\" \}/,
  },
  {
    tool: "load_extension",
    input: { name: "1", version: "1", source: "({})" },
    hint: /name must begin with a letter and have at most 32 letters, digits, _ and -/,
  },
  {
    tool: "load_extension",
    input: { name: "bad", version: "1", source: "({ tools: {" },
    hint: /The source failed: SyntaxError: .* \(line 2, column 1\)/,
  },
  // It takes nothing, so nothing can be wrong.
  { tool: "list_extensions", input: { all: true }, hint: /"name":"echo"/ },
  { tool: "unload_extension", input: { name: "none" }, hint: /no extension \\"none\\"\. Loaded are: echo/ },
  { tool: "echo_say", input: { txt: "x" }, hint: /text must be given/ },
  { tool: "connect_library", input: [], hint: /expected object, received array/ },
  { tool: "tool_library_find_books", input: { topic: "tea" }, hint: /needs the field "about". Correct it and call/ },
  {
    tool: "book_table",
    input: { restaurant: "The Kettle", date: "tomorrow", people: 2 },
    hint: /Give the date as year, month and day, such as 2031-05-04/,
  },
  { tool: "weather", input: {}, hint: /"city"[^]*expected string, received undefined/ },
  { tool: "deleteFiles", input: { files: [] }, hint: /"files"[^]*expected array to have >=1 items/ },
  { tool: "timeZone", input: "now", hint: /expected object, received string/ },
  { tool: "research", input: {}, hint: /"topic"[^]*expected string, received undefined/ },
  { tool: "researchLater", input: { topic: 3 }, hint: /"topic"[^]*expected string, received number/ },
  { tool: "tidyUp", input: {}, hint: /"folder"[^]*expected string, received undefined/ },
  { tool: "run_process", input: {}, hint: /Give `command` \(for bash\) or `argv` \(words\), and not both/ },
  { tool: "run_process", input: { command: "nosuchprogram" }, hint: /nosuchprogram: command not found/ },
  { tool: "browser_open", input: { url: "https://example.com/" }, hint: /Allowed: http.*\. Open another address/ },
  {
    tool: "browser_act",
    input: { ref: "e1", action: "jump" },
    hint: /must be one of: click, fill, press, select, hover/,
  },
  { tool: "browser_read", input: {}, hint: /No page is open\. Use browser_open first/ },
  { tool: "browser_snapshot", input: { page: "x" }, hint: /`page` must be the number of a page/ },
  { tool: "browser_screenshot", input: {}, hint: /No page is open\. Use browser_open first/ },
  { tool: "browser_pdf", input: {}, hint: /No page is open\. Use browser_open first/ },
  { tool: "browser_close", input: { page: 9 }, hint: /No page is open\. Use browser_open first/ },
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
  expect((await talk.answer(() => talk.approve("p1", true))).error).toBeUndefined();
  expect((await talk.ask("Now be wrong")).error).toBeUndefined();
  const offered = server.requests[2]?.body.tools?.map((one) => one.function?.name) ?? [];
  const read = new Map(
    server.requests[3]?.body.messages?.flatMap(({ role, content, ...rest }) =>
      role === "tool" ? [[String(Reflect.get(rest, "tool_call_id")), String(content)] as const] : [],
    ),
  );
  // Whatever is offered has its line above.
  expect(offered.filter((name) => !BAD.some(({ tool }) => tool === name))).toEqual([]);
  const asked = BAD.map((bad, at) => ({ ...bad, said: read.get(`bad${at}`) }));
  expect(asked.filter(({ tool }) => !offered.includes(tool) && !MACHINE.test(tool))).toEqual([]);
  for (const { tool, input, hint, said } of asked.filter(({ tool }) => offered.includes(tool))) {
    const what = `${tool} ${JSON.stringify(input)}`;
    expect(said, what).toMatch(hint);
    // Never a stack, never a path of the machine.
    expect(said, what).not.toMatch(/\n\s+at |node_modules|\/work\/|file:\/\//);
  }
}, 60_000);
