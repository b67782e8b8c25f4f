import type { UIMessage } from "ai";
import { expect, test } from "vitest";
import { SUGGESTIONS } from "../../examples/start/contract.ts";
import { replyTo } from "../../examples/start/model/guide-reply.ts";
import { replyWithTools } from "../../examples/start/model/guide-tools.ts";
import { TOUR } from "../../examples/start/model/guide-tour.ts";
import { longAnswer } from "../../examples/start/model/guide-text.ts";
import { guide, guidePace, toWords } from "../../examples/start/model/guide.ts";
import type { ModelPrompt } from "../../examples/start/model/model-types.ts";
import { openTalk, settings, startAgents, type Talk, watchLog } from "./talk.ts";

async function start(env: Readonly<Record<string, string>> = {}): Promise<Talk> {
  settings(env);
  return openTalk(await startAgents());
}

const prompt = (text: string, ...more: ModelPrompt): ModelPrompt => [
  { role: "user", content: [{ type: "text", text }] },
  ...more,
];
const assistant = (text: string): ModelPrompt[number] => ({ role: "assistant", content: [{ type: "text", text }] });
const result = (toolName: string, output: object): ModelPrompt[number] => ({
  role: "tool",
  content: [{ type: "tool-result", toolCallId: "c", toolName, output: output as never }],
});

function toolParts(message: UIMessage | undefined, name: string) {
  return message?.parts.filter(({ type }) => type === `tool-${name}`) ?? [];
}

test("it says what it is and what it can show", async () => {
  const talk = await start();
  const { text, error } = await talk.ask("What can you do?");
  expect(error).toBeUndefined();
  expect(text).toContain("built-in guide");
  expect(text).toContain("not a language model");
  for (const thing of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "Show me an approval", "Give me a long answer"]) {
    expect(text).toContain(thing);
  }
  expect((await talk.ask("qwertz")).text).toContain("I have no real answer to that");
});

test("every suggestion of the page shows something of its own", () => {
  const tools = TOUR.flatMap((step) => step.tools);
  const replies = SUGGESTIONS.map(({ text }) => JSON.stringify(replyWithTools(prompt(text), tools)));
  expect(new Set(replies).size).toBe(SUGGESTIONS.length);
  for (const reply of replies) expect(reply).not.toContain("no real answer");
});

test("asked for a summary by the engine, it writes one: what was asked, what was summarised before, what to keep", () => {
  const ask = (text: string): ModelPrompt => [{ role: "system", content: "Write notes." }, ...prompt(text)];
  const said = `<conversation>\n<message id="a" role="user">\nHello   there\n</message>\n<message id="b" role="assistant">\nHi\n</message>\n</conversation>`;
  const first = replyTo(ask(said)).text;
  expect(first).toContain("- “Hello there”");
  expect(first).not.toContain("Hi\n");
  const next = replyTo(
    ask(
      `<prior-summary>\n${first}\n</prior-summary>\n\n${said.replace("Hello   there", "And now?")}\n\n<focus>\nthe door\n</focus>`,
    ),
  ).text;
  expect(next.split("\n").filter((line) => line.startsWith("- "))).toEqual([
    "- “Hello there”",
    "- “And now?”",
    "- the door",
  ]);
  // What a user writes is no such question.
  expect(replyTo(prompt(said)).text).toContain("I have no real answer to that");
});

test("a tool of the server runs and its result is told", async () => {
  const { text, message } = await (await start()).ask("What's the weather like in São Paulo today?");
  expect(toolParts(message, "weather")).toMatchObject([
    { state: "output-available", input: { city: "São Paulo" }, output: { city: "São Paulo" } },
  ]);
  expect(text).toMatch(/In São Paulo it is -?\d+ °C/);
});

test("an approval waits; approved, the tool runs", async () => {
  const talk = await start();
  const asked = await talk.ask("Show me an approval");
  const [part] = toolParts(asked.message, "deleteFiles");
  expect(part).toMatchObject({ state: "approval-requested" });
  const { text, message } = await talk.answer((id) => talk.approve(id, true));
  expect(toolParts(message, "deleteFiles")).toMatchObject([{ state: "output-available" }]);
  expect(text).toContain("You approved, so the tool ran and deleted `draft-1.md, draft-2.md, old-notes.txt`");
});

test("an approval that is denied deletes nothing", async () => {
  const talk = await start();
  await talk.ask("please delete my files");
  const { text, message } = await talk.answer((id) => talk.approve(id, false));
  expect(toolParts(message, "deleteFiles")).toMatchObject([{ state: "output-denied" }]);
  expect(text).toContain("You said no, so nothing was deleted.");
  await talk.ask("delete them");
  const again = await talk.answer((id) => talk.approve(id, false, { reason: "Not today." }));
  expect(again.text).toContain("You said no, so nothing was deleted.");
});

test("a tool of the page is answered by it", async () => {
  const talk = await start();
  const { message } = await talk.ask("Which time zone am I in?");
  expect(toolParts(message, "timeZone")).toMatchObject([{ state: "input-available", input: {} }]);
  const { text } = await talk.answer((id) => talk.result(id, { timeZone: "Asia/Tokyo", localTime: "9:00" }));
  expect(text).toContain("**Asia/Tokyo**, where it is 9:00");
  await talk.ask("time zone again");
  expect((await talk.answer((id) => talk.result(id, "?"))).text).toContain("**(not told)**");
});

test("reasoning comes apart from the answer", async () => {
  const { message } = await (await start()).ask("Show me reasoning");
  expect(message?.parts.map(({ type }) => type)).toEqual(["step-start", "reasoning", "text"]);
});

test("markdown has each kind of formatting", async () => {
  const { text } = await (await start()).ask("Show me some markdown");
  for (const sign of ["# A heading", "| ---", "```ts", "1. First", "- [x]", "](https://", "> A quotation"]) {
    expect(text).toContain(sign);
  }
});

test("attachments are described", async () => {
  const talk = await start();
  const { text } = await talk.ask({
    id: "m1",
    role: "user",
    parts: [
      { type: "text", text: "show me an error" },
      {
        type: "file",
        filename: "a`b.png",
        mediaType: "image/png",
        url: `data:image/png;base64,${btoa("x".repeat(1500))}`,
      },
      { type: "file", mediaType: "text/plain", url: "data:text/plain,hello" },
      { type: "file", filename: "odd", mediaType: "x/y", url: "data:x/y;base64,%%%" },
    ],
  });
  expect(text).toContain("You sent me 3 files");
  expect(text).toContain("- `a'b.png`: image/png, 1.5 kB");
  expect(text).toContain("- `a file without a name`: text/plain, 5 bytes");
});

test("an error on purpose is told in the chat and in the log, and the conversation goes on", async () => {
  const talk = await start();
  const log = watchLog();
  const { text, error } = await talk.ask("Show me an error");
  expect(text).toContain("What I said so far is");
  expect(error).toContain("This error was made on purpose");
  expect(log).toEqual([`[conversation first] ${error}`]);
  expect((await talk.ask("hello")).error).toBeUndefined();
});

test("a long answer can be stopped", async () => {
  const talk = await start({ PERDURE_GUIDE_DELAY: "5" });
  const answer = talk.ask("Give me a long answer");
  await talk.frame(({ body }) => body?.includes("text-delta") === true, "the first words");
  talk.cancel("first-1");
  const { text, error } = await answer;
  expect(error).toBeUndefined();
  expect(longAnswer().startsWith(text)).toBe(true);
  expect(text).not.toBe(longAnswer());
});

test("it goes on behind what was said before a crash", () => {
  const whole = longAnswer();
  expect(replyTo(prompt("a long answer", assistant(whole.slice(0, 100)))).text).toBe(whole.slice(100));
  expect(replyTo(prompt("a long answer", assistant("something else"))).text).toBe(whole);
  expect(replyTo(prompt("a long answer", assistant(whole))).text).toContain("That is all.");
  const asked = replyTo(prompt("weather"));
  expect(replyTo(prompt("weather", assistant(asked.text.slice(0, 7))))).toEqual({
    ...asked,
    text: asked.text.slice(7),
  });
  const thought: ModelPrompt[number] = { role: "assistant", content: [{ type: "reasoning", text: "hm" }] };
  const reasoned = replyTo(prompt("reasoning", thought));
  expect([reasoned.reasoning, reasoned.text]).toEqual([undefined, replyTo(prompt("reasoning")).text]);
});

test("results of any shape have an answer", () => {
  const closing = (toolName: string, output: object) =>
    replyTo(prompt("x", assistant("before"), result(toolName, output))).text;
  expect(closing("weather", { type: "error-text", value: "Interrupted." })).toContain("had no result: Interrupted.");
  expect(closing("weather", { type: "execution-denied" })).toContain("was not allowed to run");
  expect(closing("deleteFiles", { type: "error-text", value: "It was interrupted." })).toContain("had no result");
  expect(closing("deleteFiles", { type: "json", value: {} })).toContain("deleted `(not told)`");
  expect(closing("timeZone", { type: "json", value: null })).toContain("time zone **(not told)**");
  expect(closing("other", { type: "json", value: {} })).toBe("The tool other is done.");
});

test("its words are the text", () => {
  for (const text of [longAnswer(), " a  b\n\nc ", "one", "\n"]) expect(toWords(text).join("")).toBe(text);
});

test("its pace is a setting", () => {
  const pace = (PERDURE_GUIDE_DELAY?: string) => guidePace({ PERDURE_GUIDE_DELAY });
  expect([pace("0"), pace("7"), pace("x"), pace("-1"), pace("")]).toEqual([0, 7, pace(), pace(), pace()]);
});

test("it is the same every time", async () => {
  const play = async () => {
    const { stream } = await guide(0).doStream({ prompt: prompt("Show me reasoning") });
    return Array.fromAsync(stream);
  };
  expect(await play()).toEqual(await play());
});
